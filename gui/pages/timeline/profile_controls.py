"""What is profiled: a model on backends and batch sizes, how many passes; run, cancel, open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSpinBox,
    QToolButton,
    QWidget,
)

from bench.kinds.options import by_name
from bench.profile.kind import KIND as PROFILE
from bench.profile.records import ProfileJob
from bench.results.records import BackendInfo, stem
from bench.run import options
from gui.base.boxes import filled
from gui.form.rung_choices import sentence
from gui.sessions.standing import Standing
from gui.widgets.flow_layout import FlowLayout
from gui.widgets.labels import Label, as_tip
from kernels.errors import InputError

BATCHES = {
    "1": "one image at a time",
    "1,16": "two sizes",
    "1,16,1024": "three sizes",
    "1..1024": "by doubling",
}


class ProfileControls(QWidget):
    """`run_wanted` carries a ProfileJob, `told` a sentence about what is missing of one."""

    run_wanted = Signal(object)
    cancel_wanted = Signal()
    open_wanted = Signal()
    trace_wanted = Signal()
    told = Signal(str)

    def __init__(
        self,
        kernels: Callable[[str], tuple[Mapping[str, str], Sequence[str]]] = lambda model: ({}, ()),
        parent: QWidget | None = None,
    ) -> None:
        """kernels: model → the rungs that are chosen for it in the form, and the folders of the user's."""
        super().__init__(parent)
        self._kernels = kernels
        self._infos: tuple[BackendInfo, ...] = ()
        self._wanted: set[str] | None = None  # None: the user has chosen none yet
        self.model = QComboBox()
        self.model.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.backends = QToolButton()
        self.backends.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.backends.setMenu(_Staying(self.backends))
        self.batches = QComboBox()
        self.batches.setEditable(True)
        self.batches.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.batches.setMinimumContentsLength(9)
        self.batches.addItems(list(BATCHES))
        self.batches.setToolTip("1,16, or 1..1024 for 1, 2, 4 …; each size and backend has its own process")
        self.precision = QComboBox()
        self.precision.addItem("fp32")
        self.runs = QSpinBox(
            minimum=1, maximum=options.MOST_RUNS, value=ProfileJob(model="", backends=()).runs
        )
        self.runs.lineEdit().setTextMargins(4, 0, 0, 0)
        self.runs.setToolTip(by_name(options.PROFILE, "runs").help)
        self.counters = QCheckBox("Cou&nters")
        self.counters.setToolTip(by_name(options.PROFILE, "counters").help)
        self.run_button = QPushButton("&Profile")
        self.run_button.setProperty("role", "primary")
        self.run_button.setToolTip("Record every kernel, copy, call and step, and the cold start")
        self.run_button.clicked.connect(self.request_run)
        self.cancel_button = QPushButton("Cancel")
        self.cancel_button.clicked.connect(self.cancel_wanted)
        line = FlowLayout(self, spacing=6)
        for words, field in (
            ("&Model", self.model),
            ("Bac&kends", self.backends),
            ("Batch si&zes", self.batches),
            ("Pre&cision", self.precision),
            ("Pa&sses", self.runs),
        ):
            line.addWidget(pair(words, field))
        line.addWidget(self.counters)
        self.kernels = Label()
        self.kernels.setProperty("role", "muted")
        line.addWidget(self.kernels)
        self.model.currentIndexChanged.connect(lambda _: self.show_kernels())
        line.addWidget(self.run_button)
        line.addWidget(self.cancel_button)
        for words, tip, do in (
            ("&Open…", "Show a saved profile", self.open_wanted.emit),
            ("Save &trace…", "A trace for Perfetto (ui.perfetto.dev) or Chrome", self.trace_wanted.emit),
            ("Cop&y as command", "The command line that records the same profile", self.copy_command),
        ):
            button = QPushButton(words)
            button.setToolTip(tip)
            button.clicked.connect(do)
            line.addWidget(button)
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
            runs=self.runs.value(),
            counters=self.counters.isChecked(),
            rungs=dict(rungs),
            kernel_dirs=tuple(folders),
        )

    def set_job(self, job: ProfileJob) -> None:
        """Show what a profile was taken of."""
        if (at := self.model.findData(job.model)) >= 0:
            self.model.setCurrentIndex(at)
        self._wanted = set(job.backends)
        self._show_backends()
        self.batches.setCurrentText(",".join(map(str, job.batches)))
        self.runs.setValue(job.runs)
        self.counters.setChecked(job.counters)
        if (at := self.precision.findText(job.precision)) >= 0:
            self.precision.setCurrentIndex(at)

    def choose_model(self, model: str) -> None:
        """Have this model profiled next, where it is one of the list."""
        found = (i for i in range(self.model.count()) if stem(self.model.itemData(i)) == stem(model))
        if (at := next(found, -1)) >= 0:
            self.model.setCurrentIndex(at)

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
        if [self.model.itemData(i) for i in range(self.model.count())] == list(models):
            return
        chosen = self.model.currentData()
        self.model.clear()
        for model in models:
            self.model.addItem(Path(model).stem if model.endswith(".onnx") else model, model)
        self.model.setCurrentIndex(max(0, self.model.findData(chosen)))

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
            self.told.emit(str(error))

    def request_run(self) -> None:
        """As the button: ask for the profile, or tell what is missing."""
        try:
            job = self.job()
        except InputError as error:
            self.told.emit(str(error))
            return
        self.run_wanted.emit(job)

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
        able: Mapping[str, None] = dict.fromkeys(
            p for info in self._infos if info.name in self.chosen for p in info.precisions
        )
        known = [self.precision.itemText(i) for i in range(self.precision.count())]
        if able and known != list(able):
            chosen = self.precision.currentText()
            self.precision.clear()
            self.precision.addItems(list(able))
            self.precision.setCurrentIndex(max(0, self.precision.findText(chosen)))


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


def pair(words: str, field: QWidget) -> QWidget:
    """A field after its name, of which "&" marks the key that leads there."""
    field.setAccessibleName(words.replace("&", ""))
    label = Label(words)
    label.setBuddy(field)
    made = QWidget()
    filled(QHBoxLayout(made), label, field, margins=(0, 0, 4, 0), spacing=5)
    return made
