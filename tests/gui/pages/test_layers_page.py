"""The page of layers, on a recorded run: the graph and the table say the same and select each other."""

import csv
import dataclasses
import io
import itertools
import re
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from bench.results.machine_limits import MachineLimits
from bench.results.records import Case, ErrorStats, Layer, Measurement
from gui.base.theme import DARK, LIGHT, Theming
from gui.pages import layers as layers_page
from gui.pages.layers import LayersPage
from gui.sessions.comparison_session import Overlay
from gui.shell.docks import layer_facts
from gui.widgets.graph import Box, GraphView
from tests.gui.mouse import move
from tests.gui.recorded import Shown

LENET = ["tanh1", "pool1", "tanh2", "pool2", "flatten", "tanh3", "tanh4", "fc5", "prob"]


@pytest.fixture
def shown(qtbot):
    made = Shown(qtbot, LayersPage)
    made.open()
    return made


def test_what_chose_a_layers_kernel_is_shown_beside_it():
    layer = Layer(nodes=("conv1",), op_type="Conv", output="y", rung="tiled", chosen="timed")
    assert ("kernel", "tiled (the fastest of ours, as timed on this machine)") in layer_facts(layer)
    assert "data" not in dict(layer_facts(layer)), "bytes that are not known are not 0 B"
    assert layers_page.kernel_words(layer) == "tiled (timed)"
    assert layers_page.kernel_words(msgspec.structs.replace(layer, chosen="ladder")) == "tiled"
    assert layers_page.kernel_words(msgspec.structs.replace(layer, rung="", chosen="")) is None


def heading(table, name):
    return [c.heading for c in table.source.columns].index(name)


def column(table, name):
    at = heading(table, name)
    return [table.source.index(i, at).data() for i in range(table.source.rowCount())]


def test_an_empty_page_says_what_fills_it(qtbot):
    made = Shown(qtbot, LayersPage)
    assert made.empty_shown
    assert "F5" in made.page._empty.text()
    made.open(keep=lambda m: False)
    made.state.add([])
    made.redraw.flush()
    assert made.empty_shown


def test_a_run_without_layers_says_so(qtbot, shown):
    run = msgspec.structs.replace(
        shown.state.run, job=msgspec.structs.replace(shown.state.run.job, layers=False)
    )
    plain = [msgspec.structs.replace(m, layers=()) for m in shown.state.measurements]
    shown.state.open(run, None, plain)
    shown.redraw.flush()
    assert shown.empty_shown
    assert "did not measure layers" in shown.page._empty.text()


def test_layers_that_were_checked_and_not_timed_show_their_errors_and_no_bars(shown):
    untimed = [
        msgspec.structs.replace(
            m, layers=tuple(msgspec.structs.replace(x, time_ns=None, clock="") for x in m.layers if x.nodes)
        )
        for m in shown.state.measurements
        if m.case.backend == "engine-cpu"
    ]
    shown.state.open(shown.state.run, None, untimed)
    shown.redraw.flush()
    page = shown.page
    shown.choose("colour", "Time")
    assert page.legend.scale is None
    assert {page.graph.look(key).value for key in LENET} == {""}
    assert "no layer was timed" in page.bars.heading.text()
    assert not page.bars.bars._rows
    assert "No layer of engine-cpu was timed; they were checked alone." in page._note.text()
    names = [column.title or column.name for column in page.table.source.table.columns]
    assert not any("time_s" in name for name in names)
    shown.choose("colour", "Error of the layer alone")
    assert page.graph.look("tanh1").value.endswith(("e-07", "e-08"))


def test_the_graph_is_the_model(shown):
    graph = shown.page.graph
    assert [box.key for box in graph.boxes if not box.plain] == LENET
    assert [box.key for box in graph.boxes if box.plain] == ["input"]
    assert graph.edges == tuple(zip(["input", *LENET], LENET, strict=False))
    conv = next(box for box in graph.boxes if box.key == "tanh1")
    assert (conv.title, conv.name, conv.shape) == ("Conv", "conv1 … tanh1", "4 × 6 × 28 × 28")


def test_times_colour_the_boxes_and_the_legend_has_their_unit(shown):
    looks = {key: shown.page.graph.look(key) for key in LENET}
    focus = shown.page._focus
    assert focus.case.backend == "engine-cpu"
    slowest = max((layer for layer in focus.layers if layer.time_ns), key=lambda layer: layer.time_ns)
    scale = shown.page.legend.scale
    assert looks[slowest.output].fill == scale.colour(scale.high).name()
    assert looks["flatten"].fill == ""  # the engine does not run it
    assert "µs" in looks[slowest.output].value
    assert "%" in looks[slowest.output].value
    assert "engine-cpu" in scale.title
    assert scale.ticks()[-1][1].endswith("µs")
    assert ("not timed", LIGHT.alternate) in scale.marks


