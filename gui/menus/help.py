"""Help: the tour, the glossary, all shortcuts on one sheet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import ClassVar

from PySide6.QtCore import (
    QEvent,
    QKeyCombination,
    QObject,
    QPoint,
    QRect,
    QRectF,
    QSize,
    Qt,
    QTimer,
    QUrl,
    Signal,
    Slot,
)
from PySide6.QtGui import (
    QAction,
    QColor,
    QDesktopServices,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QShortcut,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QMainWindow,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from bench.words import glossary
from gui.base.boxes import filled, fitting_height, placed, put_on_screen
from gui.base.theme import Theming, resized
from gui.shell.main_window import TOUR_SEEN, Actions, MainWindow
from gui.widgets.controls import TERM, Label, Linked, as_tip, line_edit, meaning, push_button, with_links

CARD_WIDTH = 380
GAP = 14


@dataclass(frozen=True)
class TourStep:
    """One step of the tour. text: may hold marked words (bench.words.glossary); target: returns the widget
    that the step is about, None for no widget; begin: brings that widget to the front."""

    title: str
    text: str
    target: Callable[[], QWidget | None]
    begin: Callable[[], object] = lambda: None


class Tour(QWidget):
    """The tour. It covers `window` while it is shown. `ended` carries whether the user saw it to the end."""

    KEYS: ClassVar = {"→, Enter": "Next step of the tour", "←": "Step before", "Esc": "Leave the tour"}
    ended = Signal(bool)

    def __init__(self, window: QWidget, theming: Theming, steps: Sequence[TourStep]) -> None:
        super().__init__(window)
        self._window = window
        self._theming = theming
        self._steps = tuple(steps)
        self.at = 0
        self._hole = QRect()
        self.setAccessibleName("Tour")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.card = QFrame(self)
        self.card.setProperty("role", "card")
        self.count = Label(role="muted")
        self.title = Label(role="heading")
        self.title.setFont(resized(self.title.font(), 1.25))
        self.words = Linked()
        self.skip = push_button("Skip the tour", lambda: self._end(False))
        self.back = push_button("Back", lambda: self.go(self.at - 1))
        self.next = push_button("Next", lambda: self.go(self.at + 1), role="primary")
        buttons = filled(QHBoxLayout(), self.skip, 1, self.back, self.next, spacing=8)
        filled(
            QVBoxLayout(self.card),
            self.count,
            self.title,
            self.words,
            buttons,
            margins=(18, 14, 18, 14),
            spacing=8,
        )
        self.card.setFixedWidth(CARD_WIDTH)
        self.hide()
        window.installEventFilter(self)

    def start(self) -> None:
        self.setGeometry(self._window.rect())
        self.show()
        self.raise_()
        self.go(0)

    def go(self, at: int) -> None:
        """Go to a step. Beyond the last one the tour ends."""
        if at >= len(self._steps):
            self._end(True)
            return
        self.at = max(0, at)
        step, last = self._steps[self.at], self.at == len(self._steps) - 1
        step.begin()
        self.raise_()  # above what `begin` brought to the front
        self.count.setText(f"{self.at + 1} of {len(self._steps)}")
        self.title.setText(step.title)
        self.words.setText(step.text)
        self.back.setEnabled(self.at > 0)
        self.skip.setVisible(not last)
        self.next.setText("Begin" if last else "Next")
        self.setAccessibleDescription(f"{step.title}: {self.words.accessibleName()}")
        self.next.setFocus()
        self._place()

    def look_again(self) -> None:
        """The window shows something else: point at the step's widget again."""
        if self.isVisible():
            self._steps[self.at].begin()
            QTimer.singleShot(0, self, self._place)
            self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and watched is self._window and self.isVisible():
            self.setGeometry(self._window.rect())
            self._place()
        return False

    def event(self, event: QEvent) -> bool:
        # While the tour is shown it gets all keys, also those that are shortcuts of the window.
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Escape:
                self._end(False)
            case Qt.Key.Key_Right | Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.go(self.at + 1)
            case Qt.Key.Key_Left:
                self.go(self.at - 1)
            case _:
                event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()  # no click reaches the widgets below

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        path = QPainterPath()
        path.addRect(QRectF(self.rect()))
        if not self._hole.isNull():
            hole = QPainterPath()
            hole.addRoundedRect(QRectF(self._hole), 6, 6)
            path = path.subtracted(hole)
        veil = QColor("#000000")
        veil.setAlphaF(0.55 if self._theming.theme.dark else 0.38)
        painter.fillPath(path, veil)
        if not self._hole.isNull():
            painter.setPen(QPen(QColor(self._theming.theme.accent), 2))
            painter.drawRoundedRect(QRectF(self._hole), 6, 6)

    # ------------------------------------------------------------------------------------------ the inside

    def _end(self, whole: bool) -> None:
        self.hide()
        self._window.removeEventFilter(self)
        self.ended.emit(whole)
        self.deleteLater()

    def _place(self) -> None:
        """Put the card beside its target, where most room is; without a target, in the middle."""
        target = self._steps[self.at].target()
        self._hole = QRect()
        self.card.resize(CARD_WIDTH, fitting_height(self.card, CARD_WIDTH))
        size, room = self.card.size(), self.rect()
        spot = QPoint((room.width() - size.width()) // 2, (room.height() - size.height()) // 2)
        if target is not None and target.isVisible():
            top_left = target.mapTo(self._window, QPoint(0, 0))
            self._hole = QRect(top_left, target.size()).adjusted(-4, -4, 4, 4) & room
            hole = self._hole
            across = min(max(GAP, hole.left()), room.width() - size.width() - GAP)
            along = min(max(GAP, hole.top()), room.height() - size.height() - GAP)
            if room.right() - hole.right() >= size.width() + 2 * GAP:
                spot = QPoint(hole.right() + GAP, along)
            elif hole.left() >= size.width() + 2 * GAP:
                spot = QPoint(hole.left() - GAP - size.width(), along)
            elif room.bottom() - hole.bottom() >= size.height() + 2 * GAP:
                spot = QPoint(across, hole.bottom() + GAP)
            elif hole.top() >= size.height() + 2 * GAP:
                spot = QPoint(across, hole.top() - GAP - size.height())
        self.card.move(spot)
        self.update()


ORDER = 10


def add_to(window: MainWindow, actions: Actions) -> None:
    helper = window.helper = Help(window, actions)
    actions.add("help", "shortcuts", "&Keyboard shortcuts", helper.shortcuts, ["F1", "?"])
    actions.add("help", "glossary", "&Glossary", helper.glossary)
    actions.add("help", "tour", "Take the &tour", helper.take_tour)


class Help(QObject):
    """The help of one window. Links to words of the glossary lead here."""

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
        """Show the glossary, at `term` if one is given."""
        if self.glossary_window is None:
            self.glossary_window = GlossaryWindow(self._window)
        self.glossary_window.show_term(term)
        return self.glossary_window

    def shortcuts(self) -> ShortcutSheet:
        """Show all shortcuts, also those of pages that were never shown."""
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
        if self._window.state.empty and not self._window.session.active:
            # So that each page has something to show. It folds the form away, with which the tour begins.
            self._window.session.opened.connect(tour.look_again)
            self._window.library.open_sample()
        tour.ended.connect(self._on_tour_ended)
        tour.start()
        return tour

    # ------------------------------------------------------------------------------------------ the inside

    def _steps(self) -> Sequence[TourStep]:
        window = self._window
        form = window.form

        def to_form() -> None:
            window.room.show_form()
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
                "F5 measures; the charts fill while it does. All is kept in a folder, a [run]. You see a "
                "sample run now, recorded on another machine (File → Open sample run).",
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
        """Start the tour at the very first start. A window that was open before has stored its place."""
        settings = self._window.settings
        if not settings.contains(TOUR_SEEN) and settings.value("geometry") is None:
            self.take_tour()

    def _on_tour_ended(self) -> None:
        self._window.settings.setValue(TOUR_SEEN, True)
        self.tour = None

    def _on_closing(self) -> None:
        QDesktopServices.unsetUrlHandler(TERM)


class GlossaryWindow(QDialog):
    """The glossary, in a window that blocks nothing. `show_term` goes to a word."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Glossary")
        self.field = line_edit("Find a word", lambda text: self._fill(text))
        self.text = QTextBrowser()
        self.text.setOpenLinks(False)
        self.text.setAccessibleName("Words and what they mean")
        self.text.anchorClicked.connect(self._follow)
        filled(QVBoxLayout(self), self.field, (self.text, 1), margins=(12, 12, 12, 12), spacing=8)
        self.resize(placed(QSize(560, 620), self.screen().availableGeometry()).size())
        self.terms: tuple[str, ...] = ()
        self._fill("")

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)  # puts it over the middle of the window
        put_on_screen(self)

    def show_term(self, term: str) -> None:
        self.field.clear()
        self._fill("", term)
        self.show()
        self.raise_()
        self.activateWindow()
        if term:
            self.text.scrollToAnchor(_anchor(term))

    def _follow(self, link: QUrl) -> None:
        if link.scheme() == TERM:
            self.show_term(link.path())

    def _fill(self, wanted: str, marked: str = "") -> None:
        """Show the words that contain `wanted`, or whose meaning does. The marked word is highlighted."""
        wanted = wanted.strip().lower()
        known = glossary.terms()
        entries = {
            term: meaning
            for term, meaning in sorted(known.items(), key=lambda item: item[0].lower())
            if wanted in term.lower() or wanted in meaning.lower()
        }
        self.terms = tuple(entries)
        accent = self.palette().accent().color().name()
        ground = self.palette().midlight().color().name()
        items = [
            '<p style="margin-top:0px;margin-bottom:10px'
            + (f";background:{ground}" if term == marked else "")
            + f'"><a name="{_anchor(term)}"></a>'
            f'<b style="color:{accent}">{escape(term)}</b><br>{_html(meaning, term)}</p>'
            for term, meaning in entries.items()
        ]
        self.text.setHtml("".join(items) or "<p>No word and no meaning holds this.</p>")


def _anchor(term: str) -> str:
    return term.replace(" ", "-")


def _html(meaning: str, own: str) -> str:
    """A meaning as HTML: code as code, and other words of the glossary as links."""
    pieces = []
    for place, piece in enumerate(meaning.split("`")):
        if place % 2:
            pieces.append(f"<code>{escape(piece)}</code>")
            continue
        pieces.append(with_links(piece, own))
    return "".join(pieces)


Keys = dict[str, str]  # what is pressed → what it does
COLUMNS = 3
SHEET = QSize(1200, 640)  # if there is room: then nothing needs scrolling
SEVERAL = 3


def sheet(window: QMainWindow, menus: Iterable[tuple[str, Iterable[QAction]]]) -> dict[str, Keys]:
    """All shortcuts, grouped under headings: first the menus, then each page, then the docks. Widgets that
    read keys themselves list them in `KEYS`."""
    sections: dict[str, Keys] = {}
    seen: set[QAction] = set()
    for title, actions in menus:
        for action in actions:
            seen.add(action)
            _put(sections, title, _of_action(action), action.text())
    for heading, root in _rooms(window):
        for widget in [root, *root.findChildren(QWidget)]:
            for action in widget.actions():
                if action not in seen:
                    _put(sections, heading, _of_action(action), action.text())
            for keys, words in getattr(widget, "KEYS", {}).items():
                _put(sections, heading, keys, words)
        for shortcut in root.findChildren(QShortcut):
            keys = [shortcut.key().toString(QKeySequence.SequenceFormat.NativeText)]
            _put(sections, heading, ", ".join(keys), shortcut.whatsThis())
    return _everywhere(sections)


def _rooms(window: QMainWindow) -> list[tuple[str, QWidget]]:
    """Titles and widgets of the pages, then of the docks."""
    rooms = [(str(page.title), page) for page in getattr(window, "pages", ())]
    docks = [getattr(window, name, None) for name in ("form_dock", "inspector_dock", "problems_dock")]
    return rooms + [(dock.windowTitle(), dock) for dock in docks if dock is not None]


def _of_action(action: QAction) -> str:
    form = QKeySequence.SequenceFormat.NativeText
    return ", ".join(
        dict.fromkeys(keys.toString(form) for keys in action.shortcuts() if not _of_few_keyboards(keys))
    )


def _of_few_keyboards(keys: QKeySequence) -> bool:
    """Whether the key exists on few keyboards only, such as "open" or "back"."""
    first: QKeyCombination = keys[0]  # type: ignore[index]  # PySide6 has it, and does not say so
    return Qt.Key.Key_Back <= first.key() < Qt.Key.Key_unknown


def _everywhere(sections: dict[str, Keys]) -> dict[str, Keys]:
    """Move the shortcuts that several pages share into one group of their own."""
    rooms = Counter(pair for keys in sections.values() for pair in keys.items())
    common = {keys: words for (keys, words), count in rooms.items() if count >= SEVERAL}
    own = {
        heading: {keys: words for keys, words in pairs.items() if common.get(keys) != words}
        for heading, pairs in sections.items()
    }
    return {heading: pairs for heading, pairs in {**own, "Tables": common}.items() if pairs}


def _put(sections: dict[str, Keys], heading: str, keys: str, words: str) -> None:
    plain = words.replace("&", "").rstrip("…")
    if keys and plain:
        known = sections.setdefault(heading, {})
        if plain not in known.setdefault(keys, plain).split(" / "):
            known[keys] += f" / {plain}"  # the keys do different things in different parts


class ShortcutSheet(QDialog):
    """The list of shortcuts, in a window that blocks nothing. Esc closes it."""

    def __init__(self, sections: dict[str, Keys], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keyboard shortcuts")
        self.sections = sections
        text = QTextBrowser()
        text.setAccessibleName("Keyboard shortcuts")
        text.setHtml(_in_columns(sections, self.palette().accent().color().name()))
        filled(QVBoxLayout(self), text, margins=(12, 12, 12, 12))
        self.resize(placed(SHEET, self.screen().availableGeometry()).size())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)  # puts it over the middle of the window
        put_on_screen(self)


def _in_columns(sections: dict[str, Keys], accent: str) -> str:
    """The groups as an HTML table with COLUMNS columns of similar height."""
    blocks = []
    for heading, keys in sections.items():
        rows = "".join(
            f'<tr><td style="padding-right:14px"><b>{escape(pressed)}</b></td><td>{escape(words)}</td></tr>'
            for pressed, words in keys.items()
        )
        head = f'<p style="color:{accent};margin-top:12px;margin-bottom:2px"><b>{escape(heading)}</b></p>'
        blocks.append((len(keys) + 2, f"{head}<table>{rows}</table>"))
    total, columns, filled_rows = sum(size for size, _ in blocks), [""], 0
    for size, block in blocks:
        if filled_rows >= total * len(columns) / COLUMNS and len(columns) < COLUMNS:
            columns.append("")
        columns[-1] += block
        filled_rows += size
    cells = "".join(f'<td width="{100 // COLUMNS}%" valign="top">{column}</td>' for column in columns)
    return f'<table width="100%"><tr>{cells}</tr></table>'
