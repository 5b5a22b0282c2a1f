"""What speaks against a figure is seen in the window where the figure stands, and says why."""

from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor

from bench.results import doubt
from bench.results.ladder_rows import rows as ladder_rows
from bench.results.records import Validity
from bench.views.charts.doubts import LEGEND
from bench.words import units
from gui.base.theme import Theming
from gui.pages.ladder.ladder_reader import LadderTable, shown_rows, standing
from gui.pages.layers import layer_table
from gui.shell.docks import page as inspector_page
from gui.shell.docks import sections
from tests.bench import synthetic
from tests.bench.ladder.test_ladder import example, measured
from tests.gui.shared import as_found

HELD_BACK = "the GPU was held back: by its temperature"


@pytest.fixture(scope="module")
def recorded():
    """A warning on the reference alone at batch 4, and one sample of ours at batch 16."""
    run, found = synthetic.run(backends=("engine-cpu", "ort-cpu"), batches=(1, 4, 16), images=(200,))
    changed = []
    for m in found:
        if (m.case.backend, m.case.batch) == ("ort-cpu", 4):
            m = msgspec.structs.replace(m, validity=Validity(warnings=(HELD_BACK,)))
        if (m.case.backend, m.case.batch) == ("engine-cpu", 16):
            m = msgspec.structs.replace(m, samples_ns=m.samples_ns[:1], rounds=(0,))
        changed.append(m)
    return run, changed


@pytest.fixture(scope="module")
def shared(make_shared_window, recorded):
    made = make_shared_window()
    run, found = recorded
    made.state.open(run, Path("a-run"), found)
    made.redraw.flush()
    return made


@pytest.fixture
def window(shared):
    with as_found(shared):
        yield shared


def test_the_table_marks_figures_in_its_first_columns(window):
    layer_table = window.pages[0].table
    model = layer_table.source
    names = [column.name for column in model.columns]
    assert names.index("warnings") > names.index("speedup")  # the sentences push no figure out of sight

    def cells(backend, batch):
        at = next(i for i, r in enumerate(model.rows) if (r.case.backend, r.case.batch) == (backend, batch))
        return {name: model.index(at, place).data() for place, name in enumerate(names)}

    ours, reference = cells("engine-cpu", 4), cells("ort-cpu", 4)
    assert ours["disposition"] == reference["disposition"] == "ok !"
    assert ours["speedup"].endswith(doubt.MARK)
    assert "!" not in ours["median_s"] + ours["images_per_s"]
    assert reference["median_s"].endswith(doubt.MARK)
    assert "(of the reference ort-cpu)" in ours["warnings"]
    assert cells("engine-cpu", 16)["speedup"] == "not decided !"
    assert not any("!" in str(cell) for cell in cells("engine-cpu", 1).values())
    place = names.index("speedup")
    row = next(i for i, r in enumerate(model.rows) if r.case.batch == 4 and not r.is_reference)
    assert HELD_BACK in model.index(row, place).data(Qt.ItemDataRole.ToolTipRole)


def test_points_are_hollow_and_smaller_which_the_legend_explains_and_cannot_hide(window):
    view = window.pages[0].views["op-time"]
    plot = view.plots[""]

    def hollow(label):
        return sorted(round(2.0 ** point.pos().x()) for point in plot._items[label].unsure.points())

    assert hollow("ort-cpu") == [4]
    assert hollow("engine-cpu") == [16]
    (point,) = plot._items["ort-cpu"].unsure.points()
    colour = next(s.colour for s in plot.panel.series if s.label == "ort-cpu")
    assert point.brush().color() == QColor(window.theming.theme.paper)
    sizes = plot._items["ort-cpu"].line.opts["symbolSize"]
    assert point.pen().color().name().upper() == colour
    assert 0 < point.size() < max(sizes), "what is sure is seen first"
    assert sorted(sizes)[0] == 0, "and its own mark is not below it"
    # What nobody doubts is full, the reference's too.
    assert plot._items["ort-cpu"].line.opts["symbolBrush"] == colour
    button = view._legend.buttons[LEGEND]
    button.click()
    assert LEGEND not in view._legend.hidden
    assert hollow("ort-cpu") == [4]
    assert HELD_BACK in plot.words_at(2.0)
    # One sample has no interval.
    x, _ = plot._items["engine-cpu"].line.getData()
    assert len(x) == 3
    assert len(plot._items["engine-cpu"].bars.opts["x"]) == 2
    view._legend.buttons["ort-cpu"].click()
    assert not plot._items["ort-cpu"].unsure.isVisible()
    view._legend.buttons["ort-cpu"].click()
    assert plot._items["ort-cpu"].unsure.isVisible()


