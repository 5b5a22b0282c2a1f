"""Who has which room of the window: form, inspector and toolbar follow the page in front, what is selected
and whether a run is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from gui.form.summary_line import in_a_line
from gui.sessions.session import Standing
from gui.shell.docks import Docks
from gui.shell.toolbar import ToolBar
from gui.widgets.controls import set_role
from kernels.errors import InputError

if TYPE_CHECKING:
    from gui.shell.main_window import MainWindow

FOOT = 960  # pixels of the window, below which progress and the machine's readings do not both fit


class Room(QObject):
    """Made once the window has its pages and actions."""

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
        """Put there what the page in front has a use for."""
        page, state = self._window.page, self._window.state
        selected = {"case": state.case is not None, "layer": state.case is not None and bool(state.layer)}
        self._window.inspector.tell_of(page.inspects)
        self._docks.place(page.form, selected.get(page.inspects, False))

    def show_form(self) -> None:
        """Whatever page is in front: something in it has changed that the user should see."""
        self._docks.open_form()

    def fit_foot(self) -> None:
        """The machine's readings give way where a run's progress and its buttons need the room."""
        machine = self._window.machine
        wanted = not self._active or self._window.width() >= FOOT
        if machine.isHidden() == wanted:
            machine.setVisible(wanted)

    # ------------------------------------------------------------------------------------------ the inside

    def _begin(self, name: str) -> None:
        self._window.menu_actions.by_name[name].trigger()

    def _on_form(self, shown: bool) -> None:
        self.toolbar.show_summary(self._words(), not shown and self._window.page.form)
        self._choose_primary()

    def _sum_up(self) -> None:
        if self.toolbar.folded.isVisibleTo(self.toolbar):
            self.toolbar.folded.show_words(self._words())

    def _words(self) -> str:
        form = self._window.form
        # Beside a run that is shown, the form's choices are those of another.
        next_one = "Next run:  " if self._window.state.folder is not None and not self._active else ""
        try:
            return next_one + in_a_line(form.job(), form.backends.checked)
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
            for page in self._window.pages:
                page.set_busy(standing.active)
            self._sum_up()
            self.fit_foot()

    def _choose_primary(self) -> None:
        """What one does next, in the order in which it is seen; a page of its own kind has its own button."""
        window = self._window
        begins = [page.begin_button for page in window.pages]
        form = window.form.run_button if not window.form_dock.isHidden() else None
        wanted = window.page.begin_button or (form if window.page.form else None)
        for button in filter(None, [*begins, window.form.run_button]):
            set_role(button, "primary" if button is wanted else "")
        self.toolbar.make_primary(wanted is None and window.page.form)
