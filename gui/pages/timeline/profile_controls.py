"""What is profiled: a model on backends and batch sizes, how many passes; run, cancel, open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QMenu,
    QWidget,
)

from bench.results.profile_records import ProfileJob
from bench.results.records import BackendInfo, stem
from bench.run import options
from bench.run.kinds.profile import KIND as PROFILE
from bench.words.option import by_name
from gui.base.boxes import flowing
from gui.form.option_fields import field as option_field
from gui.form.option_fields import fill, values
from gui.form.rung_choices import sentence
from gui.sessions.profile_session import ProfileSession
from gui.sessions.session import Standing
from gui.widgets.combo import Combo
from gui.widgets.controls import menu_button, push_button
from gui.widgets.labels import Label, as_tip, labelled
from kernels.errors import InputError

BATCHES = {
    "1": "one image at a time",
    "1,16": "two sizes",
    "1,16,1024": "three sizes",
    "1..1024": "by doubling",
}
TRACE = "A trace for Perfetto (ui.perfetto.dev) or Chrome"


class ProfileControls(QWidget):
    """What the user wants to be profiled is asked of the session. `wanted` carries what is for the window:
    "open" or "trace"."""

    wanted = Signal(str)

    def __init__(
        self,
        session: ProfileSession,
        kernels: Callable[[str], tuple[Mapping[str, str], Sequence[str]]] = lambda model: ({}, ()),
        parent: QWidget | None = None,
    ) -> None:
        """kernels: model → the rungs that are chosen for it in the form, and the folders of the user's."""
        super().__init__(parent)
        self._session, self._kernels = session, kernels
        self._infos: tuple[BackendInfo, ...] = ()
        self._wanted: set[str] | None = None  # None: the user has chosen none yet
        self.model = Combo()
        self.backends = menu_button("")
        self.backends.setMenu(_Staying(self.backends))
        self.batches = QComboBox()
        self.batches.setEditable(True)
        self.batches.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.batches.setMinimumContentsLength(9)
        self.batches.addItems(list(BATCHES))
        self.batches.setToolTip("1,16, or 1..1024 for 1, 2, 4 …; each size and backend has its own process")
        self.precision = Combo()
        self.precision.offer({"fp32": "fp32"})
        self.fields = [option_field(by_name(options.PROFILE, name)) for name in ("runs", "counters")]
        self.runs, self.counters = (made.widget for made in self.fields)
        fill(self.fields, ProfileJob(model="", backends=()))
        self.run_button = push_button(
            "&Profile",
            self.request_run,
            role="primary",
            tip="Record every kernel, copy, call and step, and the cold start",
        )
        self.cancel_button = push_button("Cancel", session.cancel)
        self.kernels = Label(role="muted")
        self.model.currentIndexChanged.connect(lambda _: self.show_kernels())
        fields = {
            "&Model": self.model,
            "Bac&kends": self.backends,
            "Batch si&zes": self.batches,
            "Pre&cision": self.precision,
            "Pa&sses": self.runs,
        }
        buttons = [
            push_button(words, do, tip=tip)
            for words, tip, do in (
                ("&Open…", "Show a saved profile", lambda: self.wanted.emit("open")),
                ("Save &trace…", TRACE, lambda: self.wanted.emit("trace")),
                ("Cop&y as command", "The command line that records the same profile", self.copy_command),
            )
        ]
        pairs = [labelled(field, words, gap=4) for words, field in fields.items()]
        last = (self.counters, self.kernels, self.run_button, self.cancel_button, *buttons)
        flowing(self, *pairs, *last, spacing=6)
        # One height for all: the layout sets them by their upper edges.
        children = self.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
        high = max(child.sizeHint().height() for child in children)
        for child in children:
            child.setFixedHeight(high)
        self.show_standing(Standing())
        self._show_backends()

    def job(self) -> ProfileJob:
        """The job described. Raises InputError, one sentence, where it describes none."""
        backends = self.chosen
        if not backends:
            raise InputError(
                "Choose a backend to profile." if self._infos else "Asking this machine what it can run …"
            )
        if self.model.currentData() is None:
            raise InputError("Choose a model to profile.")
        rungs, folders = self._kernels(self.model.currentData())
        return ProfileJob(
            model=self.model.currentData(),
            backends=backends,
            batches=by_name(options.PROFILE, "batch").value.read_line(self.batches.currentText()),
            precision=self.precision.currentText(),
            rungs=dict(rungs),
            kernel_dirs=tuple(folders),
            **values(self.fields),
        )

    def set_job(self, job: ProfileJob) -> None:
        """Show what a profile was taken of."""
        self.model.choose(job.model)
        self._wanted = set(job.backends)
        self._show_backends()
        self.batches.setCurrentText(",".join(map(str, job.batches)))
        fill(self.fields, job)
        self.precision.choose(job.precision)

    def choose_model(self, model: str) -> None:
        """Have this model profiled next, where it is one of the list."""
        self.model.choose(next((known for known in self.model.offered if stem(known) == stem(model)), None))

    def show_kernels(self) -> None:
        """Say which kernels of the form are profiled with the model chosen."""
        model = self.model.currentData()
        rungs, folders = self._kernels(model) if model is not None else ({}, ())
        words = [sentence(key, rung, [model]) for key, rung in rungs.items()]
        self.kernels.setText(f"with {len(words)} chosen kernel{'s' * (len(words) > 1)}" if words else "")
        self.kernels.setToolTip(as_tip("\n".join([*words, *(f"kernels of {f}" for f in folders)])))
        self.kernels.setVisible(bool(words))

    @property
    def chosen(self) -> tuple[str, ...]:
        """The backends to profile, in the order of the machine's list."""
        return tuple(
            info.name
            for info in self._infos
            if not info.unavailable and (self._wanted is None or info.name in self._wanted)
        )

    def show_models(self, models: Sequence[str]) -> None:
        """Names of the catalogue and paths."""
        names = {model: Path(model).stem if model.endswith(".onnx") else model for model in models}
        self.model.offer(names, self.model.currentData())

    def show_infos(self, infos: Sequence[BackendInfo]) -> None:
        """What the machine can run; until the user chooses, those of the fastest device."""
        if tuple(infos) == self._infos:
            return
        self._infos = tuple(infos)
        if self._wanted is None:
            able = [i for i in infos if not i.unavailable and not i.variant_of and not i.rival]
            devices = {info.device for info in able}
            best = "cuda" if "cuda" in devices else "cpu"
            self._wanted = {info.name for info in able if info.device == best}
        self._show_backends()

    def show_standing(self, standing: Standing) -> None:
        self.run_button.setVisible(not standing.active)
        self.cancel_button.setVisible(standing.active)
        self.cancel_button.setEnabled(standing.phase != "cancelling")

    def copy_command(self) -> None:
        try:
            QApplication.clipboard().setText(PROFILE.command_line(self.job()))
        except InputError as error:
            self._session.told.emit(str(error))

    def request_run(self) -> None:
        """As the button: ask for the profile, or tell what is missing."""
        try:
            job = self.job()
        except InputError as error:
            self._session.told.emit(str(error))
            return
        self._session.run(job)

    def _show_backends(self) -> None:
        menu = self.backends.menu()
        menu.clear()
        for info in self._infos:
            if info.rival and info.unavailable:
                continue  # the list is of what there is to choose; `doctor` has the others
            action = QAction(info.name, menu, checkable=True)
            action.setChecked(info.name in self.chosen)
            action.setEnabled(not info.unavailable)
            action.setToolTip(info.unavailable)
            action.toggled.connect(lambda on, name=info.name: self._on_backend(name, on))
            menu.addAction(action)
        self._tell_backends()

    def _on_backend(self, name: str, on: bool) -> None:
        wanted = set(self.chosen)
        self._wanted = wanted | {name} if on else wanted - {name}
        self._tell_backends()

    def _tell_backends(self) -> None:
        self.backends.setText(", ".join(self.chosen) or "none")
        able = {p: p for info in self._infos if info.name in self.chosen for p in info.precisions}
        if able:
            self.precision.offer(able, self.precision.currentData())


class _Staying(QMenu):
    """A menu of choices that stays open while one chooses, and shows why one is refused."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setToolTipsVisible(True)

    def mouseReleaseEvent(self, event: object) -> None:
        action = self.activeAction()
        if action is not None and action.isEnabled() and action.isCheckable():
            action.trigger()
        else:
            super().mouseReleaseEvent(event)  # type: ignore[arg-type]  # a mouse event
