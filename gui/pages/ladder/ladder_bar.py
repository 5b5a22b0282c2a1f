"""What ladder to climb: model, node, batch, device, precision, rungs, kernel folders; and Run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QStandardItemModel
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QMenu,
    QPushButton,
    QSpinBox,
    QToolButton,
    QWidget,
)

from bench.kinds.options import by_name
from bench.ladder.questions import LadderAnswer, LadderQuestion
from bench.results.records import stem
from bench.run import options
from gui.base.scale import GAP, TIGHT
from gui.widgets.combo import Combo
from gui.widgets.flow_layout import FlowLayout
from gui.widgets.labels import as_tip, labelled

EVERY = "every"
LEAST_LETTERS = 5  # that the lists of devices and precisions have room for


class LadderBar(QWidget):
    """`chosen` carries the LadderQuestion that the user has made of the one shown. Its `run_button` and
    `cancel_button` are for the page to place."""

    chosen = Signal(object)
    run_wanted = Signal()
    cancel_wanted = Signal()
    folder_wanted = Signal()
    template_wanted = Signal()
    command_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._question: LadderQuestion | None = None
        self._rungs: tuple[str, ...] = ()
        self._shown: object = None
        self.model, self.op, self.node = Combo(), Combo(), Combo()
        self.device, self.precision = Combo(), Combo()
        self.batch = QSpinBox(minimum=1, maximum=options.MAX_BATCH)
        self.batch.setKeyboardTracking(False)
        self.batch.lineEdit().setTextMargins(TIGHT, 0, 0, 0)
        self.batch.setMaximumWidth(10 * self.batch.fontMetrics().averageCharWidth())
        self.whole_model = QCheckBox("&Whole model too")
        self.whole_model.setToolTip(by_name(options.LADDER, "whole-model").help)
        self.rungs = self._menu_button("R&ungs", "Which rungs to run")
        self.kernels = self._menu_button("&Kernels", "Folders of your own kernels")
        self.run_button = QPushButton("Run the ladder")
        self.run_button.setProperty("role", "primary")
        self.run_button.setToolTip("Check every rung, then time those that are right (Ctrl+Shift+R)")
        self.run_button.clicked.connect(self.run_wanted)
        self.cancel_button = QPushButton("&Cancel")
        self.cancel_button.clicked.connect(self.cancel_wanted)
        self.cancel_button.hide()
        line = FlowLayout(self, spacing=GAP)
        for words, field in (
            ("M&odel", self.model),
            ("O&perator", self.op),
            ("&Node", self.node),
            ("&Batch", self.batch),
            ("&Device", self.device),
            ("Pr&ecision", self.precision),
        ):
            line.addWidget(self._pair(words, field))
        for widget in (self.rungs, self.kernels, self.whole_model):
            line.addWidget(widget)
        self.batch.valueChanged.connect(lambda value: self._choose(batch=value))
        self.whole_model.toggled.connect(lambda on: self._choose(whole_model=on))
        self.model.activated.connect(self._on_model)
        self.op.activated.connect(lambda _: self._choose(op=self.op.currentData(), node="", rungs=()))
        self.node.activated.connect(self._on_node)
        self.device.activated.connect(lambda _: self._choose(device=self.device.currentData(), rungs=()))
        self.precision.activated.connect(lambda _: self._choose(precision=self.precision.currentData()))

    def show_choice(
        self, question: LadderQuestion, answer: LadderAnswer | None, models: Sequence[str], active: bool
    ) -> None:
        """What is asked and what there is to choose from; `models` as the form has them."""
        now = (question, answer, tuple(models), active)
        if now == self._shown:
            return
        self._shown, self._question = now, question
        names = dict.fromkeys([*models, question.model])
        _fill(self.model, {name: stem(name) for name in names}, question.model)
        self.batch.blockSignals(True)
        self.batch.setValue(question.batch)
        self.batch.blockSignals(False)
        self.whole_model.blockSignals(True)
        self.whole_model.setChecked(question.whole_model)
        self.whole_model.blockSignals(False)
        if answer is not None:
            self._show_answer(question, answer)
        ladder = answer.ladder if answer is not None else None
        devices = answer.devices if answer is not None else ()
        refused = ladder is not None and any(d.refused for d in devices if d.name == ladder.job.device)
        self.run_button.setEnabled(ladder is not None and not refused)
        before, after = self.run_button, self.cancel_button
        if not active:
            before, after = after, before
        focused = before.hasFocus()
        before.hide()
        after.show()
        if focused:  # the one key that starts a ladder ends it too
            after.setFocus()
        for field in (self.model, self.op, self.node, self.device, self.precision):
            field.setEnabled(not active and field.count() > 0)
        for other in (self.batch, self.rungs, self.kernels, self.whole_model):
            other.setEnabled(not active)
        whole = answer is not None and any(info.whole for info in answer.rungs)
        self.whole_model.setEnabled(not active and not whole)
        self.updateGeometry()

    def _show_answer(self, question: LadderQuestion, answer: LadderAnswer) -> None:
        job = answer.ladder.job if answer.ladder is not None else None
        ops = dict.fromkeys(node.op for node in answer.nodes)
        op = job.op if job is not None else question.op
        _fill(self.op, {name: name for name in ops}, op)
        nodes = {node.node: f"{node.node}: {node.words}" for node in answer.nodes if node.op == op}
        _fill(self.node, nodes, job.node if job is not None else question.node)
        _fill(self.device, {d.name: d.name for d in answer.devices}, job.device if job else question.device)
        items = self.device.model()
        for row, device in enumerate(answer.devices):
            item = items.item(row) if isinstance(items, QStandardItemModel) else None
            if item is not None:
                item.setToolTip(device.refused or "It can run here")
                if device.refused:
                    item.setText(f"{device.name} (to read)")
        self.device.setMinimumContentsLength(max(LEAST_LETTERS, len(self.device.currentText())))
        refused = [
            f"{d.name} cannot run here: {d.refused}; its kernels can be read and compiled."
            for d in answer.devices
            if d.refused
        ]
        self.device.setToolTip("\n".join(refused))
        every = {"": EVERY} if len({info.case.precision for info in answer.rungs}) > 1 else {}
        _fill(
            self.precision,
            every | {name: name for name in answer.precisions},
            (job.precision if job is not None else question.precision) or next(iter(every), "fp32"),
        )
        self._fill_rungs(question, answer)
        self._fill_kernels(question)

    # ------------------------------------------------------------------------------------------ the inside

    def _menu_button(self, words: str, tip: str) -> QToolButton:
        button = QToolButton()
        button.setText(words)
        button.setToolTip(tip)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        menu = QMenu(button)
        menu.setToolTipsVisible(True)
        button.setMenu(menu)
        return button

    def _pair(self, words: str, field: QComboBox | QSpinBox) -> QWidget:
        if isinstance(field, QComboBox):
            field.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
            most = 58 if field is self.node else 26
            field.setMaximumWidth(most * field.fontMetrics().averageCharWidth())
            if field in (self.device, self.precision):  # the list below is as wide as its longest entry
                field.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
                field.setMinimumContentsLength(LEAST_LETTERS)
            field.view().setTextElideMode(Qt.TextElideMode.ElideNone)
        return labelled(field, words, gap=6)

    def _fill_rungs(self, question: LadderQuestion, answer: LadderAnswer) -> None:
        menu = self.rungs.menu()
        menu.clear()
        self._rungs = tuple(info.case.rung for info in answer.rungs)
        every = menu.addAction("&All rungs")
        every.triggered.connect(lambda: self._choose(rungs=()))
        menu.addSeparator()
        for info in answer.rungs:
            whose = "yours" if info.case.user else "side" if info.case.side else ""
            told = ", ".join(filter(None, (whose, info.case.language)))
            marks = f" ({told})" if told else ""
            action = QAction(f"{info.case.label}{marks}", menu, checkable=True)
            action.setChecked(not question.rungs or info.case.rung in question.rungs)
            action.setToolTip(as_tip(info.refused or info.case.idea))
            action.triggered.connect(lambda on, name=info.case.rung: self._on_rung(name, on))
            menu.addAction(action)
        count = len(question.rungs) if question.rungs else len(self._rungs)
        self.rungs.setText(f"R&ungs: {'all' if count == len(self._rungs) else count}")

    def _fill_kernels(self, question: LadderQuestion) -> None:
        menu = self.kernels.menu()
        menu.clear()
        menu.addAction("&Add kernel folder…", self.folder_wanted.emit)
        menu.addAction("&New kernel from template…", self.template_wanted.emit)
        if question.kernel_dirs:
            menu.addSeparator()
        for folder in question.kernel_dirs:
            action = menu.addAction(f"Take {Path(folder).name} away")
            action.setToolTip(folder)
            action.triggered.connect(lambda _=False, gone=folder: self._remove(gone))
        menu.addSeparator()
        menu.addAction("&Copy the ladder as a command", self.command_wanted.emit)
        count = len(question.kernel_dirs)
        self.kernels.setText(f"&Kernels: {count}" if count else "&Kernels")

    def _choose(self, **fields: object) -> None:
        if self._question is not None:
            self._shown = None  # what was asked is shown again, also where it was refused
            self.chosen.emit(msgspec.structs.replace(self._question, **fields))

    def _on_model(self) -> None:
        self._choose(model=self.model.currentData(), op="", node="", nodes=(), rungs=())

    def _on_node(self) -> None:
        self._choose(node=self.node.currentData(), nodes=())

    def _on_rung(self, name: str, on: bool) -> None:
        assert self._question is not None
        chosen = set(self._question.rungs or self._rungs)
        chosen = chosen | {name} if on else chosen - {name}
        if not chosen:  # the last one cannot be taken away
            chosen = {name}
        ordered = tuple(rung for rung in self._rungs if rung in chosen)
        self._choose(rungs=() if ordered == self._rungs else ordered)

    def _remove(self, folder: str) -> None:
        assert self._question is not None
        left = tuple(known for known in self._question.kernel_dirs if known != folder)
        self._choose(kernel_dirs=left, rungs=())


def _fill(box: QComboBox, items: dict[str, str], chosen: str) -> None:
    """Fill a list where it has changed, and set its choice."""
    if [(box.itemData(i), box.itemText(i)) for i in range(box.count())] != list(items.items()):
        box.clear()
        for data, words in items.items():
            box.addItem(words, data)
            box.setItemData(box.count() - 1, words, Qt.ItemDataRole.ToolTipRole)
    at = box.findData(chosen)
    box.setCurrentIndex(at if at >= 0 else 0)
    box.setEnabled(box.count() > 0)
