"""Help, at its end: about the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.results.messages import Hello
from bench.results.records import Environment
from gui.shell.about import About

if TYPE_CHECKING:
    from gui.shell.actions import Actions
    from gui.shell.main_window import MainWindow

ORDER = 90


def add_to(window: MainWindow, actions: Actions) -> None:
    known: list[Environment] = []

    def greeted(hello: Hello) -> None:
        known[:] = [hello.environment]

    def show() -> About:
        dialog = About(known[0] if known else None, window)
        dialog.show()
        return dialog

    window.session.greeted.connect(greeted)
    actions.add("help", "about", "&About Kernelscope", show)
