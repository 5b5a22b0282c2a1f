"""The toolbar, and which parts of the window are visible: form, inspector and toolbar follow the page in
front, the selection, and whether a run is active."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolBar, QToolButton, QWidget, QWidgetAction

from gui.base.theme import GRID, ICON, Theming, put_icon, scaled
from gui.form.job_form import in_a_line
from gui.sessions.session import Standing
from gui.shell.docks import Docks
from gui.widgets.controls import as_tip, set_role, tool_of
from kernels.errors import InputError

if TYPE_CHECKING:
    from gui.shell.main_window import Actions, MainWindow
# Action, text and icon of each button. Run and Cancel are never visible together.
BUTTONS = (
    ("run", "Run", "run"),
    ("cancel", "Cancel", "cancel"),
    ("open-model", "Open model", "open"),
    ("export-all", "Export", "export"),
)


class ToolBar(QToolBar):
    """The bar below the menus: the actions used most, and the form in one line while it is folded.
    `folded` is the button with this line; it opens the form."""

    def __init__(self, actions: Actions, theming: Theming, parent: QWidget) -> None:
        super().__init__("Toolbar", parent)
        self.setObjectName("toolbar")
        self.setMovable(False)
        self.setFloatable(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._theming = theming
        self.buttons: dict[str, QToolButton] = {}
        for name, words, picture in BUTTONS:
            action = actions.by_name[name]
            action.setIconText(words)
            keys = action.shortcut().toString()
            tip = action.text().replace("&", "").rstrip("…")
            action.setToolTip(f"{tip} ({keys})" if keys else tip)
            put_icon(action, picture, theming)
            button = self.buttons[name] = tool_of(action)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            self.addWidget(button)
        self.folded = Summary(theming)
        self.addWidget(self.folded)
        self._fit_icons()
        theming.changed.connect(self._fit_icons)
        self.show_active(False)
        self.show_summary("", False)

    def _fit_icons(self) -> None:
        """Icons as large as the text beside them."""
        size = QSize(scaled(ICON), scaled(ICON))
        self.setIconSize(size)
        for button in self.buttons.values():
            button.setIconSize(size)

    def _show(self, widget: QWidget, visible: bool) -> None:
        """By its action, which is looked for and not kept from `addWidget`: PySide has taken a kept one for
        deleted while its widget was there."""
        for action in self.actions():
            if isinstance(action, QWidgetAction) and action.defaultWidget() is widget:
                action.setVisible(visible)

    def show_active(self, active: bool) -> None:
        """While a comparison runs, show Cancel in place of Run."""
        self._show(self.buttons["run"], not active)
        self._show(self.buttons["cancel"], active)

    def show_summary(self, words: str, visible: bool) -> None:
        self.folded.show_words(words)
        self._show(self.folded, visible)

    def make_primary(self, on: bool) -> None:
        """Whether Run is the primary button: what one does next."""
        button = self.buttons["run"]
        if set_role(button, "primary" if on else ""):
            put_icon(button.defaultAction(), "run", self._theming, "on_accent" if on else "ink")


class Summary(QToolButton):
    """A button with a line of text. If it does not fit, it is cut, and the tooltip has all of it."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.words = ""
        self.setAutoRaise(True)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        put_icon(self, "form", theming, "muted")

    def sizeHint(self) -> QSize:
        return QSize(40 * GRID, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(15 * GRID, super().minimumSizeHint().height())

    def show_words(self, words: str) -> None:
        self.words = words
        self.setToolTip(as_tip(f"{words}\nOpen the form (F7)"))
        self.setAccessibleName(f"Open the form: {words}")
        self._cut()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._cut()

    def _cut(self) -> None:
        room = self.width() - self.iconSize().width() - 6 * GRID
        # A single "&" would mark a letter.
        text = self.fontMetrics().elidedText(self.words, Qt.TextElideMode.ElideRight, max(40, room))
        if text.replace("&", "&&") != self.text():
            self.setText(text.replace("&", "&&"))


FOOT = 960  # pixels of the window, below which progress and the machine's readings do not both fit
WORDS = 720  # below which not even what can be done next fits beside them


class Room(QObject):
    """Decides which parts of the window are visible. Created when the window has its pages and actions."""

    def __init__(self, window: MainWindow, docks: Docks) -> None:
        super().__init__(window)
        self._window, self._docks = window, docks
        self._active = False
        self.toolbar = ToolBar(window.menu_actions, window.theming, window)
        window.addToolBar(self.toolbar)
        self.toolbar.folded.clicked.connect(docks.open_form)
        docks.form_shown = self._on_form
        window.tabs.currentChanged.connect(self.arrange)
        window.state.selection_changed.connect(self.arrange)
        window.state.replaced.connect(self._on_replaced)
        window.form.changed.connect(self._sum_up)
        window.session.stands.connect(self._on_standing)
        for page in window.pages:
            page.begin_wanted.connect(self._begin)
            page.turned.connect(self._choose_primary)

    def arrange(self) -> None:
        """Show the docks that the page in front can use."""
        page, state = self._window.page, self._window.state
        selected = {"case": state.case is not None, "layer": state.case is not None and bool(state.layer)}
        self._window.inspector.tell_of(page.inspects)
        self._docks.place(page.form, selected.get(page.inspects, False))

    def show_form(self) -> None:
        """Show the form, whatever page is in front, because something in it has changed."""
        self._docks.open_form()

    def fit_foot(self) -> None:
        """In a narrow window, hide the machine's readings: what is said of a run needs the room, and in a
        very narrow one what can be done next."""
        machine = self._window.machine
        wanted = self._window.width() >= (FOOT if self._active else WORDS)
        if machine.isHidden() == wanted:
            machine.setVisible(wanted)

    # ------------------------------------------------------------------------------------------ the inside

    def _begin(self, name: str) -> None:
        self._window.menu_actions.by_name[name].trigger()

    def _on_form(self, visible: bool) -> None:
        self.toolbar.show_summary(self._words(), not visible and self._window.page.form)
        self._choose_primary()

    def _sum_up(self) -> None:
        if self.toolbar.folded.isVisibleTo(self.toolbar):
            self.toolbar.folded.show_words(self._words())

    def _words(self) -> str:
        form = self._window.form
        # While a run is shown, the form describes the next one.
        next_one = "Next run:  " if self._window.state.folder is not None and not self._active else ""
        try:
            on = f"  ·  on {self._window.where.name}" if self._window.where.name else ""
            return next_one + in_a_line(form.job(), form.backends.checked) + on
        except InputError as error:
            return str(error)

    def _on_replaced(self) -> None:
        if self._window.state.folder is not None:
            self._docks.fold_form()
        self.arrange()

    def _on_standing(self, standing: Standing) -> None:
        if standing.active != self._active:
            self._active = standing.active
            self.toolbar.show_active(standing.active)
            cancelled = getattr(standing.ended, "cancelled", False)
            for page in self._window.pages:
                page.set_busy(standing.active, cancelled)
            self._sum_up()
            self.fit_foot()

    def _choose_primary(self) -> None:
        """Make one button the primary one: that of an empty page in front, else the form's, else the
        toolbar's. Pages of ladders and profiles have their own."""
        window = self._window
        begins = [page.begin_button for page in window.pages]
        form = window.form.run_button if not window.form_dock.isHidden() else None
        wanted = window.page.begin_button or (form if window.page.form else None)
        for button in filter(None, [*begins, window.form.run_button]):
            set_role(button, "primary" if button is wanted else "")
        self.toolbar.make_primary(wanted is None and window.page.form)
