"""The timer that draws what is dirty and visible."""

from __future__ import annotations

import shiboken6
from PySide6.QtWidgets import QWidget

from gui.sessions.comparison_session import RunState
from gui.shell.main_window import Redraw


class Page(QWidget):
    dirty = True
    drawn = 0

    def redraw(self) -> None:
        self.drawn += 1
        self.dirty = False


def test_a_page_that_is_gone_is_drawn_no_more(qtbot):
    """A window that is closed deletes its pages one after the other, and the timer may yet have a turn."""
    redraw = Redraw(RunState())
    gone, stays = Page(), Page()
    for page in (gone, stays):
        page.show()
    qtbot.addWidget(stays)
    redraw.add(gone, stays)
    shiboken6.delete(gone)
    redraw.wake()
    qtbot.waitUntil(lambda: stays.drawn == 1)
    redraw.flush()
    assert gone.drawn == 0


def test_what_takes_long_is_drawn_alone_and_the_others_have_the_next_turn(qtbot):
    now = [0.0]

    class Slow(Page):
        def redraw(self) -> None:
            super().redraw()
            now[0] += 0.03
            self.dirty = True  # as while a run streams

    redraw = Redraw(RunState(), clock=lambda: now[0])
    slow, quick, last = Slow(), Page(), Page()
    for page in (slow, quick, last):
        qtbot.addWidget(page)
        page.show()
    redraw.add(slow, quick, last)
    redraw._tick()
    assert (slow.drawn, quick.drawn, last.drawn) == (1, 0, 0)
    redraw._tick()
    assert (slow.drawn, quick.drawn, last.drawn) == (1, 1, 1)
    now[0] += 1.0
    redraw._tick()
    assert slow.drawn == 2
