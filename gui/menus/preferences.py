"""File: the preferences. View: the size of the text. Each change holds and is stored at once.

What command and window share stands in the user's configuration file (bench.run.settings); theme, size of the
text and notices are the window's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QGroupBox,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from bench.run import settings
from bench.words.option import Option
from gui.base.boxes import as_row, filled, placed, scrolled
from gui.base.theme import BROAD, CHOICES, GAP, LEAST_ZOOM, MOST_ZOOM, WIDE, ZOOM_STEP
from gui.shell.main_window import Actions, MainWindow
from gui.shell.notices import MATTERS
from gui.widgets.controls import Combo, Label, as_tip, push_button
from kernels.errors import InputError

ORDER = 16
# The settings that are asked for here: the words before the field, and what an empty field means.
ASKED = {
    "budget": ("&Time for each case, in seconds", "as fits this machine"),
    "backend": ("&Backends, separated by commas", "all that can run"),
    "editor": ("&Editor", "VISUAL or EDITOR, else the desktop's choice"),
    "runs": ("Folder of new &runs", "the folder “runs” where the program is started"),
}
TIPS = {"editor": "The usual editors need no more than their name; {file} and {line} are filled in"}
GROUPS = {"Measuring": ("budget", "backend"), "Files": ("editor", "runs")}


def add_to(window: MainWindow, actions: Actions) -> None:
    preferences = window.preferences = Preferences(window)
    theming = window.theming
    actions.add("file", "preferences", "Preferences…", preferences.show, "Ctrl+,")
    actions.add(
        "view",
        "larger",
        "Lar&ger text",
        lambda: theming.enlarge(theming.zoom + ZOOM_STEP),
        ["Ctrl++", "Ctrl+="],
    )
    actions.add(
        "view", "smaller", "S&maller text", lambda: theming.enlarge(theming.zoom - ZOOM_STEP), "Ctrl+-"
    )
    actions.add("view", "usual-size", "&Usual size of text", lambda: theming.enlarge(100), "Ctrl+0")


class Preferences(QObject):
    """Stores what is changed, and shows the dialog."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.dialog: PreferencesDialog | None = None
        window.theming.changed.connect(self._on_look)
        self._take_over_editor()

    def show(self, setting: str = "") -> PreferencesDialog:
        """Show the dialog, with the caret in the field of a setting (of ASKED)."""
        if self.dialog is None:
            self.dialog = PreferencesDialog(self._window, self)
            self.dialog.finished.connect(self._on_closed)
        self.dialog.show()
        self.dialog.raise_()
        if setting in self.dialog.fields:
            self.dialog.fields[setting].setFocus()
        return self.dialog

    def store(self, name: str, text: str) -> str:
        """Store a setting as it was typed, and let it hold. Returns "" or, in a sentence, what is wrong."""
        option = settings.LASTING[name]
        texts = [part.strip() for part in text.split(",")] if option.value.repeated else [text.strip()]
        try:
            settings.store(name, [part for part in texts if part])
            self._apply(name)
        except InputError as error:
            return str(error)
        return ""

    def _apply(self, name: str) -> None:
        window = self._window
        if name in ("budget", "backend"):
            window.form.take_settings()
        elif name == "runs":
            folder = settings.runs_folder()
            for session in window.sessions:
                session.runs = folder
            window.library.runs = folder
            window.library.refresh()

    def _on_look(self) -> None:
        stored, theming = self._window.settings, self._window.theming
        stored.setValue("theme", theming.choice)
        stored.setValue("zoom", theming.zoom)
        stored.sync()

    def _on_closed(self) -> None:
        self.dialog = None

    def _take_over_editor(self) -> None:
        """Put the editor that earlier versions kept with the window into the user's file."""
        stored = self._window.settings
        if editor := str(stored.value("editor", "") or "").strip():
            try:
                settings.store("editor", [editor])
            except InputError as error:
                self._window.tell(str(error), "failed")
                return
            stored.remove("editor")


