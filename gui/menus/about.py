"""Help, at its end: about the program; and where to begin, above the empty pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout

from bench.results.messages import Hello
from bench.results.records import Environment
from gui.shell.about import About
from gui.shell.hint import FirstStart

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

    by_name = actions.by_name
    centre = window.banner.parentWidget()
    assert centre is not None
    hint = FirstStart(
        window.state,
        window.settings,
        (
            (by_name["run"], "on the models and backends chosen at the left: the charts fill as it measures"),
            (by_name["open-model"], "a .onnx file of your own; dropping it on the window does the same"),
            (by_name["open-sample"], "a run recorded on another machine, with every page filled"),
        ),
        centre,
    )
    layout = centre.layout()
    assert isinstance(layout, QVBoxLayout)
    layout.insertWidget(layout.indexOf(window.tabs), hint)
    window.tabs.currentChanged.connect(lambda _: hint.hold_back(window.page.begins))
