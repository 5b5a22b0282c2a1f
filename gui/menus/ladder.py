"""Run: the ladder; and what joins its page to the window: the form, the layers, the comparison's session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtWidgets import QApplication, QFileDialog

from bench.questions.ladder_questions import LadderQuestion
from bench.questions.preview import PreviewNode
from bench.results import trust
from bench.results.ladder_records import LadderJob, RungCase
from bench.results.records import Case, Layer, stem
from bench.run import chosen_rungs, defaults
from bench.run.kinds.ladder import KIND as LADDER
from gui.pages.ladder import LadderPage
from gui.pages.layers import LayersPage
from gui.pages.model import ModelPage
from gui.pages.page import Spot
from gui.sessions.ladder_session import LadderSession
from gui.shell.actions import Actions
from gui.shell.main_window import MainWindow
from gui.widgets.controls import ask_folder

ORDER = 15
_DIRS = "ladder/kernels"  # the setting that keeps the kernel folders


def add_to(window: MainWindow, actions: Actions) -> None:
    page = next(page for page in window.pages if isinstance(page, LadderPage))
    ladders = LadderActions(window, page)
    window.ladders = ladders
    window.showers[LADDER.name] = ladders.open
    window.resumers[LADDER.name] = ladders.resume
    actions.add("run", "ladder", "Run the &ladder", ladders.run, "Ctrl+Shift+R")
    actions.add("run", "cancel-ladder", "Cancel the la&dder", ladders.session.cancel, enabled=False)
    ladders.session.stands.connect(
        lambda standing: actions.by_name["cancel-ladder"].setEnabled(standing.active)
    )
    actions.add(
        "file", "open-ladder", "Open la&dder…", lambda: window.library.ask_open("Open a ladder's folder")
    )
    actions.add("file", "add-kernels", "Add &kernel folder…", ladders.add_folder)
    actions.add("file", "new-kernel", "&New kernel from template…", ladders.new_kernel)


class LadderActions:
    """What the ladder page wants of the window, and the window of the ladder."""

    def __init__(self, window: MainWindow, page: LadderPage) -> None:
        self._window, self._page = window, page
        question = LadderQuestion(number=0, model=defaults.JOB.models[0], kernel_dirs=self._kept_dirs())
        self.session = LadderSession(question, window, window.session.runs)
        window.join(self.session)
        self._asked = False
        page.connect_to(self.session, lambda: window.form.models.keys, self._used)
        page.asked.connect(self._begin)
        page.use_wanted.connect(self._use)
        wanted = {"folder": self.add_folder, "template": self.new_kernel, "command": self.copy_command}
        page.wanted.connect(lambda what: wanted[what]())
        window.form.changed.connect(page.invalidate)
        window.session.ended.connect(self.session.run_due)
        window.closing.connect(self._end)
        for other in window.pages:
            if isinstance(other, LayersPage):
                other.ladder_wanted.connect(self.open_layer)
            elif isinstance(other, ModelPage):
                other.ladder_wanted.connect(self.open_node)
        window.inspector.ladder_wanted.connect(self.open_layer)

    def run(self) -> None:
        """Go to the page and climb; where its ladder is not planned yet, as soon as it is."""
        self._show()
        self.session.run()

    def open(self, folder: Path, front: bool = True) -> None:
        """Show a ladder that was climbed before; front: with its page."""
        if front:
            self._show()
        else:
            self._begin()
        self.session.open(folder)

    def resume(self, folder: Path, retry: bool = False) -> None:
        """Measure what is missing of a ladder that was interrupted, with `retry` also what crashed or
        hung."""
        self._show()
        self.session.go_on(folder, retry=retry)

    def add_folder(self, folder: str = "") -> None:
        folder = folder or QFileDialog.getExistingDirectory(
            self._window, "A folder of your own kernels", str(self._window.settings.value("folder", ""))
        )
        if folder:
            question = self.session.state.question
            dirs = tuple(dict.fromkeys([*question.kernel_dirs, str(Path(folder).absolute())]))
            self._show(msgspec.structs.replace(question, kernel_dirs=dirs))

    def new_kernel(self, folder: str = "") -> None:
        folder = folder or ask_folder(
            self._window, "The folder for the new kernel", str(self._window.settings.value("folder", ""))
        )
        if folder:
            self._begin()
            self._window.tabs.setCurrentWidget(self._page)
            self.session.write_template(Path(folder).absolute())

    def open_layer(self, case: Case, layer: Layer) -> None:
        """The ladder of a layer, on the device of the backend it was seen on."""
        spot = Spot(case.model, layer.nodes, case.backend, case.batch, case.precision, layer.rung)
        self._begin()
        if reason := self._page.show_spot(spot):
            self._window.tell(reason)
        self._show()

    def open_node(self, model: str, node: PreviewNode, batch: int) -> None:
        """The ladder of a node of a model that was looked at, on a device that has a kernel for it; the one
        climbed last where that has."""
        question = self.session.state.question
        runs = {device: run for device, run in node.runs.items() if run.kernel}
        device = question.device if question.device in ("", *runs) else next(iter(runs), "")
        looked_at = [runs[device]] if device in runs else list(runs.values())
        nodes = tuple(dict.fromkeys(name for run in looked_at for name in run.nodes))
        wanted = {"model": model, "op": "", "node": "", "nodes": nodes, "batch": batch, "device": device}
        self._show(msgspec.structs.replace(question, **wanted, rungs=()))

    def copy_command(self) -> None:
        ladder = self.session.state.ladder
        if ladder is not None:
            QApplication.clipboard().setText(LADDER.command_line(ladder.job))

    # ------------------------------------------------------------------------------------------ the inside

    def _show(self, question: LadderQuestion | None = None) -> None:
        self._begin()
        if question is not None:
            self.session.ask(question)
        self._window.tabs.setCurrentWidget(self._page)

    def _begin(self) -> None:
        """The first question, once."""
        if not self._asked:
            self._asked = True
            self.session.start_watching()
            self.session.ask(self.session.state.question)

    def _use(self, case: RungCase) -> None:
        ladder, opened = self.session.state.ladder, self.session.state.opened
        if ladder is None:
            return
        dirs = ladder.job.kernel_dirs
        if case.user and opened is not None and (reason := trust.doubt(opened, dirs)):
            self._window.doubt(reason, lambda: self._choose(ladder.job, case))
        else:
            self._choose(ladder.job, case)

    def _choose(self, job: LadderJob, case: RungCase) -> None:
        form = self._window.form
        if job.model not in form.models.keys:
            form.add_model(job.model)
        form.models.check([*form.models.checked, job.model])
        backend = f"engine-{job.device}"
        if backend in form.backends.usable and backend not in form.backends.checked:
            form.backends.check([*form.backends.checked, backend])
        form.rungs.choose(
            chosen_rungs.key(job.model, job.node),
            chosen_rungs.value(job.device, case.rung),
            job.kernel_dirs if case.user else (),
            form.models.keys,
        )
        self._window.room.show_form()
        self.session.note(
            f"{case.rung} is chosen for {job.node} of {stem(job.model)}: F5 runs the comparison with it."
        )

    def _used(self, node: str, model: str) -> str:
        return self._window.form.rungs.rungs.get(chosen_rungs.key(model, node), "")

    def _kept_dirs(self) -> tuple[str, ...]:
        found: Any = self._window.settings.value(_DIRS, [])
        # An INI file keeps a list of one as its only entry.
        known = [found] if isinstance(found, str) else [str(folder) for folder in found or []]
        return tuple(folder for folder in known if Path(folder).is_dir())

    def _end(self) -> None:
        self._window.settings.setValue(_DIRS, list(self.session.state.question.kernel_dirs))
