"""What ladder to climb: model, node, batch, device, precision, rungs, kernel folders; and Run."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QStandardItemModel
from PySide6.QtWidgets import (
    QComboBox,
    QSpinBox,
    QWidget,
)

from bench.questions.ladder_questions import LadderAnswer, LadderQuestion
from bench.results.records import stem
from bench.run import options
from bench.words.option import by_name
from gui.base.boxes import flowing
from gui.base.scale import GAP
from gui.form.option_fields import field as option_field
from gui.form.option_fields import fill, values
from gui.sessions.ladder_session import LadderSession
from gui.widgets.combo import Combo
from gui.widgets.controls import menu_button, push_button
from gui.widgets.labels import as_tip, labelled

EVERY = "every"
# Of each list what is asked for anew once another item of it is chosen.
FOLLOWING: dict[str, dict[str, object]] = {
    "model": {"op": "", "node": "", "nodes": (), "rungs": ()},
    "op": {"node": "", "rungs": ()},
    "node": {"nodes": ()},
    "device": {"rungs": ()},
    "precision": {},
}
LEAST_LETTERS = 5  # that the lists of devices and precisions have room for


class LadderBar(QWidget):
    """What the user chooses is asked of the session. `wanted` carries what is for the window: "folder",
    "template" or "command". Its `run_button` and `cancel_button` are for the page to place."""

    wanted = Signal(str)

    def __init__(self, session: LadderSession, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._question: LadderQuestion | None = None
        self._rungs: tuple[str, ...] = ()
        self._shown: object = None
        self.model, self.op, self.node, self.device, self.precision = (
            Combo(chosen=functools.partial(self._on_chosen, name)) for name in FOLLOWING
        )
        self.fields = [option_field(by_name(options.LADDER, name)) for name in ("batch", "whole-model")]
        self.batch, self.whole_model = (made.widget for made in self.fields)
        self.batch.setKeyboardTracking(False)
        self.batch.setMaximumWidth(10 * self.batch.fontMetrics().averageCharWidth())
        self.rungs = menu_button("R&ungs", "Which rungs to run")
        self.kernels = menu_button("&Kernels", "Folders of your own kernels")
        self.run_button = push_button(
            "Run the ladder",
            session.run,
            role="primary",
            tip="Check every rung, then time those that are right (Ctrl+Shift+R)",
        )
        self.cancel_button = push_button("&Cancel", session.cancel)
        self.cancel_button.hide()
        fields: dict[str, QComboBox | QSpinBox] = {
            "M&odel": self.model,
            "O&perator": self.op,
            "&Node": self.node,
            "&Batch": self.batch,
            "&Device": self.device,
            "Pr&ecision": self.precision,
        }
        pairs = [self._pair(words, field) for words, field in fields.items()]
        flowing(self, *pairs, self.rungs, self.kernels, self.whole_model, spacing=GAP)
        for made in self.fields:
            made.changed.connect(lambda _, made=made: self._choose(**values([made])))

    def show_choice(
        self, question: LadderQuestion, answer: LadderAnswer | None, models: Sequence[str], active: bool
    ) -> None:
        """What is asked and what there is to choose from; `models` as the form has them."""
        now = (question, answer, tuple(models), active)
        if now == self._shown:
            return
        self._shown, self._question = now, question
        names = dict.fromkeys([*models, question.model])
        self.model.offer({name: stem(name) for name in names}, question.model)
        fill(self.fields, question)
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
        self.op.offer({name: name for name in ops}, op)
        nodes = {node.node: f"{node.node}: {node.words}" for node in answer.nodes if node.op == op}
        self.node.offer(nodes, job.node if job is not None else question.node)
        self.device.offer({d.name: d.name for d in answer.devices}, job.device if job else question.device)
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
        self.precision.offer(
            every | {name: name for name in answer.precisions},
            (job.precision if job is not None else question.precision) or next(iter(every), "fp32"),
        )
        self._fill_rungs(question, answer)
        self._fill_kernels(question)

    # ------------------------------------------------------------------------------------------ the inside

    def _pair(self, words: str, field: QComboBox | QSpinBox) -> QWidget:
        if isinstance(field, QComboBox):
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
        menu.addAction("&Add kernel folder…", lambda: self.wanted.emit("folder"))
        menu.addAction("&New kernel from template…", lambda: self.wanted.emit("template"))
        if question.kernel_dirs:
            menu.addSeparator()
        for folder in question.kernel_dirs:
            action = menu.addAction(f"Take {Path(folder).name} away")
            action.setToolTip(folder)
            action.triggered.connect(lambda _=False, gone=folder: self._remove(gone))
        menu.addSeparator()
        menu.addAction("&Copy the ladder as a command", lambda: self.wanted.emit("command"))
        count = len(question.kernel_dirs)
        self.kernels.setText(f"&Kernels: {count}" if count else "&Kernels")

    def _choose(self, **fields: object) -> None:
        if self._question is not None:
            self._shown = None  # what was asked is shown again, also where it was refused
            self._session.ask(msgspec.structs.replace(self._question, **fields))

    def _on_chosen(self, name: str, _: int) -> None:
        self._choose(**{name: getattr(self, name).currentData()}, **FOLLOWING[name])

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
