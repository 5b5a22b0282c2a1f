"""Charts as data: what is shown comes from the records, and nothing is said that they do not say."""

from __future__ import annotations

import math
import re

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.results.messages import Provisional
from bench.results.records import Case, Disposition, Measurement
from bench.results.rows import rows
from bench.views.charts import breakdown
from bench.views.charts.comparison_charts import charts, with_provisional
from bench.views.charts.definitions import Chart, Series
from bench.views.sentences.footer import settings as settings_line
from bench.views.sentences.verdicts import verdict
from bench.words import palette
from tests.bench import synthetic

KINDS = ("scoreboard", "accuracy", "op-time", "breakdown", "total-time", "speed")
DISPOSITIONS = list(Disposition.__args__)


def by_kind(found: list[Chart], model: str = "lenet5-digits") -> dict[str, Chart]:
    return {chart.name.removeprefix(f"{model}-"): chart for chart in found if chart.model == model}


@pytest.fixture(scope="module")
def full() -> dict[str, Chart]:
    failures = {("engine-cuda", 256): ("out_of_memory", "9 GiB were wanted")}
    return by_kind(charts([synthetic.run(failures=failures)]))


def test_every_model_has_its_own_set() -> None:
    found = charts([synthetic.run(models=("a", "dir/b.onnx"), batches=(1, 4))])
    assert [chart.name for chart in found] == [f"{model}-{kind}" for model in "ab" for kind in KINDS]


def test_cases_that_are_being_measured_are_points_of_their_own() -> None:
    case = Case(model="dir/b.onnx", backend="ort-cpu", precision="fp32", batch=4, images=100)
    soon = [Provisional(case=case, median_ns=5e4)]
    (alone,) = with_provisional([], case.model, "The b", soon, {"ort-cpu"})
    made = charts([synthetic.run(models=(case.model,), batches=(1, 2))])
    both = with_provisional(made, case.model, "The b", soon, {"ort-cpu"})
    assert [chart.name for chart in both] == [chart.name for chart in made]
    joined = next(chart for chart in both if chart.name == alone.name == "b-op-time")
    for chart, ticks in ((alone, (4,)), (joined, (1, 2, 4))):
        (panel,) = chart.panels
        (line,) = (s for s in panel.series if s.provisional)
        assert (line.label, line.dashed, panel.x.ticks) == ("ort-cpu", True, ticks)
        assert [(p.x, p.y) for p in line.provisional] == [(4, pytest.approx(5e-5))]
    before = next(chart for chart in made if chart.name == joined.name)
    assert [s.points for s in joined.panels[0].series] == [s.points for s in before.panels[0].series]
    assert with_provisional(made, case.model, "The b", []) == made


def test_axes_name_their_units_and_batches(full: dict[str, Chart]) -> None:
    for chart in full.values():
        for panel in chart.panels:
            assert panel.x.ticks == synthetic.DOUBLING
            assert panel.x.label
            assert panel.y.unit or panel.y.label == "images/s"
    time = full["op-time"].panels[0]
    assert (time.x.scale, time.y.scale, time.y.unit) == ("log", "log", "s")


def test_colours_are_the_backends_and_references_are_dashed(full: dict[str, Chart]) -> None:
    series = {s.label: s for s in full["op-time"].panels[0].series}
    assert {name: s.colour for name, s in series.items()} == palette.BACKENDS
    assert {name for name, s in series.items() if s.dashed} == {"ort-cuda", "ort-cpu"}


def test_points_carry_their_interval(full: dict[str, Chart]) -> None:
    for series in full["op-time"].panels[0].series:
        for point in series.points:
            assert point.low is not None
            assert point.high is not None
            assert point.low <= point.y <= point.high


def test_a_failed_case_is_marked_with_its_reason(full: dict[str, Chart]) -> None:
    for kind in ("op-time", "accuracy"):
        series = next(s for s in full[kind].panels[0].series if s.label == "engine-cuda")
        assert [(m.x, m.disposition, m.reason) for m in series.marks] == [
            (256, "out_of_memory", "9 GiB were wanted")
        ]
        assert 256 not in [p.x for p in series.points]
    assert any("batch 256: out of memory (9 GiB were wanted)" in note for note in full["speed"].notes)


