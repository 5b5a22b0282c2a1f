"""The base of every page, and how pages are found: one module in gui/pages a page, with PAGE and ORDER.

A page is built when it first has something to show, so that a window opens without importing what only a full
page needs; before that it says what fills it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QStackedLayout, QWidget

from bench.charts import Chart
from gui.base.theme import Theming
from gui.sessions.run_state import RunState
from gui.widgets.labels import Label


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
    begins = False  # it says itself how to begin, where nothing is measured yet

    def __init__(self, state: RunState, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.state = state
        self.theming = theming
        self._drawn: int | None = None
        self._behind = False  # the selection changed while the page was out of sight
        self._body: QWidget | None = None
        self._empty = Label()
        self._empty.setProperty("role", "empty")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setWordWrap(True)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._empty)
        self._connect(state)
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

    def showcase(self) -> None:
        """Choose what shows most of the page, beyond what is selected: for pictures of the window."""

    def exported(self) -> Exported:
        """What Export takes while this page is in front: of most pages the comparison's charts."""
        state = self.state
        return Exported("the comparison", None if state.empty else state.folder, tuple(state.all_charts()))

    def leave(self) -> bool:
        """Esc was pressed: leave what has taken the whole page. Whether there was anything to leave."""
        return False

    @property
    def at_rest(self) -> bool:
        """Whether nothing that the page began is still on its way: for pictures of the window."""
        return True

    def restyle(self) -> None:
        """The theme changed; the body is built. Whatever follows the palette by itself needs nothing."""

    # ---------------------------------------------------------------------------------- for the window

    @property
    def dirty(self) -> bool:
        return self._drawn != self.state.version

    def prepare(self) -> None:
        """Build the body ahead of need, while nothing else goes on."""
        if self._body is None:
            self._body = self.build()
            self._stack.addWidget(self._body)
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
            self._stack.setCurrentWidget(self._body)
            self.refresh()
            if self._behind:
                self._behind = False
                self.select()
        else:
            self._empty.setText(self.empty_text())
            self._stack.setCurrentWidget(self._empty)

    def invalidate(self) -> None:
        """Have the page drawn again though the state is the same (a control of the page changed)."""
        self._drawn = None
        self.state.changed.emit()

    def _connect(self, state: RunState) -> None:
        state.selection_changed.connect(self._select)

    def _select(self) -> None:
        if self._body is not None and self.isVisible():
            self.select()
        else:
            self._behind, self._drawn = True, None

    def _restyle(self) -> None:
        if self._body is not None:
            self.restyle()
            self.invalidate()


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
