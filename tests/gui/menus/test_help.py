"""The tour, the glossary, the sheet of shortcuts, and what stands behind a chart's title."""

import ast
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt, QUrl
from PySide6.QtGui import QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu, QTextBrowser

import gui
from bench.results.summaries import SAMPLE
from bench.views.sentences import findings
from bench.words import glossary
from gui.shell.main_window import TOUR_SEEN
from gui.widgets.controls import TERM, TermLabel, linked
from tests.gui.screenshots import open_run

LEFT = Qt.MouseButton.LeftButton
HORIZONTAL, TIP = Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole
ROOT = Path(gui.__file__).parents[1]


@pytest.fixture
def first_start(make_window, monkeypatch):
    """A window as a new user's, begun."""

    def make():
        window = make_window("ok", begin=False)
        monkeypatch.setattr(window.session, "warm_up", lambda: None)
        monkeypatch.setattr(window, "_prepare_page", lambda: None)
        window.begin()
        return window

    return make


def test_the_tour_has_five_steps_and_comes_once(first_start):
    window = first_start()
    tour = window.helper.tour
    assert tour.isVisible()
    assert not tour.back.isEnabled()
    seen = []
    for step in range(5):
        seen.append(tour.title.text())
        assert tour.count.text() == f"{step + 1} of 5"
        assert tour.rect().contains(tour.card.geometry()), "nothing of it is off the screen"
        QTest.mouseClick(tour.next, LEFT)
    assert len(set(seen)) == 5
    assert window.helper.tour is None
    window.end()
    assert first_start().helper.tour is None


def test_the_tour_is_skipped_at_any_step_and_taken_again(first_start):
    window = first_start()
    QTest.keyClick(window.helper.tour, Qt.Key.Key_Right)
    QTest.keyClick(window.helper.tour, Qt.Key.Key_Left)
    assert window.helper.tour.at == 0
    QTest.keyClick(window.helper.tour, Qt.Key.Key_Escape)
    assert window.helper.tour is None
    assert window.settings.value(TOUR_SEEN) is True
    window.menu_actions.by_name["tour"].trigger()
    tour = window.helper.tour
    window.resize(1000, 700)
    QTest.keyClick(tour, Qt.Key.Key_Right)
    assert tour.rect().contains(tour.card.geometry())
    QTest.mouseClick(tour.skip, LEFT)
    assert window.helper.tour is None


def test_who_has_used_the_window_before_the_tour_came_is_left_alone(first_start, make_window):
    window = make_window("ok", begin=False)
    window.end()
    window.settings.remove(TOUR_SEEN)
    assert first_start().helper.tour is None


def test_every_key_that_does_something_is_on_the_sheet(make_window):
    window = make_window("ok", begin=False)
    window.activateWindow()
    window.menu_actions.by_name["shortcuts"].trigger()
    found = window.helper.sheet.sections
    told = {keys: words for pairs in found.values() for keys, words in pairs.items()}
    assert told["F5, Ctrl+R"] == "Run the comparison"
    assert told["F1, ?"] == "Keyboard shortcuts"
    for action in window.menu_actions.by_name.values():
        if action.shortcuts() and action.shortcut().toString():
            assert any(action.shortcut().toString() in keys for keys in told), action.text()
    for shortcut in window.findChildren(QShortcut):
        assert shortcut.whatsThis(), (
            f"{shortcut.key().toString()} of {shortcut.parent()} does not say what it does"
        )
    assert {"Layers", "Ladder", "Timeline", "Runs", "Model"} <= found.keys()
    assert "Ctrl+C" in found["Tables"]


def test_what_reads_keys_itself_says_which():
    """Otherwise the sheet would not know of them."""
    for file in sorted((ROOT / "gui").rglob("*.py")):
        for made in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(made, ast.ClassDef):
                names = {part.name for part in made.body if isinstance(part, ast.FunctionDef)}
                fields = {part.target.id for part in made.body if isinstance(part, ast.AnnAssign)}
                assert "keyPressEvent" not in names or "KEYS" in fields, f"{file}: {made.name}"


def test_the_documents_lead_to_the_glossary_of_the_window():
    name = glossary.FILE.relative_to(ROOT).as_posix()
    for page in ("README.md", "docs/architecture.md"):
        assert f"{name})" in (ROOT / page).read_text(encoding="utf-8")


def test_a_word_is_read_with_its_own_meaning_alone():
    found = glossary.read("- **job**: what was\n  asked. **case**: some **kind**: of it.\n- **pass**: one.\n")
    assert found == {"job": "what was asked.", "case": "some **kind**: of it.", "pass": "one."}
    assert not any("**" in meaning for meaning in glossary.terms().values()), (
        "a word stands in another's meaning"
    )
    assert glossary.find("B&ackends") == "backend"
    assert glossary.find("speed-up") == "speed-up"
    assert glossary.find("Precision") == "precision"
    assert glossary.find("Threads") == ""


def test_a_marked_word_that_the_glossary_has_not_is_told():
    with pytest.raises(KeyError, match="gear"):
        linked("a [gear]")


@pytest.mark.parametrize("name", findings.MEANINGS)
def test_what_a_chart_means_leads_to_words_that_there_are(name):
    assert 'href="term:' in linked(findings.MEANINGS[name])


def test_a_click_on_a_word_of_ours_leads_to_the_glossary(make_window):
    window = make_window("ok", begin=False)
    labels = {label.term: label for label in window.form.findChildren(TermLabel) if label.term}
    assert {"backend", "precision", "instance"} <= labels.keys()
    QTest.mouseClick(labels["backend"], LEFT, pos=QPoint(3, 3))
    shown = window.helper.glossary_window
    assert shown.isVisible()
    assert "what runs a model" in shown.text.toPlainText()
    shown.field.setText("float64")
    assert "oracle" in shown.terms
    assert "ladder" not in shown.terms


def test_the_inspector_and_headings_of_tables_lead_to_it_too(make_window, qtbot):
    window = make_window("ok", begin=False)
    open_run(window, SAMPLE)
    window.redraw.flush()
    ours = next(m for m in window.state.measurements if m.case.backend == "engine-cpu")
    window.state.select(ours.case)
    window.redraw.flush()
    inside = window.inspector.findChild(QTextBrowser)
    assert f'href="{TERM}:interval"' in inside.toHtml()
    inside.anchorClicked.emit(QUrl(f"{TERM}:interval"))
    shown = window.helper.glossary_window
    assert shown.isVisible()
    shown.close()
    table = window.pages[0].table
    place = next(i for i, column in enumerate(table.source.columns) if column.name == "speedup")
    assert "divided by the backend's own" in table.source.headerData(place, HORIZONTAL, TIP)
    header = table.horizontalHeader()
    at = QPoint(header.sectionViewportPosition(place) + 5, 5)
    header.customContextMenuRequested.emit(at)
    menu = table.findChildren(QMenu)[-1]
    menu.actions()[0].trigger()
    assert shown.isVisible()
    menu.close()


def test_a_charts_title_says_what_the_chart_means(make_window, qtbot):
    window = make_window("ok", begin=False)
    open_run(window, SAMPLE)
    window.redraw.flush()
    for view in (view for view in window.pages[0].views.values() if view.chart is not None):
        QTest.mouseClick(view._title, LEFT, pos=QPoint(5, 5))
        popup = view._title.popup
        assert popup.isVisible()
        assert popup.words.text() == linked(findings.meaning(view.chart.name))
        links = popup.words.text().count("<a ")
        assert links >= 1
        popup.close()
