"""The base class of all pages, and how pages are found: each module in gui/pages with PAGE and ORDER is
one.

A page is built when it first has something to show, so that the window opens without its imports. Until
then it says what fills it. `SessionPage` is for pages with runs of their own kind.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QSettings, Signal, SignalInstance
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QStackedLayout, QToolButton, QVBoxLayout, QWidget

from bench.views.charts.definitions import Chart
from gui.base.boxes import filled, scrolled
from gui.base.theme import BROAD, GAP, WIDE, Theming
from gui.sessions.comparison_session import RunState
from gui.sessions.session import Session, Standing
from gui.widgets.controls import Label, menu_button

WIDEST = 620  # pixels of the words

Way = tuple[str, str]  # an action's name, and words for it


class Empty(QWidget):
    """What an empty page shows: words, and the ways to fill it. The first way is a button, others are
    links. `wanted` carries the name of the way that was chosen."""

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
        self._column = column

    def hold(self, widget: QWidget) -> None:
        """Show a widget below the ways."""
        widget.setMaximumWidth(WIDEST + WIDEST // 2)
        line = filled(QHBoxLayout(), 1, (widget, 100), 1)
        self._column.insertLayout(self._column.count() - 1, line)

    @property
    def main(self) -> QPushButton | None:
        """The button of the first way."""
        return next(iter(self.buttons.values()), None)

    def text(self) -> str:
        return self._words.text()

    def setText(self, text: str) -> None:
        self._words.setText(text)


@dataclass(frozen=True)
class Spot:
    """Nodes of a model that run as one, as every page can show them: a layer, a ladder's node, a kernel of
    a pass. "" or 0 means any. rung: the kernel that ran them."""

    model: str
    nodes: tuple[str, ...]
    backend: str = ""
    batch: int = 0
    precision: str = ""
    rung: str = ""


class Find(NamedTuple):
    """What the palette finds. kind: "Run", "Rung", …; words: what it is called; go: leads to it; hint: keys,
    or what more there is to say; able: whether it can be done now; here: whether it is on the page that found
    it."""

    kind: str
    words: str
    go: Callable[[], object]
    hint: str = ""
    able: bool = True
    here: bool = False


class Exported(NamedTuple):
    """What Export takes. what: its name in a sentence; folder: of the run, None if there is none yet;
    charts: to choose from."""

    what: str
    folder: Path | None
    charts: tuple[Chart, ...] = ()


class Page(QWidget):
    """The base class of a page. A subclass sets `title` and writes `build`, `refresh` and `empty_text`.

    `state` and `theming` are set by the constructor. The redraw timer calls `redraw` on the visible
    page if the state is newer than what the page shows, at most 25 times a second.
    """

    title = ""
    built = Signal(object)  # carries the body, made just now
    turned = Signal()  # it is not empty any more, or empty again
    begin_wanted = Signal(str)  # an empty page's button: the name of an action
    readied = Signal()  # `ready` says something else
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
        self._frame = scrolled(focus=False)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._empty)
        state.selection_changed.connect(self._select)
        theming.changed.connect(self._restyle)
        self._empty.setText(self.empty_text())

    # ------------------------------------------------------------------------------------- for subclasses

    def build(self) -> QWidget:
        """Make the page's widgets. Called once; heavy imports belong here."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Show `self.state`. The widgets exist. It must take less than 20 ms: keep items, set only what
        changed."""
        raise NotImplementedError

    def empty_text(self) -> str:
        """What an empty page says: a sentence about what fills it."""
        raise NotImplementedError

    @property
    def ready(self) -> str:
        """What the window's foot says while nothing runs: what to do next, or why that cannot be done."""
        return "Ready. F5 runs the comparison."

    def has_content(self) -> bool:
        """Whether there is anything to show. If not, the page shows `empty_text`."""
        return not self.state.empty

    def ahead(self) -> Sequence[Callable[[], object]]:
        """Steps (of about 20 ms) that prepare the page before there is anything to show. The widgets
        exist."""
        return ()

    def early(self) -> Sequence[Callable[[], object]]:
        """Steps that prepare the page at the window's start, even if it is not visible."""
        return ()

    def findable(self) -> Sequence[Find]:
        """What of this page the palette finds."""
        return ()

    def actions_offered(self) -> Sequence[QAction]:
        """The page's own actions for the View menu."""
        return ()

    def select(self) -> None:
        """Called when the selection (`state.case`, `state.layer`) has changed, while the page is visible."""

    def spot(self) -> Spot | None:
        """What is selected here, so that other pages can show it. None for nothing."""
        return None

    def show_spot(self, spot: Spot) -> str:
        """Select these nodes. Returns "" or, in a sentence, why that is not possible. The page comes to
        the front afterwards."""
        return f"{self.title} has nothing of {', '.join(spot.nodes)}."

    def showcase(self) -> None:
        """Choose what shows most of the page, for a picture of the window."""

    def exported(self) -> Exported:
        """What Export takes while this page is in front. For most pages: the comparison's charts."""
        state = self.state
        return Exported("the comparison", None if state.empty else state.folder, tuple(state.all_charts()))

    def leave(self) -> bool:
        """Esc was pressed: let an enlarged chart become small again. Returns whether there was one."""
        return False

    def keep(self, settings: QSettings) -> None:
        """Store what the user chose to see, for the next start."""

    def restore(self, settings: QSettings) -> None:
        """Read what `keep` stored. Called before `build`."""

    @property
    def at_rest(self) -> bool:
        """Whether nothing that the page began is still running, for pictures of the window."""
        return True

    def restyle(self) -> None:
        """Called when the theme has changed. Only for what does not follow the palette by itself."""

    def go_button(self) -> QToolButton:
        """A button with a menu of the other pages. Hidden if there are none."""
        button = menu_button("Show in", "What is selected here, on the other pages")
        button.menu().addActions(self.links)
        if not self.links:
            button.hide()  # it has no parent yet; if shown, it would be a window
        return button

    # ---------------------------------------------------------------------------------- for the window

    @property
    def begin_button(self) -> QPushButton | None:
        """The button to press next while the page is empty."""
        return self._empty.main if self._stack.currentWidget() is self._empty else None

    def set_busy(self, busy: bool, cancelled: bool = False) -> None:
        """Say whether a comparison runs; then no other can be started. cancelled: the last one was."""
        if (button := self._empty.buttons.get("run")) is not None:
            button.setEnabled(not busy)

    @property
    def dirty(self) -> bool:
        return self._drawn != self.state.version

    def prepare(self) -> None:
        """Build the page now, before it is needed."""
        if self._body is None:
            self._body = self.build()
            # On a small screen the page scrolls, so that the window fits.
            self._frame.setWidget(self._body)
            self._stack.addWidget(self._frame)
            # Load fonts and styles now, and not when the first measurement comes.
            for widget in self._body.findChildren(QWidget):
                widget.ensurePolished()
            self._body.resize(self.size())
            layout = self._body.layout()
            if layout is not None:
                layout.activate()
            self.built.emit(self._body)

    def redraw(self) -> None:
        """Show the current state."""
        # Set first: a page that fails must not be drawn again 25 times a second.
        self._drawn = self.state.version
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
        """Have the page drawn again although the state is the same, because a control of the page changed."""
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
    """A page with runs of its own kind. A module of gui/menus gives it its `session`. A subclass declares
    the session's type, and writes `show_standing`."""

    form = False
    ways = ()
    session: Session
    _has_session = False

    def take(self, session: Session, changed: SignalInstance, models: Callable[[], Sequence[str]]) -> None:
        """Use this session from now on. changed: the signal of its state; models: returns the models of the
        form."""
        self.session, self._models, self._has_session = session, models, True
        session.stands.connect(self._on_standing)
        changed.connect(self.invalidate)

    def has_content(self) -> bool:
        return self._has_session

    def show_standing(self, standing: Standing) -> None:
        """Show where the run stands. The widgets exist."""
        raise NotImplementedError

    def _on_standing(self, standing: Standing) -> None:
        if self._body is not None:
            self.show_standing(standing)


def page_types() -> list[type[Page]]:
    """The PAGE of every module in gui/pages, sorted by ORDER, then by module name."""
    import gui.pages

    pages = []
    for info in pkgutil.iter_modules(gui.pages.__path__):
        module = importlib.import_module(f"gui.pages.{info.name}")
        if hasattr(module, "PAGE"):
            pages.append((module.ORDER, info.name, module.PAGE))
    return [page for _, _, page in sorted(pages, key=lambda item: item[:2])]
