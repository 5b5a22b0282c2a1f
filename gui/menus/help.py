"""Help: the tour, the glossary, all shortcuts on one sheet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices

from bench.words import glossary
from gui.help.glossary_window import GlossaryWindow
from gui.help.shortcuts import ShortcutSheet, sheet
from gui.help.tour import SEEN, Tour, TourStep
from gui.widgets.labels import TERM, as_tip, meaning

if TYPE_CHECKING:
    from gui.shell.actions import Actions
    from gui.shell.main_window import MainWindow

ORDER = 10


def add_to(window: MainWindow, actions: Actions) -> None:
    helper = window.helper = Help(window, actions)
    actions.add("help", "shortcuts", "&Keyboard shortcuts", helper.shortcuts, ["F1", "?"])
    actions.add("help", "glossary", "&Glossary", helper.glossary)
    actions.add("help", "tour", "Take the &tour", helper.take_tour)


class Help(QObject):
    """Of one window. Links to words of the glossary, wherever they stand, come here."""

    def __init__(self, window: MainWindow, actions: Actions) -> None:
        super().__init__(window)
        self._window, self._actions = window, actions
        self.glossary_window: GlossaryWindow | None = None
        self.sheet: ShortcutSheet | None = None
        self.tour: Tour | None = None
        QDesktopServices.setUrlHandler(TERM, self, "open_term")  # type: ignore[arg-type]  # it takes str alone
        window.begun.connect(self._on_begun)
        window.closing.connect(self._on_closing)
        for place, page in enumerate(window.pages):
            if term := glossary.find(page.title):
                window.tabs.setTabToolTip(place, as_tip(meaning(term).partition("\n")[0]))

    @Slot(QUrl)
    def open_term(self, link: QUrl) -> None:
        self.glossary(link.path())

    def glossary(self, term: str = "") -> GlossaryWindow:
        """Show it, at a word where one is named."""
        if self.glossary_window is None:
            self.glossary_window = GlossaryWindow(self._window)
        self.glossary_window.show_term(term)
        return self.glossary_window

    def shortcuts(self) -> ShortcutSheet:
        """Also of pages that were not looked at yet."""
        for page in self._window.pages:
            page.prepare()
        menus = [
            (menu.title().replace("&", ""), [a for a in self._actions.every(menu) if a.text()])
            for menu in self._actions.menus.values()
        ]
        if self.sheet is not None:
            self.sheet.close()
        self.sheet = ShortcutSheet(sheet(self._window, menus), self._window)
        self.sheet.show()
        return self.sheet

    def take_tour(self) -> Tour:
        if self.tour is not None:
            return self.tour
        self.tour = tour = Tour(self._window, self._window.theming, self._steps())
        tour.ended.connect(self._on_tour_ended)
        tour.start()
        return tour

    # ------------------------------------------------------------------------------------------ the inside

    def _steps(self) -> Sequence[TourStep]:
        window = self._window
        form = window.form

        def to_form() -> None:
            window.form_dock.show()
            window.form_dock.raise_()

        def to_compare() -> None:
            window.tabs.setCurrentIndex(0)

        return (
            TourStep(
                "Choose what to compare",
                "Tick models, and the [backend]s that run them: ours (engine-…), and ONNX Runtime (ort-…), "
                "the [reference]. Drop an .onnx file of your own on the window to look into it first.",
                lambda: window.form_dock,
                to_form,
            ),
            TourStep(
                "Run it",
                "F5 measures; the charts fill while it does. Everything is kept in a folder, a [run]. To "
                "look around at once, choose File → Open sample run: it was recorded on another machine.",
                lambda: form.run_button,
            ),
            TourStep(
                "Read the answer",
                "Compare says which is faster, by how much, and whether the answers agree. Every time has an "
                "[interval]; a figure with a [doubt] is marked “!”. Click a point, and the inspector shows "
                "all that is known about it. A click on a chart's title says what the chart means.",
                lambda: window.tabs,
                to_compare,
            ),
            TourStep(
                "See what holds it back",
                "Layers has the time and the error of each layer. Ladder has every kernel for one node: each "
                "[rung] adds one idea to the one before. Timeline has where each microsecond of a [pass] "
                "goes. Model shows a file before anything runs.",
                lambda: window.tabs.tabBar(),
            ),
            TourStep(
                "Find help",
                "F1 or ? lists every shortcut. Words underlined by dots lead to the glossary, and so do "
                "words like this one: [ladder]. The Help menu has this tour again.",
                lambda: window.menuBar(),
            ),
        )

    def _on_begun(self) -> None:
        """On the very first start alone: a window that was open once has left its place."""
        settings = self._window.settings
        if not settings.contains(SEEN) and settings.value("geometry") is None:
            self.take_tour()

    def _on_tour_ended(self) -> None:
        self._window.settings.setValue(SEEN, True)
        self.tour = None

    def _on_closing(self) -> None:
        QDesktopServices.unsetUrlHandler(TERM)
