"""The fields of a form: lists of check boxes, text that is checked while it is typed, options as fields,
what a chosen model takes, and the kernels that the user chose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from bench.questions.asked import Takes
from bench.results.records import Job, stem
from bench.run import chosen_rungs
from bench.words.option import Number, Numbers, Option, Switch, Text
from gui.base.boxes import as_row, filled
from gui.base.theme import TIGHT
from gui.widgets.controls import Combo, Elided, Label, TermLabel, as_tip, tool_button
from kernels.errors import KernelscopeError
from models import names

KEY = Qt.ItemDataRole.UserRole


class CheckList(QListWidget):
    """A list whose items have check boxes. A click anywhere on an item, or Space, toggles it."""

    chosen = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        self._most_rows = 0
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._turned_by_box = False
        self.itemChanged.connect(self._on_changed)
        self.itemClicked.connect(self._on_clicked)
        self.itemPressed.connect(self._on_pressed)

    @property
    def checked(self) -> tuple[str, ...]:
        """The keys of the checked items that are not greyed, in the list's order."""
        return tuple(
            item.data(KEY)
            for item in self._items()
            if item.checkState() == Qt.CheckState.Checked and self._usable(item)
        )

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(item.data(KEY) for item in self._items())

    @property
    def usable(self) -> tuple[str, ...]:
        """The keys of the items that are not greyed."""
        return tuple(item.data(KEY) for item in self._items() if self._usable(item))

    def put(self, key: str, text: str, checked: bool = False, tip: str = "", refused: str = "") -> None:
        """Add an item, or change the one with this key. refused: why it cannot be used; it is greyed, and
        this is its tooltip."""
        self.blockSignals(True)
        item = self._find(key)
        if item is None:
            item = QListWidgetItem()
            item.setData(KEY, key)
            self.addItem(item)
        item.setText(text)
        item.setToolTip(refused or tip or text)
        flags = Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsSelectable
        item.setFlags(flags if refused else flags | Qt.ItemFlag.ItemIsEnabled)
        item.setCheckState(Qt.CheckState.Checked if checked else Qt.CheckState.Unchecked)
        self.blockSignals(False)
        self.updateGeometry()

    @property
    def current(self) -> str:
        """The key of the current item, "" for none."""
        item = self.currentItem()
        return item.data(KEY) if item is not None else ""

    def reveal(self, key: str) -> None:
        """Scroll to the item with this key, if there is one."""
        item = self._find(key)
        if item is not None:
            self.scrollToItem(item)

    def remove(self, key: str) -> None:
        """Remove the item with this key, if there is one."""
        item = self._find(key)
        if item is not None:
            self.takeItem(self.row(item))
            self.updateGeometry()

    def check(self, keys: Iterable[str]) -> None:
        """Check the items with these keys and uncheck all others."""
        wanted = set(keys)
        self.blockSignals(True)
        for item in self._items():
            state = Qt.CheckState.Checked if item.data(KEY) in wanted else Qt.CheckState.Unchecked
            item.setCheckState(state)
        self.blockSignals(False)
        self.chosen.emit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange and self._most_rows:
            self.fit(self._most_rows)

    def fit(self, most_rows: int) -> None:
        """Make the list as high as its items, `most_rows` at most."""
        self._most_rows = most_rows
        rows = min(max(1, self.count()), most_rows)
        each = self.sizeHintForRow(0) if self.count() else self.fontMetrics().height() + 6
        self.setFixedHeight(rows * each + 2 * self.frameWidth() + 2)

    def _items(self) -> list[QListWidgetItem]:
        return [self.item(i) for i in range(self.count())]

    def _find(self, key: str) -> QListWidgetItem | None:
        return next((item for item in self._items() if item.data(KEY) == key), None)

    @staticmethod
    def _usable(item: QListWidgetItem) -> bool:
        return bool(item.flags() & Qt.ItemFlag.ItemIsEnabled)

    def _on_changed(self, item: QListWidgetItem) -> None:
        self._turned_by_box = True
        self.chosen.emit()

    def _on_pressed(self, item: QListWidgetItem) -> None:
        self._turned_by_box = False

    def _on_clicked(self, item: QListWidgetItem) -> None:
        if not self._turned_by_box and self._usable(item):
            checked = item.checkState() == Qt.CheckState.Checked
            item.setCheckState(Qt.CheckState.Unchecked if checked else Qt.CheckState.Checked)
        self._turned_by_box = False


