"""The job form's small widgets: lists and rows of check boxes, and text that is checked while it is typed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from gui.base.boxes import filled
from gui.widgets.labels import Label, TermLabel
from kernels.errors import KernelscopeError

KEY = Qt.ItemDataRole.UserRole


class CheckList(QListWidget):
    """A list whose items have check boxes; a click anywhere on an item, or Space, turns it."""

    chosen = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
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
        """The keys of the checked items that can be used, in the list's order."""
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
        """Add an item or change the one of that key; `refused` greys it and is its tooltip."""
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
        """The key of the item gone to, "" for none."""
        item = self.currentItem()
        return item.data(KEY) if item is not None else ""

    def remove(self, key: str) -> None:
        """Take an item away, where it is there."""
        item = self._find(key)
        if item is not None:
            self.takeItem(self.row(item))
            self.updateGeometry()

    def check(self, keys: Iterable[str]) -> None:
        """Check these and no others."""
        wanted = set(keys)
        self.blockSignals(True)
        for item in self._items():
            state = Qt.CheckState.Checked if item.data(KEY) in wanted else Qt.CheckState.Unchecked
            item.setCheckState(state)
        self.blockSignals(False)
        self.chosen.emit()

    def fit(self, most_rows: int) -> None:
        """As high as its items, up to so many."""
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
    """Check boxes side by side, two a line at most; used where there are few choices."""

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
        """Add a box or change it; `refused` greys it and is its tooltip."""
        box = self._boxes.get(key)
        if box is None:
            box = self._boxes[key] = QCheckBox(key)
            box.setChecked(checked)
            box.toggled.connect(self.chosen)
            at = len(self._boxes) - 1
            self._grid.addWidget(box, at // self._columns, at % self._columns)
            # Boxes come when the machine has told what it can; Tab meets them where they stand all the same.
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
    """A combo box to pick from or type into, with the sentence below it that says what is wrong.

    `parse` makes a value of the text, and raises an error of ours where it cannot.
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
        """The parsed text; raises an error of ours where `problem` is not empty."""
        return self._parse(self.text)

    def _on_edited(self) -> None:
        problem = self.problem
        self._wrong.setText(problem)
        self._wrong.setVisible(bool(problem))
        self.edited.emit()


def heading(text: str, buddy: QWidget | None = None) -> QLabel:
    """A bold caption over a field; Alt and its marked letter lead to the field."""
    label = TermLabel(text)
    label.setProperty("role", "heading")
    if buddy is not None:
        label.setBuddy(buddy)
    return label