def test_errors_colour_the_boxes_up_to_the_bound(shown):
    shown.choose("colour", "Error of the layer alone")
    scale = shown.page.legend.scale
    assert scale.log
    assert scale.high == 1e-5
    assert shown.page.graph.look("tanh1").value.endswith(("e-07", "e-08"))
    assert shown.page.graph.look("pool1").value == "0"
    assert not any(shown.page.graph.look(key).failed for key in LENET)


def test_a_layer_out_of_bounds_is_marked_in_graph_and_table(shown):
    bad = ErrorStats(
        rel_l2=0.5, max_abs=1, mean_abs=1, max_rel=1, bound=1e-5, ok=False, reason="off by 0.5 at (0, 1)"
    )
    changed = []
    for m in shown.state.measurements:
        layers = [msgspec.structs.replace(x, isolated=bad) if x.output == "tanh2" else x for x in m.layers]
        changed.append(msgspec.structs.replace(m, layers=tuple(layers)))
    shown.state.add(changed)
    shown.choose("colour", "Error of the layer alone")
    look = shown.page.graph.look("tanh2")
    assert look.failed
    assert look.fill == LIGHT.failed
    assert "off by 0.5" in look.tip
    assert ("out of bounds", LIGHT.failed) in shown.page.legend.scale.marks
    assert column(shown.page.table, "ok")[2] == "✕"


def test_the_table_has_the_times_of_every_backend_and_the_rates_of_one(shown):
    table = shown.page.table
    assert column(table, "op")[:2] == ["Conv", "MaxPool"]
    layer = shown.page._focus.layers[0]
    row = table.source.rows[0]
    assert row.times_ns["engine-cpu"] == layer.time_ns
    assert set(row.times_ns) == {"engine-cpu", "ort-cpu"}
    assert row.rate(layer.flops) == pytest.approx(layer.flops / (layer.time_ns * 1e-9))
    assert row.speedup == pytest.approx(row.times_ns["ort-cpu"] / layer.time_ns)
    assert sum(r.share or 0 for r in table.source.rows) == pytest.approx(1)
    assert column(table, "kernel")[0] == layer.rung
    names = [each.heading for each in table.source.columns]
    assert names[3:6] == ["engine-cpu", "ort-cpu", "speed-up"], "what is compared is seen without scrolling"
    rows = table.verticalHeader().length() + table.horizontalHeader().height()
    assert table.maximumHeight() < rows + 40, "what room it does not need is the bars'"
    shown.choose("focus", "ort-cpu")
    assert table.isColumnHidden(heading(table, "kernel"))
    assert table.isColumnHidden(heading(table, "speed-up"))


def test_sorting_puts_what_has_no_value_last_and_keeps_the_selection(shown):
    table = shown.page.table
    shown.page.graph._pick("tanh2")
    at = heading(table, "engine-cpu")
    for order in (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder):
        table.sortByColumn(at, order)
        times = [row.times_ns.get("engine-cpu") for row in table.source.rows]
        known = [t for t in times if t is not None]
        assert known == sorted(known, reverse=order == Qt.SortOrder.DescendingOrder)
        assert times[-1] is None
        assert table.source.rows[table.currentIndex().row()].layer.output == "tanh2"


