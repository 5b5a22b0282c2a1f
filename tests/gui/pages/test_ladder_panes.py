"""The ladder page in windows of every size: all of it is there, and stays as the user divided it."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QSplitter

from gui.base.boxes import as_column, scrolled
from gui.base.theme import Theming
from gui.pages.ladder.ladder_reader import LadderPanes, LadderReader, LadderTable
from gui.plots.chart import ChartView
from gui.widgets.controls import Lines
from tests.gui.pages.test_ladder_charts import long_ladder

# Of the panes, what a window of 1920×1080, 1366×768, 1000×650 and 800×600 leaves them.
SIZES = {(1090, 880): "rows", (790, 560): "halves", (690, 450): "halves", (500, 390): "tabs"}


@pytest.fixture
def panes(qtbot):
    theming = Theming("light")
    speed, limits = ChartView(theming), ChartView(theming)
    table, reader = LadderTable(theming), LadderReader(theming)
    made = LadderPanes(speed, limits, table, reader)
    made.parts = {"table": table, "reader": reader, "speed": speed, "limits": limits}
    qtbot.addWidget(made)
    for view, chart in zip((speed, limits), long_ladder(430.0), strict=True):
        view.show_chart(chart)
    made.resize(1090, 880)
    with qtbot.waitExposed(made):
        made.show()
    return made


def tabs_of(panes):
    """The tabs that are shown now: (their widget, their words)."""
    reader = panes.parts["reader"]
    bars = [reader.tabs] if panes.way == "tabs" else [reader.tabs, panes._charts]
    return [(bar, i) for bar in bars for i in range(bar.count()) if bar.isTabVisible(i)]


def seen(panes):
    """Every part, brought into view by its tab where it has one: its size."""
    sizes = {}
    for name, part in panes.parts.items():
        for bar, index in tabs_of(panes):
            if bar.widget(index) is part:
                bar.setCurrentIndex(index)
        QApplication.processEvents()
        assert part.isVisible(), name
        sizes[name] = part.size()
    return sizes


@pytest.mark.sampled(2, "nothing is cut")
def test_every_part_has_room_in_windows_of_every_size(qtbot, panes):
    assert panes.parts["reader"].minimumSizeHint().height() < 330, "else the charts give way to it"
    everywhere = [*SIZES, *reversed(SIZES)]
    for size in everywhere:
        panes.resize(*size)
        qtbot.waitUntil(lambda size=size: panes.way == SIZES[size])
        for name, room in seen(panes).items():
            assert room.width() >= 300, (size, name)
            assert room.height() >= 160, (size, name)
        for name in ("speed", "limits"):
            (plot,) = panes.parts[name].plots.values()
            assert plot.height() >= 110, (size, name)
            assert plot.geometry().bottom() < plot.parentWidget().height(), (size, name)
            assert plot.parentWidget().geometry().bottom() < panes.parts[name].height(), (size, name)


def test_parts_are_folded_away_and_come_back(qtbot, panes):
    panes.resize(690, 450)
    qtbot.waitUntil(lambda: panes.way == "halves")
    left = panes.findChild(QSplitter, "ladder-left")
    left.setSizes([0, 400])
    QApplication.processEvents()
    assert left.sizes()[0] == 0
    assert panes.parts["table"].height() > 400
    panes.reset()
    QApplication.processEvents()
    assert seen(panes)["speed"].height() > 180


def test_an_enlarged_chart_gives_its_room_back_where_it_cannot_have_it(qtbot, panes):
    speed, limits = panes.parts["speed"], panes.parts["limits"]
    speed._expand.click()
    assert limits.isHidden()
    panes.resize(690, 450)
    qtbot.waitUntil(lambda: panes.way == "halves")
    assert not speed._expand.isVisible()
    panes.resize(1090, 880)
    qtbot.waitUntil(lambda: panes.way == "rows")
    assert speed.isVisible()
    assert limits.isVisible()


def test_what_is_read_takes_the_whole_page_and_esc_gives_it_back(qtbot, make_window):
    window = make_window("ok", begin=False)
    page = next(page for page in window.pages if page.title == "Ladder")
    window.tabs.setCurrentWidget(page)
    window.redraw.flush()
    page.prepare()
    QApplication.processEvents()
    reader, before = page.reader, page.panes.way
    reader.tabs.setTabVisible(0, True)  # as if a rung were read
    reader.tabs.show()
    QApplication.processEvents()
    narrow = reader.width()
    qtbot.mouseClick(reader.whole, Qt.MouseButton.LeftButton)
    QApplication.processEvents()
    assert reader.width() > 1.5 * narrow
    assert not page.bar.isVisible()
    window.resize(1300, 800)
    QApplication.processEvents()
    assert not page.bar.isVisible(), "also in a window of another size"
    window.tell("something else that Esc would take away")
    qtbot.keyClick(reader.tabs, Qt.Key.Key_Escape)
    QApplication.processEvents()
    assert page.bar.isVisible()
    assert not reader.whole.isChecked()
    assert page.panes.way != "tabs"
    assert page.table.isVisible()
    assert window.banner.text, "one Esc does one thing"
    assert before == "rows"


def test_a_narrow_window_has_the_inspector_beside_the_form(qtbot, make_window):
    window = make_window("ok", begin=False)
    form, inspector = window.form_dock, window.inspector_dock
    assert inspector not in window.tabifiedDockWidgets(form)
    page = window.tabs.width()
    for keep_hidden in (True, False):
        inspector.setVisible(not keep_hidden)
        window.resize(1000, 650)
        qtbot.waitUntil(lambda: window.dockWidgetArea(inspector) == window.dockWidgetArea(form))
        qtbot.waitUntil(lambda: window.tabs.width() > 650)
        assert form.isVisible()
        assert inspector.isHidden() is keep_hidden
        window.resize(1500, 940)
        qtbot.waitUntil(lambda: window.dockWidgetArea(inspector) == Qt.DockWidgetArea.RightDockWidgetArea)
        assert inspector not in window.tabifiedDockWidgets(form)
        assert inspector.isHidden() is keep_hidden
    qtbot.waitUntil(lambda: abs(window.tabs.width() - page) < 40)
    window.resize(1000, 650)
    window.end()
    again = make_window("ok", begin=False)  # folded as it was left, and unfolded when there is room
    again.form_dock.show()
    again.inspector_dock.show()
    assert again.inspector_dock in again.tabifiedDockWidgets(again.form_dock)
    again.resize(1500, 940)
    qtbot.waitUntil(lambda: again.inspector_dock not in again.tabifiedDockWidgets(again.form_dock))


def test_pages_stay_divided_as_the_user_left_them(qtbot, make_window):
    from tests.bench import synthetic

    def share(splitter):
        """Of the pane on top; the second window may be lower, as high as the screen."""
        return splitter.sizes()[0] / sum(splitter.sizes())

    def split(window):
        run, measurements = synthetic.run()
        window.state.open(run, None, measurements)
        window.redraw.flush()
        QApplication.processEvents()
        return window.findChild(QSplitter, "compare-rows")

    window = make_window("ok", begin=False)
    first = split(window)
    before = first.sizes()
    first.setSizes([before[0] - 150, before[1] + 150])
    wanted = share(first)
    assert wanted < before[0] / sum(before) - 0.1
    window.end()
    again = split(make_window("ok", begin=False))
    qtbot.waitUntil(lambda: abs(share(again) - wanted) < 0.03)


def test_the_reader_s_tabs_keep_their_places_whatever_there_is_to_show(panes):
    tabs = panes.parts["reader"].tabs
    reader = panes.parts["reader"]
    places = []
    for there in ((True, True, True), (True, False, False), (True, True, False), (False, False, True)):
        reader._set_tabs(*there)
        bar = tabs.tabBar()
        places.append([bar.tabRect(i).left() for i in range(bar.count())])
        assert [tabs.isTabEnabled(i) for i in range(tabs.count())][-5:-2] == list(there)
        assert tabs.isTabEnabled(tabs.currentIndex())
    assert all(place == places[0] for place in places)
    reader._set_tabs(False, False, False)
    reader._set_tabs(True, False, False)
    assert tabs.currentWidget() is reader.source


def test_a_page_that_gets_lower_settles_on_one_way(qtbot, panes, monkeypatch):
    """The height that a way wants made room for another, whose height took it away again: the window hung
    when its text was enlarged."""
    arranged, arrange = [], LadderPanes._arrange

    def counted(self, way):
        arranged.append(way)
        if len(arranged) < 20:  # without an end, if it does not settle
            arrange(self, way)

    monkeypatch.setattr(LadderPanes, "_arrange", counted)
    page = scrolled(as_column(Lines(3), (panes, 1)))
    qtbot.addWidget(page)
    page.resize(800, 600)
    page.show()
    QApplication.processEvents()
    arranged.clear()
    for height in range(600, 240, -20):
        page.resize(800, height)
        QApplication.processEvents()
        assert page.verticalScrollBar().maximum() == 0, "it takes what room there is"
    assert len(arranged) == len({*arranged}), "each way once, while it gets lower"
    panes.setParent(None)  # it is closed by itself
