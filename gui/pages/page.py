"""The base of every page, and how pages are found: one module in gui/pages a page, with PAGE and ORDER.

A page is built when it first has something to show, so that a window opens without importing what only a full
page needs; before that it says what fills it. `SessionPage`: one of runs of its own kind.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QSettings, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QStackedLayout, QToolButton, QVBoxLayout, QWidget

from bench.views.charts.definitions import Chart
from gui.base.boxes import filled, scrolled
from gui.base.scale import BROAD, GAP, WIDE
from gui.base.theme import Theming
from gui.sessions.run_state import RunState
from gui.sessions.session import Session, Standing
from gui.widgets.controls import menu_button
from gui.widgets.labels import Label

WIDEST = 620  # pixels of the words

Way = tuple[str, str]  # an action's name, and words for it


class Empty(QWidget):
    """`wanted` carries the name of the way that was chosen; the first one is the button."""

    wanted = Signal(str)

    def __init__(self, ways: Sequence[Way] = (), parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = Label(role="what-fills", centred=True, wrap=True)
        self._words.setMaximumWidth(WIDEST)
        self.buttons: dict[str, QPushButton] = {}
        row = filled(QHBoxLayout(), 1, spacing=WIDE)
        beside = filled(QHBoxLayout(), 1, spacing=GAP)
        for place, (name, words) in enumerate(ways):
            button = self.buttons[name] = QPushButton(words)
            button.clicked.connect(lambda _=False, name=name: self.wanted.emit(name))
            if place:
                button.setProperty("role", "link")
            (beside if place else row).addWidget(button)
        row.addStretch(1)
        beside.addStretch(1)
        column = filled(QVBoxLayout(self), 2, margins=(BROAD, BROAD, BROAD, BROAD), spacing=WIDE)
        line = filled(QHBoxLayout(), 1, (self._words, 100), 1)
        column.addLayout(line)
        if self.buttons:
            column.addLayout(row)
        if len(self.buttons) > 1:
            column.addLayout(beside)
        column.addStretch(3)

    @property
    def main(self) -> QPushButton | None:
        """The one button."""
        return next(iter(self.buttons.values()), None)

    def text(self) -> str:
        return self._words.text()

    def setText(self, text: str) -> None:
        self._words.setText(text)


@dataclass(frozen=True)
class Spot:
    """Some nodes of a model that run as one, as any page can show them: a layer, a node's ladder, a kernel of
    a pass. What is "" or 0 is of no matter. rung: the kernel that ran them."""

    model: str
    nodes: tuple[str, ...]
    backend: str = ""
    batch: int = 0
    precision: str = ""
    rung: str = ""


class Exported(NamedTuple):
    """what: as a sentence calls it; folder: of the run (None: there is nothing yet); charts: to choose one
    of."""

    what: str
    folder: Path | None
    charts: tuple[Chart, ...] = ()


class Page(QWidget):
    """Subclass it, set `title`, and write `build`, `refresh` and `empty_text`.

    `state` and `theming` are there from the start. The redraw timer calls `redraw` on the visible page when
    the state is newer than what the page drew, at most 25 times a second.
    """

    title = ""
    built = Signal(object)  # carries the body, made just now
    turned = Signal()  # it is not empty any more, or empty again
    begin_wanted = Signal(str)  # an empty page's button: the name of an action
    chart_menu = Signal(object, object)  # the context menu of a chart, and the chart, before it is shown
    form = True  # whether the comparison's form belongs beside it
    inspects = ""  # what the inspector tells of beside it: "case", "layer" or nothing
    ways: Sequence[Way] = (("run", "Run the comparison"),)  # that fill it while it is empty, the best first
    link = ""  # what leads from other pages to this one's view of what is selected there; "": it has none
    own_links: tuple[str, ...] = ()  # titles of pages that it leads to by itself

    def __init__(self, state: RunState, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.state = state
        self.theming = theming
        self.links: list[QAction] = []  # to the other pages, from the window
        self._drawn: int | None = None
        self._behind = False  # the selection changed while the page was out of sight
        self._body: QWidget | None = None
        self._empty = Empty(self.ways)
        self._empty.wanted.connect(self.begin_wanted)
        self._frame = scrolled()
        self._frame.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._empty)
        state.selection_changed.connect(self._select)
        theming.changed.connect(self._restyle)
        self._empty.setText(self.empty_text())

    # ------------------------------------------------------------------------------------- for subclasses

    def build(self) -> QWidget:
        """Make the page's widgets, once; import what is heavy here."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Show `self.state`; the body is built. Keep it under 20 ms: reuse items, set only what changed."""
        raise NotImplementedError

    def empty_text(self) -> str:
        """What to show in place of an empty page: a sentence that says what fills it."""
        raise NotImplementedError

    def has_content(self) -> bool:
        """Whether there is anything to show; if not, the page shows `empty_text`."""
        return not self.state.empty

    def ahead(self) -> Sequence[Callable[[], object]]:
        """What can be got ready before there is anything to show, in steps of some 20 ms; the body is
        built."""
        return ()

    def early(self) -> Sequence[Callable[[], object]]:
        """What can be got ready at the window's start though the page is out of sight, in steps."""
        return ()

    def actions_offered(self) -> Sequence[QAction]:
        """The page's own actions for the View menu; made in `build`, or before."""
        return ()

    def select(self) -> None:
        """The selection changed (`state.case`, `state.layer`); the body is built and the page visible."""

    def spot(self) -> Spot | None:
        """What is selected here, for other pages to show."""
        return None

    def show_spot(self, spot: Spot) -> str:
        """Select what is of these nodes; "", or why that cannot be, in a sentence. The page comes to the
        front afterwards."""
        return f"{self.title} has nothing of {', '.join(spot.nodes)}."

    def showcase(self) -> None:
        """Choose what shows most of the page, beyond what is selected: for pictures of the window."""

    def exported(self) -> Exported:
        """What Export takes while this page is in front: of most pages the comparison's charts."""
        state = self.state
        return Exported("the comparison", None if state.empty else state.folder, tuple(state.all_charts()))

    def leave(self) -> bool:
        """Esc was pressed: leave what has taken the whole page. Whether there was anything to leave."""
        return False

    def keep(self, settings: QSettings) -> None:
        """Note what the user chose to be shown, for the next start."""

    def restore(self, settings: QSettings) -> None:
        """Take up what was kept, before anything is built."""

    @property
    def at_rest(self) -> bool:
        """Whether nothing that the page began is still on its way: for pictures of the window."""
        return True

    def restyle(self) -> None:
        """The theme changed; the body is built. Whatever follows the palette by itself needs nothing."""

    def go_button(self) -> QToolButton:
        """A button whose menu leads to the other pages; hidden where there are none."""
        button = menu_button("Show in", "What is selected here, on the other pages")
        button.menu().addActions(self.links)
        if not self.links:
            button.hide()  # shown, it would be a window of its own: it has no parent yet
        return button

    # ---------------------------------------------------------------------------------- for the window

    @property
    def begin_button(self) -> QPushButton | None:
        """What to press next, while the page is empty."""
        return self._empty.main if self._stack.currentWidget() is self._empty else None

    def set_busy(self, busy: bool) -> None:
        """While a comparison runs no other can be started."""
        if (button := self._empty.buttons.get("run")) is not None:
            button.setEnabled(not busy)

    @property
    def dirty(self) -> bool:
        return self._drawn != self.state.version

    def prepare(self) -> None:
        """Build the body ahead of need, while nothing else goes on."""
        if self._body is None:
            self._body = self.build()
            # On a screen that is smaller than what the page needs it scrolls, and the window fits.
            self._frame.setWidget(self._body)
            self._stack.addWidget(self._frame)
            # Fonts and styles now, and not in the moment the first measurement comes.
            for widget in self._body.findChildren(QWidget):
                widget.ensurePolished()
            self._body.resize(self.size())
            layout = self._body.layout()
            if layout is not None:
                layout.activate()
            self.built.emit(self._body)

    def redraw(self) -> None:
        """Bring the page up to the state."""
        self._drawn = self.state.version  # first: a page that fails to draw is not tried 25 times a second
        if self.has_content():
            self.prepare()
            assert self._body is not None
            self._put_in_front(self._frame)
            self.refresh()
            if self._behind:
                self._behind = False
                self.select()
        else:
            self._empty.setText(self.empty_text())
            self._put_in_front(self._empty)

    def invalidate(self) -> None:
        """Have the page drawn again though the state is the same (a control of the page changed)."""
        self._drawn = None
        self.state.changed.emit()

    def _put_in_front(self, widget: QWidget) -> None:
        if self._stack.currentWidget() is not widget:
            self._stack.setCurrentWidget(widget)
            self.turned.emit()

    def _select(self) -> None:
        if self._body is not None and self.isVisible():
            self.select()
        else:
            self._behind, self._drawn = True, None

    def _restyle(self) -> None:
        if self._body is not None:
            self.restyle()
            self.invalidate()


class SessionPage(Page):
    """A page of runs of its own kind. A module of gui/menus gives it its `session` before it is shown; a
    subclass says which type that is, and writes `show_standing`."""

    form = False
    ways = ()
    session: Session
    _taken = False

    def take(self, session: Session) -> None:
        """This one from now on."""
        self.session, self._taken = session, True
        session.stands.connect(self._on_standing)

    def has_content(self) -> bool:
        return self._taken

    def show_standing(self, standing: Standing) -> None:
        """Where the run stands; the body is built."""
        raise NotImplementedError

    def _on_standing(self, standing: Standing) -> None:
        if self._body is not None:
            self.show_standing(standing)


def page_types() -> list[type[Page]]:
    """The PAGE of every module in gui/pages, by ORDER, then by module name. ORDER is read off the modules, so
    a page is one file; two with one place stand in the order of their names."""
    import gui.pages

    found = []
    for info in pkgutil.iter_modules(gui.pages.__path__):
        module = importlib.import_module(f"gui.pages.{info.name}")
        if hasattr(module, "PAGE"):
            found.append((module.ORDER, info.name, module.PAGE))
    return [page for _, _, page in sorted(found, key=lambda item: item[:2])]