def test_footer_names_the_machine_and_how_it_was_measured(full: dict[str, Chart]) -> None:
    for chart in full.values():
        text = "\n".join(chart.footer)
        for part in (
            "bench-7", "Example GPU", "driver 580.65", "CUDA 13.0", "onnxruntime-gpu 1.28.0", "CUDA events",
            "1980 MHz", "L2 warm", "2026-01-02", "python main.py compare lenet5-digits",
        ):  # fmt: skip
            assert part in text


def test_speedup_is_the_reference_over_own_time(full: dict[str, Chart]) -> None:
    cuda = next(s for s in full["speed"].panels[0].series if s.label == "engine-cuda")
    assert cuda.points[0].y == pytest.approx(31.5 / 9.9, rel=0.05)
    assert full["speed"].panels[0].baseline == 1.0
    assert not any(s.dashed for s in full["speed"].panels[0].series)


# ------------------------------------------------------------------------------------------- findings


def finding(kind: str, **kwargs: object) -> str:
    return by_kind(charts([synthetic.run(**kwargs)]))[kind].finding  # type: ignore[arg-type]


def test_finding_says_who_is_slower_where_and_that_answers_agree() -> None:
    said = finding("op-time", backends=("engine-cpu", "ort-cpu"), batches=(16,), images=(200,))
    assert said == "engine-cpu is 1.55× slower than ort-cpu at batch 16; answers identical on 200 images."


def test_finding_says_that_nothing_was_compared() -> None:
    said = finding("op-time", backends=("ort-cpu",), batches=(1, 2))
    assert said == "ort-cpu alone was measured, with nothing to compare."


def test_finding_names_a_part_once_with_all_who_spend_most_on_it() -> None:
    said = finding("breakdown", backends=("engine-cpu", "ort-cpu", "engine-cuda", "ort-cuda"), batches=(16,))
    assert re.fullmatch(
        r"The largest part of a pass at batch 16: conv \d+ % on engine-cpu, \d+ % on ort-cpu, "
        r"\d+ % on engine-cuda, \d+ % on ort-cuda\.",
        said,
    )


def test_finding_does_not_span_what_failed() -> None:
    said = finding(
        "op-time",
        backends=("engine-cpu", "ort-cpu"),
        batches=(1, 2, 4, 8),
        failures={("engine-cpu", 4): ("crashed", "the worker died")},
    )
    assert "at batch 1–2, 8" in said


def test_unclear_differences_are_not_claimed() -> None:
    case = Case(model="m", backend="engine-cpu", precision="fp32", batch=1, images=10)
    reference = Case(model="m", backend="ort-cpu", precision="fp32", batch=1, images=10)
    wide = tuple(float(v) for v in (900, 1000, 1100, 1200) * 5)
    pair = [
        Measurement(case=c, disposition="ok", reference="ort-cpu", samples_ns=wide, rounds=(0, 10))
        for c in (case, reference)
    ]
    items = rows(pair)
    assert items[0].verdict == "UNCLEAR"
    said = verdict("m", items).text
    assert "faster" not in said
    assert "slower" not in said
    assert said.startswith("engine-cpu: not decided beside ort-cpu at batch 1; ")


def test_disagreement_is_counted_in_images() -> None:
    run, measured = synthetic.run(backends=("engine-cpu", "ort-cpu"), batches=(4,))
    measured[0] = synthetic.measurement(measured[0].case, agreement=0.997)
    said = by_kind(charts([(run, measured)]))["accuracy"].finding
    assert "engine-cpu answers 3 of 1,000 images unlike its reference at batch 4" in said
    assert "identical" not in said


def test_a_wrong_answer_is_never_called_fast() -> None:
    run, measured = synthetic.run(backends=("engine-cuda", "ort-cuda"), batches=(1,))
    wrong = msgspec.structs.replace(measured[0], disposition="incorrect", reason="off")
    found = by_kind(charts([(run, [wrong, measured[1]])]))
    assert found["op-time"].finding.startswith("engine-cuda is wrong at batch 1")
    assert "fast" not in found["op-time"].finding
    assert "fails its check" in found["accuracy"].finding


def breaks(line: Series) -> list[float]:
    return [x for x, y in line.line if math.isnan(y)]


