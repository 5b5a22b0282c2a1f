"""25 times a second at most: derive a little, draw the visible pages that are dirty, and otherwise sleep.

Data only ever marks the state as changed. However fast it comes, the window draws at this pace, and a page
that draws slowly is drawn less often, so that the window always has the most of its time for the user.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from PySide6.QtCore import QObject, QTimer

from gui.sessions.run_state import RunState

PERIOD_MS = 40
DERIVE_S = 0.008  # of each period, for rows
FLUSHES = 50  # turns after which a view that is still dirty is left so
SHARE = 0.25  # of the time, at most, that one view may take to draw


class Redrawable(Protocol):
    """What can be redrawn: a Page, the inspector, a list."""

    @property
    def dirty(self) -> bool: ...
    def redraw(self) -> None: ...
    def isVisible(self) -> bool: ...


class Redraw(QObject):
    """The timer. `add` views; `wake` when one may have become dirty or visible (state changes do it)."""

    def __init__(
        self,
        state: RunState,
        parent: QObject | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(parent)
        self._state = state
        self._clock = clock
        self._views: list[Redrawable] = []
        self._not_before: dict[int, float] = {}
        self._timer = QTimer(self)
        self._timer.setInterval(PERIOD_MS)
        self._timer.timeout.connect(self._tick)
        state.changed.connect(self.wake)

    def add(self, *views: Redrawable) -> None:
        self._views += views
        for view in views:
            if isinstance(
                view, QObject
            ):  # as a window goes, so do its pages, and not always after this timer
                view.destroyed.connect(partial(self._forget, view))
        self.wake()

    def _forget(self, gone: Redrawable) -> None:
        self._views = [view for view in self._views if view is not gone]

    def wake(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def flush(self) -> None:
        """Derive and draw everything that is visible, now (before a picture is taken; in tests)."""
        while not self._state.up_to_date:
            self._state.work(1.0)
        for _ in range(FLUSHES):  # a view may draw a part at a time
            for view in self._dirty():
                view.redraw()

    def _tick(self) -> None:
        self._state.work(DERIVE_S)
        dirty = self._dirty()
        for view in dirty:
            now = self._clock()
            if now < self._not_before.get(id(view), 0.0):
                continue
            try:
                view.redraw()
            finally:
                # Also where it failed: a page that cannot draw is not tried 25 times a second.
                end = self._clock()
                self._not_before[id(view)] = end + (end - now) * (1 / SHARE - 1)
        if not dirty and self._state.up_to_date:
            self._timer.stop()

    def _dirty(self) -> Sequence[Redrawable]:
        return [view for view in self._views if view.isVisible() and view.dirty]
