"""The ladder's charts with as many rungs as a GPU has: whole names clear of lines, and bars with room."""

from itertools import combinations, pairwise

import msgspec
import pytest
from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QApplication

from bench.results.ladder_records import REFERENCE, Ladder, LadderJob, RungCase, RungMeasurement
from bench.results.ladder_rows import rows
from bench.results.machine_limits import MachineLimits
from bench.results.records import Environment
from bench.views.charts import ladder_charts
from bench.views.charts.label_places import spread
from gui.base.theme import Theming
from gui.plots.base import place
from gui.plots.chart import ChartView, entries

BEST = {
    "fp32": "20 rung_20",
    "fp32-tc": "21 tensor_3xtf32",
    "tf32": "22 tensor_tf32",
    "fp16": "23 tensor_fp16",
}
REFERENCES = {"ONNX Runtime (CUDA)", "ONNX Runtime (CUDA) in tf32", "ONNX Runtime (CUDA) in fp16"}


def measured(rung, number, tflops, precision="fp32"):
    scope = "reference" if rung == REFERENCE else "rung"
    case = RungCase(rung=rung, number=number, scope=scope, precision=precision)
    time_ns = 1e12 / (tflops * 1e12) * 1e9
    samples = tuple(time_ns * (1 + 0.001 * (i % 5)) for i in range(20))
    return RungMeasurement(case=case, disposition="ok", samples_ns=samples, rounds=(0, 10))


def long_ladder(intensity, slow=1.0):
    """Charts (speed, limits) of 23 rungs in four precisions; slow: how far below the limits they stay."""
    limits = MachineLimits(
        device="cuda",
        bytes_per_s=4e12,
        flops_per_s=60e12,
        copied_by="a copy",
        multiplied_by="a product",
        measured_on="a GPU",
        measured_at="now",
        matrix_flops_per_s={"tf32": 330e12, "fp16": 650e12},
        matrix_by="products of tiles",
    )
    found = [measured(f"rung_{i:02d}", i, 0.5 * 1.25**i / slow) for i in range(1, 21)]
    found += [
        measured(name.partition(" ")[2], int(name[:2]), rate / slow, precision)
        for (precision, name), rate in zip(list(BEST.items())[1:], (51, 110, 170), strict=True)
    ]
    found += [measured(REFERENCE, 0, 17 / slow), measured(REFERENCE, 0, 88 / slow, "tf32")]
    found += [measured(REFERENCE, 0, 123 / slow, "fp16")]
    ladder = Ladder(
        job=LadderJob(op="conv", params={}, device="cuda", title="a convolution"),
        cases=tuple(m.case for m in found),
        flops=10**12,
        nbytes=round(10**12 / intensity),
        reference="ONNX Runtime (CUDA)",
        limits={"cuda": limits},
        environment=Environment(gpu="a GPU"),
    )
    speed, near = ladder_charts.charts(ladder, rows(ladder, found))
    return speed, near


@pytest.fixture
def show(qtbot):
    def show(chart, width, height, theme="light"):
        theming = Theming(theme)
        theming.apply()
        view = ChartView(theming)
        qtbot.addWidget(view)
        view.resize(width, height)
        view.show_chart(chart)
        with qtbot.waitExposed(view):
            view.show()
        # Charts lay themselves out anew with each size, in the turn after it.
        view.resize(width + 1, height)
        qtbot.waitUntil(lambda: view.width() == width + 1)
        QApplication.processEvents()
        (plot,) = view.plots.values()
        return view, plot

    return show


# The theme changes last: each change polishes every widget that there is anew.
@pytest.mark.sampled(6)
@pytest.mark.parametrize("size", [(330, 302), (511, 247), (1100, 700)])
@pytest.mark.parametrize("slow", [1.0, 10.0])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_names_beside_the_points_are_whole_and_apart(show, size, theme, slow):
    _, chart = long_ladder(430.0, slow)
    view, plot = show(chart, *size, theme)
    view.point_out("03 rung_03")
    names = plot.names.names
    box = plot.names.boundingRect()
    for name in names:
        assert box.contains(name.rect), name.text
    for one, other in combinations(names, 2):
        # Rows may touch; texts are less high than their rows.
        assert not one.rect.adjusted(0, 0.5, 0, -0.5).intersects(other.rect), (one.text, other.text)
    (left, right), (low, high) = plot.box.viewRange()
    across, up = plot.box.width() / (right - left), plot.box.height() / (high - low)
    for point in (series.points[0] for series in chart.panels[0].series if len(series.points) == 1):
        spot = QPointF((place(point.x, True, 2.0) - left) * across, (high - point.y) * up)
        assert not any(name.rect.contains(spot) for name in names), "a name lies on a point"
    assert [name.text for name in names if name.strong] == ["03 rung_03"]
    assert len(set(plot.names.texts) & {*BEST.values()}) >= (4 if size[0] > 500 else 2)
    # What is not named is read out at its place.
    for series in chart.panels[0].series:
        assert series.label in plot.words_at(place(series.points[0].x, True, 2.0))