def test_a_line_breaks_where_a_value_was_meant_to_be() -> None:
    failures = {("engine-cuda", 8): ("out_of_memory", ""), ("ort-cpu", 4): ("crashed", "SIGSEGV")}
    run, measured = synthetic.run(batches=(1, 2, 4, 8, 16), failures=failures)
    left = [m for m in measured if (m.case.backend, m.case.batch) != ("engine-cpu", 2)]
    found = by_kind(charts([(run, left)]))
    ratios, rates = ({s.label: breaks(s) for s in panel.series} for panel in found["speed"].panels)
    # Of a ratio also where its reference has no time.
    assert ratios == {"engine-cuda": [8], "engine-cpu": [2, 4]}
    assert rates == {"engine-cuda": [8], "ort-cuda": [], "engine-cpu": [2], "ort-cpu": [4]}
    assert {s.label: breaks(s) for s in found["op-time"].panels[0].series if s.marker} == rates


# ------------------------------------------------------------------------------------------- breakdown


def test_breakdown_sums_to_the_pass_and_shows_the_rest() -> None:
    _, measured = synthetic.run(batches=(1, 64))
    for measurement in measured:
        split = breakdown.split(measurement)
        assert split is not None
        assert sum(split.parts_ns.values()) == pytest.approx(split.total_ns)
        assert split.parts_ns["rest"] >= 0
        assert {"conv", "pool", "fc", "other"} <= set(split.parts_ns)


def test_operators_that_claim_too_much_are_scaled_and_it_is_said() -> None:
    run, measured = synthetic.run(backends=("ort-cpu",), batches=(8,))
    m = measured[0]
    layers = tuple(msgspec.structs.replace(layer, time_ns=(layer.time_ns or 0) * 3) for layer in m.layers)
    loud = msgspec.structs.replace(m, layers=layers)
    split = breakdown.split(loud)
    assert split is not None
    assert sum(split.parts_ns.values()) == pytest.approx(split.total_ns)
    notes = by_kind(charts([(run, [loud])]))["breakdown"].notes
    assert any("scaled down" in note and "ort-cpu at batch 8" in note for note in notes)
    assert not any("scaled" in note for note in by_kind(charts([(run, [m])]))["breakdown"].notes)


def test_without_operator_times_compute_is_one_part() -> None:
    _, measured = synthetic.run(backends=("ort-cpu",), batches=(8,), layers=False)
    split = breakdown.split(measured[0])
    assert split is not None
    assert "compute" in split.parts_ns
    assert "conv" not in split.parts_ns


def test_rest_is_in_the_legend_even_where_it_is_nothing() -> None:
    run, measured = synthetic.run(backends=("ort-cpu",), batches=(8,))
    phases = measured[0].phases
    wall = sum(phases.get(name, 0) for name in ("h2d", "compute", "d2h", "sync"))
    tight = msgspec.structs.replace(measured[0], wall_ns=wall)
    chart = by_kind(charts([(run, [tight])]))["breakdown"]
    assert "rest" in [category.key for category in chart.categories]


@pytest.mark.parametrize("scale", [0.1 * n for n in range(1, 40)])
def test_what_scaling_rounds_away_is_neither_rest_nor_waiting(scale: float) -> None:
    _, measured = synthetic.run(backends=("ort-cpu",), batches=(8,))
    m = measured[0]
    layers = tuple(msgspec.structs.replace(layer, time_ns=(layer.time_ns or 0) * 30) for layer in m.layers)
    for waited in (0.0, scale * 7e5):  # where waiting is longer than computing, operators ran during both
        phases = {"h2d": 1e5 * scale, "compute": scale * 3e5, "d2h": 1e5 / 3, "sync": waited}
        full = msgspec.structs.replace(m, layers=layers, phases=phases, wall_ns=sum(phases.values()) * 0.7)
        split = breakdown.split(full)
        assert split is not None
        assert split.parts_ns["rest"] == 0
        assert "sync" not in split.parts_ns


# ------------------------------------------------------------------------------------------- whatever happens


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(DISPOSITIONS), min_size=4, max_size=4),
    st.lists(st.sampled_from([1, 3, 100, 10_000]), min_size=1, max_size=3, unique=True),
    st.booleans(),
)
def test_any_mix_of_dispositions_makes_charts_that_survive_the_wire(
    dispositions: list[Disposition], batches: list[int], layers: bool
) -> None:
    failures = {
        (backend, batch): (disposition, "some reason")
        for backend, disposition in zip(synthetic.BACKENDS, dispositions, strict=True)
        for batch in batches[:1]
    }
    found = charts([synthetic.run(batches=batches, failures=failures, layers=layers)])
    for chart in found:
        assert msgspec.json.decode(msgspec.json.encode(chart), type=Chart) == chart
        assert chart.panels
        assert not chart.finding or chart.finding.endswith(".")