def test_a_click_in_the_graph_selects_in_the_table_and_the_state(shown, qtbot):
    graph = shown.page.graph
    graph.fit()
    at = graph.mapFromScene(graph._items["pool2"].sceneBoundingRect().center())
    qtbot.mouseClick(graph.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert graph.selected == "pool2"
    assert shown.state.layer == "pool2"
    assert shown.state.case == shown.page._focus.case
    table = shown.page.table
    assert table.source.rows[table.currentIndex().row()].layer.output == "pool2"


def test_a_row_selects_in_the_graph(shown, qtbot):
    table = shown.page.table
    table.setFocus()
    table.setCurrentIndex(table.source.index(0, 0))
    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert shown.state.layer == "pool1"
    assert shown.page.graph.selected == "pool1"


def test_arrow_keys_walk_the_graph(shown, qtbot):
    graph = shown.page.graph
    graph.setFocus()
    seen = []
    for key in (Qt.Key.Key_Home, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_End):
        qtbot.keyClick(graph, key)
        seen.append(graph.selected)
    assert seen == ["input", "tanh1", "pool1", "tanh1", "prob"]
    assert shown.state.layer == "prob"


def test_dragging_moves_and_does_not_select_and_the_wheel_zooms(shown, qtbot):
    graph = shown.page.graph
    graph.full_size()
    graph.verticalScrollBar().setValue(0)
    port = graph.viewport()
    qtbot.mousePress(port, Qt.MouseButton.LeftButton, pos=QPoint(120, 300))
    for y in range(290, 200, -10):
        move(port, QPoint(120, y), Qt.MouseButton.LeftButton)
    qtbot.mouseRelease(port, Qt.MouseButton.LeftButton, pos=QPoint(120, 200))
    assert graph.verticalScrollBar().value() > 0
    assert graph.selected == ""
    for turned, sign in ((120, 1), (-240, -1)):
        before = graph.zoom
        wheel = QWheelEvent(
            QPointF(50, 50), graph.mapToGlobal(QPointF(50, 50)), QPoint(), QPoint(0, turned),
            Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(port, wheel)
        assert (graph.zoom - before) * sign > 0
    qtbot.keyClick(graph, Qt.Key.Key_0)
    shown_rect = graph.mapToScene(port.rect()).boundingRect()
    assert shown_rect.adjusted(-3, -3, 3, 3).contains(graph.sceneRect())


def test_another_model_and_batch_are_chosen_and_a_selection_elsewhere_is_followed(shown):
    assert shown.offered("model") == ["lenet5-digits", "ece408-low"]
    shown.choose("model", "ece408-low")
    assert shown.page.table.source.rows[0].name == "conv1 … tanh1"
    assert len(shown.page.graph.boxes) != len(LENET) + 1
    shown.choose("batch", "1")
    assert shown.page._focus.case.batch == 1
    wanted = Case(model="lenet5-digits", backend="ort-cpu", precision="fp32", batch=4, images=40)
    shown.state.select(wanted, "tanh2")
    shown.redraw.flush()
    assert shown.page._focus.case == wanted
    assert shown.page.graph.selected == "tanh2"


def test_a_column_grows_with_its_values_and_stays_as_the_user_left_it(shown):
    table = shown.page.table
    shown.choose("batch", "1")
    wide = [table.columnWidth(i) for i in range(table.source.columnCount())]
    at = heading(table, "output shape")
    table.setColumnWidth(at, 50)
    table.show_table(table.source.table)
    assert table.columnWidth(at) == 50
    rows = [dataclasses.replace(r, layer=msgspec.structs.replace(r.layer, shape=(1024, 6144, 28, 28)))
            for r in table.source.rows]  # fmt: skip
    table.show_table(dataclasses.replace(table.source.table, rows=rows))
    assert table.columnWidth(at) > wide[at]


def test_a_thinned_case_takes_its_errors_from_where_they_were_kept(shown):
    shown.choose("batch", "1")
    assert all(layer.isolated is None for layer in shown.page._focus.layers)
    shown.choose("colour", "Error of the layer alone")
    assert shown.page.graph.look("tanh1").value


def test_copying_gives_csv_in_base_units_and_markdown_as_shown(shown):
    table = shown.page.table
    table.copy_csv()
    rows = list(csv.DictReader(io.StringIO(QApplication.clipboard().text())))
    assert len(rows) == table.source.rowCount()
    assert float(rows[0]["engine-cpu time_s"]) == pytest.approx(shown.page._focus.layers[0].time_ns * 1e-9)
    assert rows[0]["shape"] == "4x6x28x28"
    table.copy_markdown()
    lines = QApplication.clipboard().text().splitlines()
    assert lines[0].startswith("| # | layer | op |")
    assert len(lines) == 2 + len(rows)


def test_the_theme_is_followed(shown):
    light = shown.page.graph.look("tanh1").fill
    shown.theming.choose("dark")
    shown.redraw.flush()
    assert shown.page.graph.look("tanh1").fill != light
    assert shown.page.graph.backgroundBrush().color().name().upper() == DARK.paper


def test_branches_join_where_a_layer_reads_two(qtbot):
    def layer(output, *inputs):
        return Layer(nodes=(output,), op_type="Add", output=output, inputs=inputs, time_ns=1000.0)

    made = Shown(qtbot, LayersPage)
    case = Case(model="fork", backend="engine-cpu", precision="fp32", batch=1)
    layers = (layer("a", "x"), layer("b", "a"), layer("c", "a"), layer("d", "b", "c", "x"))
    made.state.add([Measurement(case=case, disposition="ok", layers=layers)])
    made.redraw.flush()
    graph = made.page.graph
    assert set(graph.edges) == {
        ("x", "a"), ("x", "d"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"),
    }  # fmt: skip
    graph.setFocus()
    for key in (Qt.Key.Key_Home, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Right):
        qtbot.keyClick(graph, key)
    assert graph.selected in ("b", "c")


def test_layers_of_old_runs_that_tell_no_inputs_are_a_chain():
    layers = [Layer(nodes=(n,), op_type="Relu", output=n) for n in "abc"]
    layers.append(Layer(nodes=(), op_type="ReorderOutput", output=""))
    assert layers_page.layer_edges(layers) == ([], [("a", "b"), ("b", "c")])


def test_a_deep_graph_opens_readable_from_its_top(qtbot):
    view = GraphView(Theming("light"))
    qtbot.addWidget(view)
    view.resize(400, 300)
    view.show()
    keys = [f"n{i}" for i in range(300)]
    view.show_graph([Box(k, "Conv", k, "1 × 1") for k in keys], list(itertools.pairwise(keys)))
    assert view.zoom >= 0.7
    assert view.mapToScene(view.viewport().rect()).boundingRect().top() < 10


def test_every_layer_has_a_bar_of_the_engine_and_one_of_its_reference(qtbot, shown):
    page, bars = shown.page, shown.page.bars.bars
    page.showcase()
    focus = page._focus
    names = [side.name for side in bars._sides]
    assert names[0] == layers_page.contender(focus)
    assert focus.reference in names[1]
    assert len(names) == 2
    timed = [layer for layer in focus.layers if layer.time_ns]
    rows = {row.layer.output: place for place, row in enumerate(bars._rows)}
    assert {layer.output for layer in timed} <= set(rows)
    longest = max(timed, key=lambda layer: layer.time_ns)
    shortest = min(timed, key=lambda layer: layer.time_ns)
    wide, narrow = (bars.bar(rows[layer.output], 0).width() for layer in (longest, shortest))
    assert wide / narrow == pytest.approx(longest.time_ns / shortest.time_ns, rel=0.3)
    place = bars.bar(rows[shortest.output], 0).center()
    qtbot.mouseClick(bars, Qt.MouseButton.LeftButton, pos=place)
    assert shown.state.layer == shortest.output
    assert bars._marked == shortest.output
    assert not page.bars.grab().isNull()


def test_a_name_that_has_room_is_not_cut(shown):
    bars = shown.page.bars.bars
    for place in range(12):
        layer = msgspec.structs.replace(bars._rows[0].layer, nodes=(f"conv{place}", "", f"pool{place}"))
        bars.show_rows([dataclasses.replace(bars._rows[0], layer=layer)], bars._sides)
        name = bars._rows[0].name
        room = bars._across()[0] - layers_page.GAP - layers_page.TIGHT
        assert bars.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, room) == name


def test_the_page_opens_with_what_was_found_and_leads_to_it(shown):
    answers = shown.page.answers
    words = {question: cell.words for question, cell in answers.cells.items()}
    assert words["Right?"].startswith("✓ all ")
    assert re.match("(loses|wins) on ", words["How fast?"])
    assert re.search(r": \d+ % of the (gap|time)", words["Held back by"])
    answers.cells["Held back by"].click()
    layer = next(layer for layer in shown.page._focus.layers if layer.output == shown.state.layer)
    assert words["Held back by"].startswith(layer.nodes[0])
    answers.copy_action.trigger()
    assert QApplication.clipboard().text().startswith("engine-cpu: ✓ all ")


def test_another_run_laid_over_marks_what_differs_in_table_graph_and_note(shown):
    own = shown.state.measurements
    names = {m.case.backend for m in own}
    assert "engine-cpu" in names
    slower = [
        msgspec.structs.replace(
            m,
            layers=tuple(
                msgspec.structs.replace(x, time_ns=2 * x.time_ns, rung="other")
                if x.output == "pool1" and x.time_ns
                else x
                for x in m.layers
            ),
        )
        for m in own
    ]
    before = len(shown.page.table.source.columns)
    shown.state.lay_over(Overlay(Path("another"), shown.state.run, slower, "before"))
    shown.redraw.flush()
    table = shown.page.table
    assert len(table.source.columns) == before + 2
    assert [text for text in column(table, "≠ before") if text] == ["there by other, 0.500× its time"]
    assert any("· before" in c.heading for c in table.source.columns)
    assert "≠ before: 1 of " in shown.page._note.text()
    marked = [key for key, item in shown.page.graph._items.items() if item.look.value.startswith("≠")]
    assert marked == ["pool1"]
    shown.state.take_off()
    shown.redraw.flush()
    assert len(table.source.columns) == before


def test_where_the_machine_s_limits_are_known_each_layer_stands_below_them(shown):
    limits = MachineLimits(
        device="cpu",
        bytes_per_s=1e10,
        flops_per_s=1e11,
        copied_by="copies",
        multiplied_by="products",
        measured_on="here",
        measured_at="now",
    )
    run = msgspec.structs.replace(shown.state.run, limits={"cpu": limits})
    shown.state.open(run, None, shown.state.measurements)
    shown.redraw.flush()
    assert any(" % of arithmetic" in (text or "") for text in column(shown.page.table, "of limit"))
    assert set(filter(None, column(shown.page.table, "cause"))) <= {
        "far from every limit", "bound by arithmetic", "bound by memory",
        "beyond the limit of arithmetic by the plain count", "beyond the limit of memory by the plain count",
    }  # fmt: skip
