"""Goals from host images to host answers: held against the tuned reference as measured by the same clock, or
not measured; never against another clock, precision or rival."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.extras.reports import needs
from bench.extras.reports.goals import judged, page, presets, tables
from bench.extras.reports.goals.judged import MISSED, REACHED, UNKNOWN
from bench.extras.reports.goals.presets import Goal, Goals
from bench.results.records import EndToEnd, Measurement
from tests.bench.extras.reports.goals.test_goals import CUDA, one, saved, timed

TUNED = "ort-cuda-tuned"
STRICT = "ort-cuda-tuned-strict"


def flowing(
    backend: str, us: float, precision: str = "fp32", lanes: int = 3, pass_us: float = 10
) -> Measurement:
    """A case whose batches take that long from end to end, however long its passes take."""
    samples = tuple(us * 1e3 * (1 + 1e-4 * (number % 5)) for number in range(30))
    flow = EndToEnd(samples_ns=samples, rounds=(0, 10, 20), batches=12, lanes=lanes, carries="uint8")
    return msgspec.structs.replace(timed(backend, pass_us, precision=precision), end_to_end=flow)


def goal(wanted: float, precision: str = "fp32") -> Goal:
    return Goal(
        model="lenet5-digits",
        need="n",
        value="end_to_end",
        against=TUNED,
        precision=precision,
        wanted=(wanted,),
    )


def test_the_rival_is_the_tuned_one_by_the_clock_of_both(tmp_path: Path) -> None:
    """Whose passes are as fast, whose default is far slower: neither is what the goal is of."""
    run = saved(tmp_path / "run", flowing("engine-cuda", 50), flowing("ort-cuda", 500), flowing(TUNED, 100))
    for wanted, outcome in ((1.9, REACHED), (2.1, MISSED)):
        found = one(goal(wanted), run)
        assert found.outcome == outcome
        assert found.figures[0].value == pytest.approx(2, rel=0.01)
    assert judged.of_words(found.goal) == "end to end, beside ort-cuda-tuned"


def test_without_a_rate_of_the_rival_it_is_not_measured(tmp_path: Path) -> None:
    ours, default = flowing("engine-cuda", 50), flowing("ort-cuda", 500)
    refused = msgspec.structs.replace(
        timed(TUNED, 10), end_to_end=EndToEnd(refused="memory did not suffice for it")
    )
    lost = msgspec.structs.replace(
        timed(TUNED, 10), disposition="crashed", reason="the device broke", samples_ns=(), rounds=()
    )
    for name, theirs, why in (
        ("none", (), "not measured"),
        ("plain", (timed(TUNED, 10),), "not measured"),
        ("refused", (refused,), "memory did not suffice for it"),
        ("lost", (lost,), "the device broke"),
    ):
        found = one(goal(1.0), saved(tmp_path / name, ours, default, *theirs))
        assert (found.outcome, found.why) == (UNKNOWN, f"{TUNED}: {why}"), name


def test_another_precision_of_the_rival_is_no_rival(tmp_path: Path) -> None:
    ours = flowing("engine-cuda", 50, "fp16")
    run = saved(tmp_path / "run", ours, flowing(TUNED, 400, "fp32"))
    found = one(goal(1.0, "fp16"), run)
    assert (found.outcome, found.why) == (UNKNOWN, f"{TUNED}: not measured")


@pytest.mark.parametrize("first", [True, False])
def test_of_runs_given_by_hand_the_one_that_has_both_clocks_is_held(first: bool, tmp_path: Path) -> None:
    passes = saved(tmp_path / "passes", timed("engine-cuda", 10), timed(TUNED, 40))
    both = saved(tmp_path / "both", flowing("engine-cuda", 50), flowing(TUNED, 100))
    goals = Goals(title="t", device="cuda", needs=(), goals=(goal(1.9),))
    runs = [both, passes] if first else [passes, both]
    (found,) = judged.held(goals, needs.given(runs))
    assert found.outcome == REACHED


def test_the_report_has_the_rates_of_all(tmp_path: Path) -> None:
    made = [flowing(backend, us) for backend, us in zip(CUDA, (50, 500, 100, 150), strict=True)]
    made[-1] = flowing(CUDA[-1], 150, lanes=2)
    goals = Goals(title="t", device="cuda", needs=(), goals=(goal(1.5),))
    taken = needs.given([saved(tmp_path / "run", *made)])
    (table,) = tables.flows(goals, judged.measured(taken)[0])
    (line,) = table.rows
    cells = {column.name: column.words(line) for column in table.columns}
    assert cells["ours_images_per_s"] == "20.0 k"
    assert cells["in_flight"] == f"3 ({STRICT} 2)"
    rates = {name: cells[f"{name}_images_per_s"] for name in ("default", "tuned within the bound", "tuned")}
    assert rates == {"default": "2.00 k", "tuned within the bound": "6.67 k", "tuned": "10.0 k"}
    assert cells["tuned_speedup"].startswith("2.00× faster (")
    chart = next(c for name, c in page.charts(taken).items() if "end-to-end" in name)
    assert {series.label for panel in chart.panels for series in panel.series} == set(CUDA)
    assert TUNED in chart.finding
    without = needs.given([saved(tmp_path / "passes", timed("engine-cuda", 10))])
    assert tables.flows(goals, judged.measured(without)[0]) == []


def test_from_end_to_end_the_goals_have_the_rivals_of_a_forward_pass_and_tune_nothing_again() -> None:
    goals = presets.load("speed-h200")
    passes = [g for g in goals.goals if g.value == "speedup" and "tuned" in g.against]
    rivals = {(g.model, g.precision): g.against for g in passes}
    held = [g for g in goals.goals if g.value == "end_to_end"]
    assert held
    for found in held:
        assert found.against == rivals[found.model, found.precision]
    swept: set[tuple[str, str, int]] = set()
    for need in goals.needs:
        cases = {(m, p, b) for m in need.models for p in need.precisions for b in need.batches}
        if need.end_to_end:
            assert need.tune_reference
            assert cases <= swept, "tuned for an earlier need, and kept"
            assert needs.job_of(need, need.batches, needs.Limits()).tune_reference
        elif need.tune_reference:
            swept |= cases
