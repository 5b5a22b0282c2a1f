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
