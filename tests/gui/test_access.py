"""Every page, for who sees little or uses no mouse: each control has a name, no two of a page have one
letter, Tab goes through them in reading order, no meaning is in a colour alone, and with text twice as large
nothing is cut."""

from collections import defaultdict

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QKeySequence
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QTabBar,
    QTextEdit,
    QWidget,
)

from gui.shell.library import Library
from gui.shell.notices import SIGNS
from gui.widgets.controls import Elided, Lines

CONTROLS = (
    QAbstractButton,
    QComboBox,
    QLineEdit,
    QAbstractSpinBox,
    QAbstractItemView,
    QPlainTextEdit,
    QTextEdit,
)
# Of Qt's own, inside a control that has a name.
WITHIN = (QAbstractSpinBox, QComboBox, QAbstractItemView)


@pytest.fixture(scope="module")
def shared(make_shared_window):
    window = make_shared_window()
    window.show()
    yield window
    window.theming.enlarge(100)
    window.theming.choose("light")


@pytest.fixture(scope="module")
def pages(shared):
    """pages(): each page of a window that shows the sample, in front, one after another."""
    library = shared.findChild(Library)
    library.open_sample()

    def at_rest():
        return not (
            any(session.background.busy for session in shared.sessions) or not shared.state.up_to_date
        )

    def each():
        for page in shared.pages:
            shared.tabs.setCurrentWidget(page)
            for _ in range(200):
                shared.redraw.flush()
                QApplication.processEvents()
                if at_rest() and page.at_rest:
                    break
            QApplication.processEvents()
            yield page

    return each


def visible(window, kind):
    return [widget for widget in window.findChildren(kind) if widget.isVisible()]


def name_of(widget):
    read = QAccessible.queryAccessibleInterface(widget)
    return read.text(QAccessible.Text.Name).strip() if read is not None else ""


def test_every_control_has_a_name_and_no_two_of_a_page_have_one_letter(shared, pages):
    for page in pages():
        unnamed = [
            f"{type(control).__name__} in {type(control.parent()).__name__}"
            for kind in CONTROLS
            for control in visible(shared, kind)
            if not isinstance(control, QHeaderView)
            and not isinstance(control.parent(), WITHIN)
            and not name_of(control)
        ]
        assert not unnamed, page.title
        letters = defaultdict(set)
        texts = [action.text() for action in shared.menuBar().actions()]
        texts += [button.text() for button in visible(shared, QAbstractButton)]
        texts += [label.text() for label in visible(shared, QLabel) if label.buddy() is not None]
        for bar in visible(shared, QTabBar):
            texts += [bar.tabText(tab) for tab in range(bar.count()) if bar.isTabVisible(tab)]
        for text in texts:
            if letter := QKeySequence.mnemonic(text).toString():
                letters[letter].add(text)
        assert {letter: found for letter, found in letters.items() if len(found) > 1} == {}, page.title


def test_the_tree_that_a_screen_reader_reads_leads_to_every_page_s_controls(shared, pages):
    def below(read, depth=0):
        yield read
        for place in range(read.childCount() if depth < 40 else 0):
            child = read.child(place)
            # Items of tables have no widget; their table is enough.
            if child is not None and child.object() is not None:
                yield from below(child, depth + 1)

    for page in pages():
        read = {each.object() for each in below(QAccessible.queryAccessibleInterface(shared))}
        missed = [
            f"{type(control).__name__} {name_of(control)}"
            for kind in (QAbstractButton, QComboBox, QLineEdit)
            for control in visible(page, kind)
            if control not in read and not isinstance(control.parent(), WITHIN)
        ]
        assert not missed, page.title


def reached(page):
    """The controls of a page that Tab reaches, in its order."""
    found, at = [], page.nextInFocusChain()
    while at is not page:
        policy = at.focusPolicy()
        if policy & Qt.FocusPolicy.TabFocus and at.isVisible() and at.isEnabled() and page.isAncestorOf(at):
            found.append(at)
        at = at.nextInFocusChain()
    return found


def test_tab_goes_down_the_page_and_never_from_its_foot_to_its_head(shared, pages):
    """A control that Tab comes to next may stand beside the last one, or in another pane; it is not above the
    whole of what came before in its own pane."""
    for page in pages():
        panes = defaultdict(list)
        for control in reached(page):
            panes[control.parentWidget()].append(control)
        for pane, controls in panes.items():
            lows = [control.mapTo(pane, QPoint(0, control.height())).y() for control in controls]
            tops = [control.mapTo(pane, QPoint(0, 0)).y() for control in controls]
            for before, after in zip(lows, tops[1:], strict=False):
                assert after > before - 4 * max(c.height() for c in controls), (page.title, type(pane))
        names = [name_of(control) for control in reached(page) if isinstance(control, QAbstractButton)]
        assert all(names), page.title


def cut(window):
    """Labels and buttons whose text does not fit, without those that say the rest in their tooltip."""
    found = [each.words for each in visible(window, QAbstractButton) if getattr(each, "is_cut", False)]
    for widget in visible(window, QWidget):
        if isinstance(widget, QLabel) and not isinstance(widget, Elided | Lines) and not widget.wordWrap():
            text = widget.text() if widget.textFormat() == Qt.TextFormat.PlainText else ""
            advance = widget.fontMetrics().horizontalAdvance
            wide = max(map(advance, text.replace("&", "").split("\n")))
        elif isinstance(widget, QAbstractButton) and not widget.toolTip():
            wide = widget.fontMetrics().horizontalAdvance(widget.text().replace("&", ""))
        else:
            continue
        if wide > widget.width() + 2 and widget.visibleRegion().boundingRect().width() == widget.width():
            found.append(f"{type(widget).__name__} {widget.text()!r}: {wide} in {widget.width()}")
    return found


@pytest.mark.sampled(6, "longest")
def test_with_text_twice_as_large_no_words_are_cut(shared, pages):
    shared.resize(1920, 1080)
    for _ in pages():
        assert not cut(shared), "what is cut already would hide what this looks for"
    shared.theming.enlarge(200)
    try:
        shared.room.show_form()
        QApplication.processEvents()
        scroll = shared.form._scroll
        assert scroll.viewport().width() >= scroll.widget().minimumSizeHint().width(), "the form's fields"
        assert not cut(shared)
        for page in pages():
            assert not cut(shared), page.title
            rows = [table for table in visible(page, QAbstractItemView) if hasattr(table, "verticalHeader")]
            for table in rows:
                assert table.verticalHeader().defaultSectionSize() >= table.fontMetrics().height()
    finally:
        shared.theming.enlarge(100)


def test_nothing_is_told_by_a_colour_alone(shared):
    assert (
        len({sign for sign, _ in SIGNS.values()}) == len({words for _, words in SIGNS.values()}) == len(SIGNS)
    )
    for severity in SIGNS:
        shared.banner.show_message(f"about {severity}", severity)
    try:
        said = [name_of(notice) for notice in shared.banner.notices]
        assert said == [words for _, words in SIGNS.values()]
    finally:
        shared.banner.dismiss()