def test_a_bar_has_its_mark_above_it_and_its_reason_in_the_read_out(window):
    view = window.pages[0].views["breakdown"]
    if "ort-cpu" not in view.plots:  # there is room for one panel
        view.choice.choose("ort-cpu")
        view.choice.activated.emit(0)
    plot = view.plots["ort-cpu"]
    totals = {bar.x: bar.total.endswith(doubt.MARK) for bar in plot.panel.bars}
    assert totals == {1: False, 4: True, 16: False}
    assert plot.doubtful.places == [plot._places[4]]
    assert HELD_BACK in plot.words_at(plot._places[4])
    assert "!" not in plot.words_at(plot._places[1])


def test_the_inspector_says_what_speaks_against_a_case_and_its_ratio(window):
    ours = next(
        m.case for m in window.state.measurements if (m.case.backend, m.case.batch) == ("engine-cpu", 4)
    )
    window.state.select(ours)
    html = inspector_page(window.state.measurement(ours), window.state, Theming().theme)
    assert f"! {HELD_BACK} (of the reference ort-cpu)" in html
    lonely = msgspec.structs.replace(ours, batch=16)
    window.state.select(lonely)
    html = inspector_page(window.state.measurement(lonely), window.state, Theming().theme)
    assert "not known from one sample" in html
    assert "not decided !, by paired rounds" in html
    assert "one sample says nothing of its own spread" in html
    window.state.select(None)


def test_the_inspector_says_slower_as_the_strip_does_and_what_ok_is_said_of(window):
    state = window.state
    slow = next(r for r in state.rows() if r.verdict == "SLOWER")
    state.select(slow.case)
    html = inspector_page(state.measurement(slow.case), state, Theming().theme)
    assert f"{units.times(1 / slow.speedup)} slower (" in html
    assert "✓ right answers" in html
    state.select(None)


def test_the_inspector_divides_a_pass_as_its_bar_does(window):
    chart = next(c for c in window.state.all_charts() if c.name.endswith("breakdown"))
    names = {category.key: category.label for category in chart.categories}
    for panel in chart.panels:
        for bar in panel.bars:
            measurement = next(
                m
                for m in window.state.measurements
                if (m.case.backend, m.case.batch) == (panel.title, int(bar.x))
            )
            facts = dict(
                dict(sections(window.state.row(measurement.case)))["One pass, host to host, copies included"]
            )
            for part in bar.parts:
                assert facts[names[part.category]] == f"{part.text} ({units.percent(part.value, 1)})"
            assert facts["host to host"] == bar.total


def test_layers_of_a_doubtful_case_are_marked(recorded):
    found = [m for m in recorded[1] if m.case.batch == 4]
    made = layer_table(found, found[0])
    times = {c.heading: c for c in made.columns if c.name.endswith("time_s")}
    assert times["ort-cpu"].shown(made.rows[0]).endswith(doubt.MARK)
    assert HELD_BACK in times["ort-cpu"].tip
    assert not times["engine-cpu"].shown(made.rows[0]).endswith(doubt.MARK)
    held = next(c for c in made.columns if c.name == "speedup")
    assert held.shown(made.rows[0]).endswith(doubt.MARK)  # its reference's


def test_the_ladder_s_table_and_reader_mark_what_a_doubtful_reference_is_held_against(qapp):
    ladder, found = example()
    found = [
        msgspec.structs.replace(m, validity=Validity(warnings=(HELD_BACK,))) if m.case.is_reference else m
        for m in found
    ]
    found.insert(0, msgspec.structs.replace(measured("once", 1, 8e6), samples_ns=(8e6,), rounds=(0,)))
    view = LadderTable(Theming())
    shown = shown_rows(ladder_rows(ladder, found), {}, {})
    view.show_rows(shown)
    model = view.source
    names = [column.name for column in model.columns]
    timed = next(i for i, s in enumerate(shown) if s.row.speedup and s.row.name != "once")
    once = next(i for i, s in enumerate(shown) if s.row.name == "once")
    assert model.index(timed, names.index("speedup")).data().endswith(doubt.MARK)
    assert not model.index(timed, names.index("median_s")).data().endswith(doubt.MARK)
    assert model.index(once, names.index("median_s")).data().endswith(doubt.MARK)
    assert model.index(once, names.index("relative")).data() == ""
    assert "of the reference" in standing(shown[timed])[0]
