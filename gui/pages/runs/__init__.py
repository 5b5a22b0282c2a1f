"""Runs: the saved runs, ladders and profiles, to open, to find on the disk, to delete; runs to lay over the
one shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolButton, QVBoxLayout, QWidget

from bench.kinds.summaries import Summary
from gui.base.boxes import filled
from gui.base.scale import PAGE_MARGINS
from gui.base.theme import Theming
from gui.pages.page import Page
from gui.sessions.run_state import RunState
from gui.widgets.labels import Label

ORDER = 90


class RunsPage(Page):
    """Knows what to show and what the user wants; gui.shell.library does it."""

    title = "Runs"
    form = False
    ways = (("run", "Run the comparison"), ("open-run", "Open a run…"), ("open-sample", "See a recorded run"))
    list_wanted = Signal()
    open_wanted = Signal(Path)
    overlay_wanted = Signal(object)  # Path, or None: take the overlay away
    reveal_wanted = Signal(Path)
    delete_wanted = Signal(Path)

    def __init__(self, state: RunState, theming: Theming, parent: QWidget | None = None) -> None:
        self._summaries: tuple[Summary, ...] = ()
        self._where: Path | None = None
        super().__init__(state, theming, parent)
        self.open_action = self._action(
            "&Open", "Show this run, ladder or profile on its pages (Enter)", self._open
        )
        self.overlay_action = self._action(
            "Lay o&ver", "Draw this run in thin lines over the one on the Compare page (Space)", self._overlay
        )
        self.reveal_action = self._action("Show the &folder", "Open the run's folder", self._reveal)
        self.delete_action = self._action("&Delete…", "Move the run to the trash (Delete)", self._delete)
        self.overlay_action.setShortcut("Space")
        self.delete_action.setShortcut("Del")

    def empty_text(self) -> str:
        where = f" in {self._where}" if self._where is not None else ""
        return (
            f"There is no saved run{where}: every comparison, ladder and profile leaves one here.\n"
            "F5 makes the first; a run's folder from elsewhere is opened, or dropped on the window."
        )

    def has_content(self) -> bool:
        return bool(self._summaries)

    def build(self) -> QWidget:
        from gui.pages.runs.runs_table import RunsTable

        self.table = RunsTable()
        self.table.opened.connect(self.open_wanted)
        self.table.chosen.connect(self._enable)
        self.table.addActions(self._actions)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(self._on_menu)
        bar = QHBoxLayout()
        for action in self._actions:
            button = QToolButton()
            button.setDefaultAction(action)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            if action is self.open_action:
                button.setProperty("role", "primary")
            bar.addWidget(button)
        bar.addStretch(1)
        self._count = Label()
        self._count.setProperty("role", "muted")
        bar.addWidget(self._count)
        body = QWidget()
        filled(QVBoxLayout(body), bar, (self.table, 1), margins=PAGE_MARGINS)
        self._enable()
        return body

    def refresh(self) -> None:
        overlay = self.state.overlay.folder if self.state.overlay is not None else None
        self.table.show_runs(self._summaries, self.state.folder, overlay)
        count = len(self._summaries)
        self._count.setText(f"{count} runs" if count != 1 else "1 run")
        self._enable()

    def show_runs(self, summaries: Sequence[Summary], where: Path) -> None:
        """Make these the runs; `where` most of them lie."""
        self._where = where
        if tuple(summaries) != self._summaries:
            self._summaries = tuple(summaries)
        self.invalidate()

    @property
    def summaries(self) -> tuple[Summary, ...]:
        return self._summaries

    @property
    def chosen(self) -> Path | None:
        return self.table.chosen_path() if self._body is not None else None

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.list_wanted.emit()

    # ------------------------------------------------------------------------------------------ the inside

    @property
    def _actions(self) -> list[QAction]:
        return [self.open_action, self.overlay_action, self.reveal_action, self.delete_action]

    def _action(self, text: str, tip: str, slot: object) -> QAction:
        action = QAction(text, self)
        action.setToolTip(tip)
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(slot)
        return action

    def _enable(self) -> None:
        chosen = self.chosen
        for action in self._actions:
            action.setEnabled(chosen is not None)
        over = (
            self.state.overlay is not None and chosen is not None and same(self.state.overlay.folder, chosen)
        )
        self.overlay_action.setText("Take o&ff" if over else "Lay o&ver")
        shown = chosen is not None and self.state.folder is not None and same(self.state.folder, chosen)
        run = self.table.chosen_run if self._body is not None else None
        self.overlay_action.setEnabled(run is not None and run.layered and not shown)

    def _open(self) -> None:
        if self.chosen is not None:
            self.open_wanted.emit(self.chosen)

    def _overlay(self) -> None:
        chosen = self.chosen
        if chosen is not None:
            overlay = self.state.overlay
            self.overlay_wanted.emit(None if overlay is not None and same(overlay.folder, chosen) else chosen)

    def _reveal(self) -> None:
        if self.chosen is not None:
            self.reveal_wanted.emit(self.chosen)

    def _delete(self) -> None:
        if self.chosen is not None:
            self.delete_wanted.emit(self.chosen)

    def _on_menu(self, at: QPoint) -> None:
        menu = QMenu(self.table)
        menu.addActions(self._actions)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.table.viewport().mapToGlobal(at))


def same(one: Path, other: Path) -> bool:
    """Whether two paths name one folder, which need not exist any more."""
    return one.absolute() == other.absolute()


PAGE = RunsPage