def test_a_lane_a_precision_and_a_line_where_the_limit_is(show):
    _, chart = long_ladder(430.0)
    view, plot = show(chart, 500, 300)
    assert list(plot.y_axis.names.values()) == ["fp32", "fp32-tc", "TF32", "fp16"]
    assert [plot.x_axis.names[p] for p in sorted(plot.x_axis.names)] == ["1 %", "10 %", "100 %"]
    assert not any(switch.isVisible() for switch in (view._scale_x, view._scale_y)), "one scale alone fits"
    (left, right), (low, high) = plot.box.viewRange()
    assert left < place(1.0, True, 2.0) < right
    assert low < min(plot.y_axis.names) < max(plot.y_axis.names) < high
    plot.read_out(plot.nearest(QPointF(place(0.3, True, 2.0), 0.0)))
    assert "of the limit" in plot.readout.text()


def test_numbers_of_rungs_that_do_not_all_fit_go_by_fives(show):
    speed, _ = long_ladder(430.0)
    for width, wanted in ((1000, [f"{n:02d}" for n in range(1, 24)]), (330, ["05", "10", "15", "20"])):
        _, plot = show(speed, width, 260)
        axis = plot.x_axis
        (level, shown), _ = axis.tickValues(*plot.box.viewRange()[0], plot.box.width())
        assert axis.tickStrings(shown, 1.0, level) == wanted


def test_the_bars_have_more_room_than_what_is_said_of_them(show):
    speed, _ = long_ladder(430.0)
    for width, height in ((458, 302), (511, 247)):
        view, plot = show(speed, width, height)
        assert plot.height() >= view.height() / 2
        legend = view._legend
        references = [legend.buttons[e.key] for e in entries(speed) if e.marker]
        assert len({button.y() for button in references}) == 1
        assert references[0].text().startswith("ONNX Runtime (CUDA), ")
        assert references[1].text().startswith("in tf32, ")
        assert references[1].accessibleName().startswith("ONNX Runtime (CUDA) in tf32, ")
        for button in legend.buttons.values():
            assert button.geometry().right() <= legend.width()
            text = button.fontMetrics().horizontalAdvance(button.text())
            assert text + button.iconSize().width() < button.width()
    # As before, a click hides what is named.
    references[1].click()
    assert plot.hidden == {references[1].accessibleName()}


def test_where_there_is_no_room_the_selected_rung_s_name_stays(show):
    _, chart = long_ladder(430.0)
    view, plot = show(chart, 330, 165)
    view.point_out("02 rung_02")
    beside = [name.text for name in plot.names.names if name.leader is not None]
    assert len(beside) < len(BEST) + len(REFERENCES) + 1
    assert "02 rung_02" in beside
    # A label that is wider than the room is left out whole.
    series = msgspec.structs.replace(chart.panels[0].series[-1], label="x" * 400)
    panel = msgspec.structs.replace(chart.panels[0], series=(series,))
    view.show_chart(msgspec.structs.replace(chart, panels=(panel,)))
    assert plot.names.texts == []


def test_labels_at_points_are_set_apart():
    assert spread([1.0, 5.0, 9.0], 1, 0, 10) == [1.0, 5.0, 9.0]
    crowded = spread([5.0, 5.1, 9.9, 9.9], 1, 0, 10)
    assert crowded == sorted(crowded)
    assert all(b - a >= 1 for a, b in pairwise(crowded))
    assert crowded[-1] <= 10
    assert spread([5.0] * 12, 1, 0, 10) is None
    assert spread([5.0], 1, 0, 10, [(3.0, 6.0)]) == [6.0]