class PreferencesDialog(QDialog):
    """The preferences. `fields` has the fields of the shared settings by their name. It blocks nothing."""

    def __init__(self, window: MainWindow, preferences: Preferences) -> None:
        super().__init__(window)
        self._window, self._preferences = window, preferences
        self.setWindowTitle("Preferences")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.fields: dict[str, QLineEdit] = {}
        self.problem = Label(role="failed", wrap=True)
        self.problem.hide()
        parts: list[QWidget] = [self._look()]
        parts += [self._shared(title, names) for title, names in GROUPS.items()]
        parts += [self._notices(), self.problem, self._where()]
        body = QWidget()
        filled(QVBoxLayout(body), *parts, 1, margins=(WIDE, WIDE, WIDE, WIDE), spacing=GAP)
        close = QDialogButtonBox()
        close.addButton("Close", QDialogButtonBox.ButtonRole.RejectRole)
        close.rejected.connect(self.reject)
        filled(QVBoxLayout(self), (scrolled(body, "Preferences", focus=False), 1), close)
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)  # Enter in a field takes what was typed, and closes nothing
        window.theming.changed.connect(self._show_look)
        around = QSize(2 * BROAD, close.sizeHint().height() + 2 * BROAD)
        self.resize(placed(body.sizeHint() + around, self.screen().availableGeometry()).size())

    # ------------------------------------------------------------------------------------------ the inside

    def _look(self) -> QWidget:
        theming = self._window.theming
        self.theme = Combo("Theme", chosen=lambda _: theming.choose(self.theme.currentData()))
        self.zoom = QSpinBox()
        self.zoom.setRange(LEAST_ZOOM, MOST_ZOOM)
        self.zoom.setSingleStep(ZOOM_STEP)
        self.zoom.setSuffix(" %")
        self.zoom.setKeyboardTracking(False)
        self.zoom.valueChanged.connect(theming.enlarge)
        self._show_look()
        return _group("Look", (("T&heme", self.theme), ("&Size of text", self.zoom)))

    def _show_look(self) -> None:
        theming = self._window.theming
        self.theme.offer(CHOICES, theming.choice)
        self.zoom.blockSignals(True)
        self.zoom.setValue(theming.zoom)
        self.zoom.blockSignals(False)

    def _shared(self, title: str, names: Sequence[str]) -> QWidget:
        rows: list[tuple[str, QWidget]] = []
        held, problem = _held()
        self._tell(problem)
        for name in names:
            words, empty = ASKED[name]
            field = self.fields[name] = QLineEdit(placeholderText=empty)
            field.setToolTip(as_tip(TIPS.get(name, settings.LASTING[name].help)))
            if name in held:
                text, elsewhere = held[name]
                field.setText(text)
                field.setReadOnly(bool(elsewhere))
                if elsewhere:
                    field.setToolTip(as_tip(f"{elsewhere} says it, and that goes before your own file."))
            field.editingFinished.connect(lambda name=name, field=field: self._on_typed(name, field))
            row: QWidget = field
            if name == "runs" and not field.isReadOnly():
                choose = push_button("&Choose…", lambda _=False, field=field: self._choose_folder(field))
                row = as_row((field, 1), choose)
            rows.append((words, row))
        return _group(title, rows)

    def _choose_folder(self, field: QLineEdit) -> None:
        if folder := QFileDialog.getExistingDirectory(self, "The folder of new runs", field.text()):
            field.setText(folder)
            self._on_typed("runs", field)

    def _on_typed(self, name: str, field: QLineEdit) -> None:
        if field.isReadOnly() or field.text().strip() == _held()[0].get(name, ("", ""))[0]:
            return
        self._tell(self._preferences.store(name, field.text()))

    def _tell(self, problem: str) -> None:
        self.problem.setText(problem)
        self.problem.setVisible(bool(problem))

    def _notices(self) -> QWidget:
        banner = self._window.banner
        self.notices: dict[str, QCheckBox] = {}
        for matter, words in MATTERS.items():
            box = self.notices[matter] = QCheckBox(words)
            box.setChecked(matter not in banner.hushed)
            box.toggled.connect(lambda on, matter=matter: banner.hush(matter, not on))
        group = QGroupBox("Tell me")
        filled(QVBoxLayout(group), *self.notices.values())
        return group

    def _where(self) -> QWidget:
        words = f"Measuring and files: {settings.user_file()}, which the commands read, too."
        return Label(words, role="caption", wrap=True, selectable=True)


def _group(title: str, rows: Sequence[tuple[str, QWidget]]) -> QGroupBox:
    group = QGroupBox(title)
    form = QFormLayout(group)
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
    form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
    for words, row in rows:
        field = row.findChild(QLineEdit) if type(row) is QWidget else row
        assert field is not None
        field.setAccessibleName(words.replace("&", ""))
        form.addRow(Label(words, buddy=field), row)
    return group


def _held() -> tuple[dict[str, tuple[str, str]], str]:
    """The settings that hold: name → the text, and who says it if it is not the user's own file. And what is
    wrong with a file, in a sentence."""
    try:
        known = settings.known()
    except InputError as error:
        return {}, str(error)
    own = str(settings.user_file())
    return {
        name: (_line(settings.LASTING[name], each.texts), "" if each.where.startswith(own) else each.where)
        for name, each in known.items()
    }, ""


def _line(option: Option, texts: Sequence[str]) -> str:
    return ", ".join(texts) if option.value.repeated else texts[0]