def test_the_start_up_of_the_first_case_is_charged_to_no_batch_size() -> None:
    run, measurements = synthetic.run(backends=("ort-cuda",), batches=(1, 4, 16))
    late = {1: "2026-01-02T03:04:05", 4: "2026-01-02T03:04:06", 16: "2026-01-02T03:04:07"}
    made = [
        msgspec.structs.replace(
            m,
            phases=m.phases | {"load": 300e6 if m.case.batch == 1 else 5e6, "compile": 2e6},
            started_at=late[m.case.batch],
        )
        for m in measurements
    ]
    chart = next(c for c in charts([(run, made)]) if c.name.endswith("total-time"))
    loads = {
        bar.x: part.value for bar in chart.panels[0].bars for part in bar.parts if part.category == "load"
    }
    assert loads == {1: pytest.approx(5e-3), 4: pytest.approx(5e-3), 16: pytest.approx(5e-3)}
    (said,) = [note for note in chart.notes if "start-up" in note]
    assert "ort-cuda 295 ms (at batch 1)" in said
    alone = [m for m in made if m.case.batch == 1]
    chart = next(c for c in charts([(run, alone)]) if c.name.endswith("total-time"))
    loads = {
        bar.x: part.value for bar in chart.panels[0].bars for part in bar.parts if part.category == "load"
    }
    assert loads == {1: pytest.approx(0.3)}, "nothing tells what of it is start-up"
    assert not any("start-up" in note for note in chart.notes)


def test_end_to_end_has_a_chart_of_its_own_and_moves_no_other() -> None:
    run, measurements = synthetic.run(backends=("engine-cuda", "ort-cuda"), batches=(64,))
    plain = by_kind(charts([(run, measurements)]))
    assert "end-to-end" not in plain
    ours, theirs = (m.case.backend == "engine-cuda" for m in measurements)
    assert (ours, theirs) == (True, False)
    sent = [
        msgspec.structs.replace(m, end_to_end=synthetic.end_to_end(ns))
        for m, ns in zip(measurements, (1e5, 3e5), strict=True)
    ]
    found = by_kind(charts([(run, sent)]))
    chart = found.pop("end-to-end")
    assert {name: c.panels for name, c in found.items()} == {name: c.panels for name, c in plain.items()}
    up, rate = chart.panels
    assert [p.y for s in up.series for p in s.points] == [pytest.approx(3)]
    assert sorted(p.y for s in rate.series for p in s.points) == [
        pytest.approx(64e9 / ns) for ns in (3e5, 1e5)
    ]
    assert "100 % of what the bus carries" in rate.series[0].points[0].text
    assert "images travel as uint8" in chart.notes[0]
    refused = msgspec.structs.replace(
        sent[1],
        end_to_end=msgspec.structs.replace(synthetic.end_to_end(0), samples_ns=(), refused="no way in"),
    )
    alone = by_kind(charts([(run, [sent[0], refused])]))["end-to-end"]
    assert "Without ort-cuda: no way in." in alone.notes
    assert len(alone.panels) == 1, "with nobody to compare with there is no speed-up"


def test_a_panel_of_several_baselines_says_which_line_is_held_against_which() -> None:
    for backends, title in (
        (("engine-cuda", "ort-cuda"), "speed-up against ort-cuda"),
        (
            ("engine-cuda", "ort-cuda", "engine-cpu", "ort-cpu"),
            "1× = ort-cuda (GPU), ort-cpu (CPU)",
        ),
    ):
        made = {c.name: c for c in charts([synthetic.run(backends=backends, batches=(1, 4))])}
        speed = made["lenet5-digits-speed"]
        assert speed.panels[0].title == title
        assert made["lenet5-digits-breakdown"].title.endswith(", host to host")


def test_one_thread_is_no_threads() -> None:
    run, measured = synthetic.run(batches=(1,))
    one = msgspec.structs.replace(run, job=msgspec.structs.replace(run.job, threads=1))
    assert " · 1 thread · " in f"{settings_line(one, measured)} · "
    two = msgspec.structs.replace(run, job=msgspec.structs.replace(run.job, threads=2))
    assert " · 2 threads" in settings_line(two, measured)
