"""Run: the ladder. Also connects the Ladder page with the form, the Layers page and the comparison's
session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from PySide6.QtWidgets import QApplication, QFileDialog

from bench.questions.ladder_questions import TASK_FILE, TASKS, DeviceInfo, LadderQuestion, task_at
from bench.questions.preview import PreviewNode
from bench.results import trust
from bench.results.ladder_records import LadderJob, RungCase
from bench.results.records import Case, Layer, stem
from bench.run import chosen_rungs, defaults, elsewhere, options
from bench.run.kinds.ladder import KIND as LADDER
from bench.words.called import command_line
from gui.base.boxes import kept_list
from gui.pages.ladder import LadderPage, refused_device
from gui.pages.layers import LayersPage
from gui.pages.model import ModelPage
from gui.pages.page import Spot
from gui.sessions.ladder_session import LadderSession
from gui.shell.main_window import Actions, MainWindow
from gui.widgets.controls import ask_folder

ORDER = 15
_DIRS = "ladder/kernels"  # the setting that keeps the kernel folders


def add_to(window: MainWindow, actions: Actions) -> None:
    ladders = window.ladders = LadderActions(window, window.page_of(LadderPage))
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
    actions.add("file", "open-task", "Open t&ask…", ladders.open_task)
    actions.add("file", "add-kernels", "Add &kernel folder…", ladders.add_folder)
    actions.add("file", "new-kernel", "&New kernel from template…", ladders.new_kernel)


class LadderActions:
    """Connects the Ladder page with the window, in both directions."""

    def __init__(self, window: MainWindow, page: LadderPage) -> None:
        self._window, self._page = window, page
        question = LadderQuestion(number=0, model=defaults.JOB.models[0], kernel_dirs=self._kept_dirs())
        self.session = LadderSession(question, window, window.session.runs)
        window.join(self.session)
        self._begun = False
        page.connect_to(self.session, lambda: window.form.models.keys, self._used)
        page.plan_wanted.connect(self._begin)
        page.use_wanted.connect(self._use)
        wanted: dict[str, Callable[[], None]] = {
            "task": self.open_task,
            "folder": self.add_folder,
            "template": self.new_kernel,
            "command": self.copy_command,
        }
        page.wanted.connect(lambda what: wanted[what]())
        window.form.changed.connect(page.invalidate)
        window.where.can_run.connect(self._on_can_run)
        window.session.ended.connect(self.session.run_due)
        window.closing.connect(self._end)
        window.page_of(LayersPage).ladder_wanted.connect(self.open_layer)
        window.page_of(ModelPage).ladder_wanted.connect(self.open_node)
        window.inspector.ladder_wanted.connect(self.open_layer)

    def run(self) -> None:
        """Go to the page and run the ladder; if it is still being planned, as soon as it is ready."""
        self._show()
        self.session.run()

    def open(self, folder: Path, front: bool = True) -> None:
        """Show a ladder that was measured before. front: also bring its page to the front."""
        if front:
            self._show()
        else:
            self._begin()
        self.session.open(folder)

    def resume(self, folder: Path, retry: bool = False) -> None:
        """Measure what an interrupted ladder lacks. retry: also what crashed or timed out."""
        self._show()
        self.session.go_on(folder, retry=retry)

    def add_folder(self, folder: str = "") -> None:
        folder = folder or QFileDialog.getExistingDirectory(
            self._window, "A folder of your own kernels", str(self._window.settings.value("folder", ""))
        )
        if folder and task_at(Path(folder)):
            self.open_task(Path(folder))
        elif folder:
            question = self.session.state.question
            dirs = tuple(dict.fromkeys([*question.kernel_dirs, str(Path(folder).absolute())]))
            self._show(msgspec.structs.replace(question, kernel_dirs=dirs))

    def open_task(self, path: Path | None = None) -> None:
        """Show the ladder of a task of the user's, and watch its folder. Nothing of it is run yet. path: the
        folder, or the file in it (None: ask for it)."""
        if not path:  # also where an action gives whether it is checked
            kept = str(self._window.settings.value("folder", ""))
            asked = QFileDialog.getExistingDirectory(self._window, "The folder of a task", kept)
            if not asked:
                return
            path = Path(asked)
        if (folder := task_at(path)) is None:
            self._window.tell(
                f"{path.name} is no task: it has no {TASK_FILE}, which says what its inputs are."
            )
            return
        self._window.settings.setValue("folder", str(folder.parent))
        question = self.session.state.question
        # Of two tasks of one name only one can be known.
        others = [
            known
            for known in question.kernel_dirs
            if Path(known).name != folder.name or task_at(Path(known)) is None
        ]
        wanted = {"model": TASKS, "op": folder.name, "node": "", "nodes": (), "rungs": ()}
        if refused_device(self.session.state.answer):  # of a ladder that was measured elsewhere
            wanted["device"] = ""
        self._show(msgspec.structs.replace(question, **wanted, kernel_dirs=(str(folder), *others)), run=False)

    def new_kernel(self, folder: str = "") -> None:
        folder = folder or ask_folder(
            self._window, "The folder for the new kernel", str(self._window.settings.value("folder", ""))
        )
        if folder:
            self._begin()
            self._window.tabs.setCurrentWidget(self._page)
            self.session.write_template(Path(folder).absolute())

    def open_layer(self, case: Case, layer: Layer) -> None:
        """Show the ladder of a layer, on the device of the backend that ran it."""
        spot = Spot(case.model, layer.nodes, case.backend, case.batch, case.precision, layer.rung)
        self._begin()
        if reason := self._page.show_spot(spot):
            self._window.tell(reason)
        self._show()

    def open_node(self, model: str, node: PreviewNode, batch: int) -> None:
        """Show the ladder of a previewed node, on a device that has a kernel for it; on the device used
        last, if that has one."""
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
            on = elsewhere.arguments(self._window.where.name)
            QApplication.clipboard().setText(command_line([*LADDER.arguments(ladder.job), *on]))

    # ------------------------------------------------------------------------------------------ the inside

    def _show(self, question: LadderQuestion | None = None, run: bool = True) -> None:
        self._begin()
        if question is not None:
            self.session.ask(question, run)
        self._window.tabs.setCurrentWidget(self._page)

    def _begin(self) -> None:
        """Ask for the first ladder, once."""
        if not self._begun:
            self._begun = True
            self.session.start_watching()
            self.session.ask(self._there())

    def _there(self) -> LadderQuestion:
        """The question as it is now, for the machine on which runs are measured; on another one, for the
        device that a ladder takes there."""
        where, asked = self._window.where, self.session.state.question
        if asked.on != where.name:
            asked = msgspec.structs.replace(asked, device="", rungs=())
        refused = {info.name: info.unavailable for info in where.backends}
        devices = tuple(
            DeviceInfo(name=device, refused=refused.get(f"engine-{device}", "")) for device in options.DEVICES
        )
        return msgspec.structs.replace(asked, on=where.name, devices=devices if where.name else ())

    def _on_can_run(self) -> None:
        """Another machine, or more is known of it."""
        asked, there = self.session.state.question, self._there()
        if self._begun and not self.session.active and (asked.on, asked.devices) != (there.on, there.devices):
            self.session.ask(there)

    def _use(self, case: RungCase, swap: bool) -> None:
        ladder, opened = self.session.state.ladder, self.session.state.opened
        if ladder is None:
            return
        dirs = ladder.job.kernel_dirs
        if case.user and opened is not None and (reason := trust.doubt(opened, dirs)):
            self._window.doubt(reason, lambda: self._choose(ladder.job, case, swap))
        else:
            self._choose(ladder.job, case, swap)

    def _choose(self, job: LadderJob, case: RungCase, swap: bool) -> None:
        form = self._window.form
        if job.model not in form.models.keys:
            form.add_model(job.model)
        form.models.check([*form.models.checked, job.model])
        where, why = "", ""
        backend = f"engine-{job.device}"
        if swap:
            libraries, why = form.swap_into(job.device)
            where = f" in {' and '.join(libraries)}" if libraries else ""
        elif backend in form.backends.usable and backend not in form.backends.checked:
            form.backends.check([*form.backends.checked, backend])
        form.rungs.choose(
            chosen_rungs.key(job.model, job.node),
            chosen_rungs.value(job.device, case.rung),
            job.kernel_dirs if case.user else (),
            form.models.keys,
            swap,
        )
        self._window.room.show_form()
        self.session.note(
            f"{case.rung} is chosen for {job.node} of {stem(job.model)}{where}: F5 runs the comparison "
            f"with it.{f' {why[:1].upper()}{why[1:]}.' if why else ''}"
        )

    def _used(self, node: str, model: str) -> str:
        return self._window.form.rungs.rungs.get(chosen_rungs.key(model, node), "")

    def _kept_dirs(self) -> tuple[str, ...]:
        return tuple(folder for folder in kept_list(self._window.settings, _DIRS) if Path(folder).is_dir())

    def _end(self) -> None:
        self._window.settings.setValue(_DIRS, list(self.session.state.question.kernel_dirs))