class CheckColumn(QWidget):
    """Check boxes in a grid with `columns` columns, for a few choices."""

    chosen = Signal()

    def __init__(self, columns: int = 4, parent: QWidget | None = None) -> None:
        from PySide6.QtWidgets import QGridLayout

        super().__init__(parent)
        self._columns = columns
        self._boxes: dict[str, QCheckBox] = {}
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setColumnStretch(columns, 1)

    @property
    def checked(self) -> tuple[str, ...]:
        return tuple(key for key, box in self._boxes.items() if box.isChecked() and box.isEnabled())

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._boxes)

    def put(self, key: str, checked: bool = False, refused: str = "", tip: str = "") -> None:
        """Add a box, or change the one with this key. refused: why it cannot be used; it is greyed, and
        this is its tooltip."""
        box = self._boxes.get(key)
        if box is None:
            box = self._boxes[key] = QCheckBox(key)
            box.setChecked(checked)
            box.toggled.connect(self.chosen)
            at = len(self._boxes) - 1
            self._grid.addWidget(box, at // self._columns, at % self._columns)
            # Boxes come when the worker says what the machine can run; the Tab order follows their places.
            before: QWidget | None = list(self._boxes.values())[at - 1] if at else self.previousInFocusChain()
            while (
                before is not None and before.focusPolicy() == Qt.FocusPolicy.NoFocus and before is not self
            ):
                before = before.previousInFocusChain()
            if before is not None:
                QWidget.setTabOrder(before, box)
        box.setEnabled(not refused)
        box.setToolTip(refused or tip)

    def check(self, keys: Iterable[str]) -> None:
        wanted = set(keys)
        for key, box in self._boxes.items():
            box.setChecked(key in wanted)


class CheckedText(QWidget):
    """A combo box to choose from or to type into. A sentence below it says what is wrong with the text.

    parse: turns the text into a value, and raises a KernelscopeError if it cannot.
    """

    edited = Signal()

    def __init__(
        self,
        name: str,
        parse: Callable[[str], object],
        presets: Mapping[str, str] | Sequence[str] = (),
        placeholder: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._parse = parse
        self.box = QComboBox()
        self.box.setEditable(True)
        self.box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.box.setCompleter(None)  # type: ignore[arg-type]  # what is typed stands: 1 is no 1..256
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.setMinimumContentsLength(8)
        self.box.setAccessibleName(name)
        for preset in presets:
            tip = presets[preset] if isinstance(presets, Mapping) else ""
            self.box.addItem(preset)
            self.box.setItemData(self.box.count() - 1, tip or preset, Qt.ItemDataRole.ToolTipRole)
        self.box.setCurrentText("")
        self.box.lineEdit().setPlaceholderText(placeholder)  # type: ignore[union-attr]  # it is editable
        self._wrong = Label(role="failed", wrap=True)
        self._wrong.hide()
        filled(QVBoxLayout(self), self.box, self._wrong, margins=(0, 0, 0, 0), spacing=2)
        self.box.editTextChanged.connect(self._on_edited)

    @property
    def text(self) -> str:
        return self.box.currentText().strip()

    @text.setter
    def text(self, text: str) -> None:
        self.box.setCurrentText(text)
        self.box.lineEdit().setCursorPosition(0)  # type: ignore[union-attr]  # it is editable

    @property
    def problem(self) -> str:
        """What is wrong with the text, in a sentence, or ""."""
        try:
            self._parse(self.text)
        except KernelscopeError as error:
            return str(error)
        return ""

    @property
    def value(self) -> object:
        """The parsed text. Raises a KernelscopeError if `problem` is not empty."""
        return self._parse(self.text)

    def _on_edited(self) -> None:
        problem = self.problem
        self._wrong.setText(problem)
        self._wrong.setVisible(bool(problem))
        self.edited.emit()


def heading(text: str, buddy: QWidget | None = None) -> QLabel:
    """A bold caption above a field. Alt and its marked letter lead to the field."""
    return TermLabel(text, role="heading", buddy=buddy)


@dataclass(frozen=True)
class Field:
    """An option in a form. widget: what the user fills in; changed: its signal; get: returns its value,
    raises InputError if it has none; put: shows another value."""

    option: Option
    widget: Any
    changed: Any
    get: Callable[[], Any]
    put: Callable[[Any], None]


def field(
    option: Option,
    presets: Mapping[str, str] | Sequence[str] = (),
    read: Callable[[str], Any] | None = None,
) -> Field:
    """Make the field of an option. presets: texts to choose from; read: replaces the option's own parser
    of a line."""
    value = option.value
    if isinstance(value, Switch):
        form_field = _switch(option, value)
    elif value.known:
        form_field = _choice(option, value)
    elif isinstance(value, Number) and not isinstance(value, Numbers):
        form_field = _number(option, value)
    else:
        form_field = _text(option, presets, read or value.read_line)
    form_field.widget.setAccessibleName(option.label.replace("&", ""))
    form_field.widget.setAccessibleDescription(option.help)
    getattr(form_field.widget, "box", form_field.widget).setToolTip(option.help)
    return form_field


def values(fields: Iterable[Field]) -> dict[str, Any]:
    """The values of fields, as the fields of a job. Raises InputError."""
    return {
        name: value
        for form_field in fields
        for name, value in form_field.option.as_fields(form_field.get()).items()
    }


def fill(fields: Iterable[Field], job: Any) -> None:
    """Show a job's values in the fields, without any signal."""
    for form_field in fields:
        with QSignalBlocker(form_field.widget):
            form_field.put(form_field.option.of(job))


def _switch(option: Option, value: Switch) -> Field:
    box = QCheckBox(option.label)

    def get() -> Any:
        return value.on if box.isChecked() else value.off

    return Field(option, box, box.toggled, get, lambda shown: box.setChecked(shown == value.on))


def _choice(option: Option, value: Text) -> Field:
    box = Combo()
    assert isinstance(value.known, Mapping)
    for word, means in value.known.items():
        box.addItem(f"{word}: {means}", word)
    return Field(
        option, box, box.currentIndexChanged, box.currentData, lambda v: box.setCurrentIndex(box.findData(v))
    )


def _number(option: Option, value: Number) -> Field:
    # The value that means "none", if there may be none.
    none: Any = value.least - 1 if value.words else value.least
    box: QSpinBox | QDoubleSpinBox
    if value.kind is int:
        box = QSpinBox(minimum=int(none), maximum=value.most)
    else:
        box = QDoubleSpinBox(minimum=0.05, maximum=600.0, decimals=2, singleStep=0.25)
    box.setSpecialValueText(value.words)
    box.setSuffix(f" {option.hint}" if option.hint else "")
    box.lineEdit().setTextMargins(TIGHT, 0, 0, 0)

    def get() -> Any:
        return value.nothing if value.words and box.value() == none else box.value()

    def put(shown: Any) -> None:
        box.setValue(none if shown == value.nothing else shown)

    return Field(option, box, box.valueChanged, get, put)


def _text(option: Option, presets: Mapping[str, str] | Sequence[str], read: Callable[[str], Any]) -> Field:
    box = CheckedText(option.label.replace("&", ""), read, presets, option.hint)

    def put(value: Any) -> None:
        box.text = option.value.line(value)

    return Field(option, box, box.edited, lambda: box.value, put)


class ModelNote(Label):
    """What the chosen model's file takes and gives. Hidden while no file is chosen. `takes_wanted` carries
    a job; the first model of it is to be looked at."""

    takes_wanted = Signal(object)

    def __init__(self) -> None:
        super().__init__(role="muted", wrap=True)
        self.setAccessibleName("What the model takes")
        self.hide()
        self._known: dict[str, Takes] = {}
        self._job: Job | None = None

    def fixed(self, models: Sequence[str]) -> dict[str, int]:
        """For each of these files that runs at one batch size only: that size."""
        return {
            model: size
            for model in models
            if model in self._known and (size := self._known[model].fixed_batch) is not None
        }

    def look(self, job: Job) -> None:
        """Follow the form: if the file that was chosen last, or what it depends on, has changed, have it
        looked at."""
        files = [model for model in job.models if model not in names.models()]
        if not files:
            self._job = None
            self.hide()
            return
        wanted = Job(
            models=(files[-1],),
            backends=(),
            dataset=job.dataset,
            preprocess=job.preprocess,
            labels=job.labels,
            scores=job.scores,
            inputs=job.inputs,
            dims=job.dims,
        )
        if wanted != self._job:
            self._job = wanted
            self.setText(f"Looking at {stem(files[-1])} …")
            self.show()
            self.takes_wanted.emit(wanted)

    def tell(self, takes: Takes) -> bool:
        """Show what a file takes. Returns whether its fixed batch size was not known before."""
        news = self.fixed([takes.model]) != ({takes.model: takes.fixed_batch} if takes.fixed_batch else {})
        self._known[takes.model] = takes
        if self._job is None or self._job.models != (takes.model,):
            return news
        lines = [f"{name}: {words}" for name, words in takes.lines]
        self.setText("\n".join([stem(takes.model), *lines, *filter(None, [takes.refused])]))
        self.show()
        return news


class RungChoices(QWidget):
    """The kernels that the user chose for nodes of models, in our engine or (swaps) in the reference,
    each with a button that removes it. Hidden while there are none. `chosen` is emitted on each change."""

    chosen = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rungs: dict[str, str] = {}
        self._swaps: dict[str, str] = {}
        self.folders: tuple[str, ...] = ()
        self._models: tuple[str, ...] = ()
        self._lines: list[QWidget] = []
        self._column = filled(QVBoxLayout(self), heading("Kernels chosen"), margins=(0, 0, 0, 0), spacing=2)
        self.hide()

    @property
    def rungs(self) -> dict[str, str]:
        """The chosen rungs, as bench.results.records.Job.rungs has them."""
        return dict(self._rungs)

    @property
    def swaps(self) -> dict[str, str]:
        """Those that take a node's place in the reference, as Job.swaps has them."""
        return dict(self._swaps)

    @property
    def words(self) -> list[str]:
        """The lines that are shown, as text."""
        return [
            label.text()
            for line in self._lines
            if (label := line.findChild(Elided)) is not None and not line.isHidden()
        ]

    def set_chosen(
        self,
        rungs: Mapping[str, str],
        folders: Sequence[str],
        models: Sequence[str],
        swaps: Mapping[str, str] | None = None,
    ) -> None:
        """Replace all choices. models: the models that the keys may name."""
        self._rungs, self.folders, self._models = dict(rungs), tuple(folders), tuple(models)
        self._swaps = dict(swaps or {})
        self._show()

    def choose(
        self, key: str, rung: str, folders: Sequence[str], models: Sequence[str], swap: bool = False
    ) -> None:
        """Choose a rung for a node, in place of any other for it. swap: in the reference."""
        (self._swaps if swap else self._rungs)[key] = rung
        self.folders = tuple(dict.fromkeys([*self.folders, *folders]))
        self._models = tuple(models)
        self._show()
        self.chosen.emit()

    def remove(self, key: str, swap: bool = False) -> None:
        """Let the backend choose for this node again. With the last rung the folders go, too."""
        (self._swaps if swap else self._rungs).pop(key, None)
        if not self._rungs and not self._swaps:
            self.folders = ()
        self._show()
        self.chosen.emit()

    def remove_folder(self, folder: str) -> None:
        self.folders = tuple(known for known in self.folders if known != folder)
        self._show()
        self.chosen.emit()

    def _show(self) -> None:
        for line in self._lines:
            self._column.removeWidget(line)
            line.hide()
            line.deleteLater()
        self._lines = []
        for key, rung in self._rungs.items():
            self._add(sentence(key, rung, self._models), partial(self.remove, key))
        for key, rung in self._swaps.items():
            words = f"{sentence(key, rung, self._models)}, in the reference"
            self._add(words, partial(self.remove, key, swap=True))
        for folder in self.folders:
            self._add(f"kernels of {Path(folder).name}", partial(self.remove_folder, folder), folder)
        self.setVisible(bool(self._lines))

    def _add(self, words: str, remove: Callable[[], None], tip: str = "") -> None:
        label = Elided(words)
        if tip:
            label.setToolTip(as_tip(tip))
        away = as_tip(f"Take this away: {words}")
        button = tool_button("✕", lambda: remove(), away, "switch", name=f"Take away: {words}")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        line = as_row((label, 1), button)
        self._column.addWidget(line)
        self._lines.append(line)


def sentence(key: str, rung: str, models: Sequence[str]) -> str:
    """A choice as text, for example "conv1 of lenet5-digits: im2col (cpu)"."""
    owner, node, device, name = chosen_rungs.parts(key, rung, models)
    of = f" of {owner}" if owner else ""
    on = f" ({device})" if device else ""
    return f"{node}{of}: {name}{on}"
