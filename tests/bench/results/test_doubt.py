"""Doubt travels with the figure: a warning, or a single sample, on either side of a comparison is seen
wherever what came of it stands; and what happens once is never a share of a pass."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from matplotlib.collections import PathCollection
from rich.console import Console

from bench.commands import export
from bench.measure import selfcheck, timing
from bench.results import doubt, stats
from bench.results.records import PREPARE_PHASES, Case, Measurement, Run, Validity
from bench.results.rows import Row, RowCache, rows
from bench.results.stats import Interval, Verdict
from bench.views.charts import breakdown
from bench.views.charts.comparison_charts import charts
from bench.views.charts.definitions import Bar, Chart, Point
from bench.views.charts.doubts import LEGEND
from bench.views.charts.overlay import lay_over
from bench.views.drawing import draw
from bench.views.reports import comparison_report as report
from bench.views.sentences import findings
from bench.views.sentences.verdicts import verdict
from bench.views.tables import comparison_tables as tables
from bench.views.tables import terminal_tables
from bench.views.tables.table import records, to_csv, to_markdown
from tests.bench import synthetic

CPU = ("engine-cpu", "ort-cpu")
HELD_BACK = "the GPU was held back: by its temperature"


def text(name: str, row: Row) -> str:
    """What stands in the column of that name."""
    return next(column for column in tables.COLUMNS if column.name == name).shown(row)


def pair(batches: Sequence[int] = (4,)) -> tuple[Run, list[Measurement]]:
    return synthetic.run(backends=CPU, batches=batches, images=(200,))


def warned(measurement: Measurement, *texts: str) -> Measurement:
    return msgspec.structs.replace(measurement, validity=Validity(warnings=texts or (HELD_BACK,)))


def alone(measurement: Measurement, ns: float = 0.0) -> Measurement:
    """With one sample, as a budget leaves it that has room for no more."""
    return msgspec.structs.replace(
        measurement, samples_ns=(ns or measurement.samples_ns[0],), rounds=(0,), runs_per_sample=1
    )


def terminal(found: Sequence[Row], width: int = 120) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(terminal_tables.terminal(found))
    return out.getvalue()


def by_kind(run: Run, measured: Sequence[Measurement]) -> dict[str, Chart]:
    return {chart.name.removeprefix("lenet5-digits-"): chart for chart in charts([(run, measured)])}


def points(chart: Chart, label: str, panel: int = 0) -> tuple[Point, ...]:
    return next(s for s in chart.panels[panel].series if s.label == label).points


# --------------------------------------------------------------------------------------------- one sample


def test_that_the_budget_was_too_small_for_a_second_sample_is_one_reason_and_not_three() -> None:
    timed = alone(pair()[1][0])
    few = timing.too_few_samples(timing.Timing(samples_ns=[1.0]))
    told = warned(timed, f"timed in 1 instance: {doubt.NO_TIME} for 3", *few, HELD_BACK)
    assert doubt.own(told) == ("only 1 sample fits the budget; a larger --budget helps", HELD_BACK)
    assert doubt.own(warned(timed, HELD_BACK)) == (HELD_BACK, doubt.ONE_SAMPLE)


@pytest.mark.parametrize("lonely", [(0,), (1,), (0, 1)])
def test_one_sample_on_either_side_gives_no_verdict_and_no_interval(lonely: tuple[int, ...]) -> None:
    run, measured = pair()
    for place in lonely:  # a hundred times apart, whichever way
        measured[place] = alone(measured[place], 1e3 if place == 0 else 1e5)
    row, reference = rows(measured)
    assert row.speedup
    assert (row.verdict, row.speedup_low, row.speedup_high) == ("UNCLEAR", None, None)
    for place, one in enumerate((row, reference)):
        assert one.median_ns
        assert (one.low_ns is None) == (one.high_ns is None) == (place in lonely)
    assert any(text.startswith(doubt.ONE_SAMPLE) for text in row.doubts)
    said = verdict("lenet5-digits", [row, reference]).text
    assert said.startswith(
        "engine-cpu: not decided beside ort-cpu at batch 4 (one sample says nothing of its "
    )
    found = by_kind(run, measured)
    for chart, panel in ((found["op-time"], 0), (found["speed"], 0), (found["speed"], 1)):
        (point,) = points(chart, "engine-cpu", panel)
        ours = 0 in lonely or (chart is found["speed"] and panel == 0)
        assert (point.low is None) == (point.high is None) == bool(point.doubts) == ours
    assert "faster" not in found["op-time"].finding
    assert "slower" not in found["op-time"].finding
    assert found["speed"].finding == found["op-time"].finding == said
    assert not any("reaches the most" in note for note in found["speed"].notes)


def test_no_path_leads_from_one_sample_to_a_verdict() -> None:
    many = [100.0 + i % 3 for i in range(40)]
    assert stats.verdict(stats.ratio_interval([1.0], many)) is Verdict.UNCLEAR
    assert stats.verdict(stats.ratio_interval(many, [1.0])) is Verdict.UNCLEAR
    # Three samples, but the one round that has a partner holds one of them.
    split = stats.ratio_interval([1.0, 1.0, 1.0], many, (0, 1, 2), (0,))
    assert not split.known
    assert stats.verdict(split) is Verdict.UNCLEAR
    assert stats.verdict(stats.ratio_interval([1.0, 1.01], many)) is Verdict.FASTER
    assert stats.verdict(Interval(0.5, 0.5, 0.5, known=False)) is Verdict.UNCLEAR
    assert not stats.median_interval([7.0]).known
    assert "[" not in str(stats.median_interval([7.0]))


def test_a_self_check_of_single_samples_knows_no_interval() -> None:
    case = Case(model="m", backend="ort-cpu", precision="fp32", batch=1)
    ratio = stats.ratio_interval([1.0], [5.0])
    came_to = selfcheck.summary([selfcheck.SelfComparison(case, ratio, stats.verdict(ratio))])
    assert came_to.wrong == 0
    assert came_to.half_width == float("inf")


def test_more_images_than_anybody_s_by_one_sample_leave_nobody_the_most() -> None:
    _, measured = pair()
    assert findings.throughput(rows(measured)).startswith("ort-cpu reaches the most")
    measured[0] = alone(measured[0], 10.0)
    assert findings.throughput(rows(measured)) == ""


# ---------------------------------------------------------------------------- a warning, and where it is seen


@pytest.fixture(scope="module")
def referred() -> tuple[Run, list[Measurement]]:
    """A warning on the reference alone, at one of three batch sizes."""
    run, measured = pair((1, 4, 16))
    place = next(i for i, m in enumerate(measured) if m.case.backend == "ort-cpu" and m.case.batch == 4)
    measured[place] = warned(measured[place])
    return run, measured


def test_the_reference_s_doubts_are_its_contender_s_ratio_s_alone(referred: Any) -> None:
    _, measured = referred
    for row in rows(measured):
        own = row.is_reference and row.case.batch == 4
        assert row.own_doubts == ((HELD_BACK,) if own else ())
        if not row.is_reference:
            assert row.doubts == ((f"{HELD_BACK} (of the reference ort-cpu)",) if row.case.batch == 4 else ())


def test_rows_made_one_at_a_time_have_the_doubts_of_a_reference_that_came_later(referred: Any) -> None:
    _, measured = referred
    cache = RowCache()
    for measurement in sorted(measured, key=lambda m: m.case.backend):  # engine-cpu first
        cache.add(measurement)
        while cache.step():
            pass
    assert sum(bool(row.doubts) for row in cache.rows()) == 2


def unquiet(measurement: Measurement, by_round: Sequence[float]) -> Measurement:
    """With ten samples a round, each round slower by its own factor."""
    samples = tuple(1e5 * factor + 10.1 * place for factor in by_round for place in range(10))
    starts = tuple(range(0, len(samples), 10))
    texts = Validity(warnings=(f"{doubt.UNQUIET}: between rounds",))
    return msgspec.structs.replace(measurement, samples_ns=samples, rounds=starts, validity=texts)


def test_an_unsteady_time_is_told_by_its_interval_and_marks_nothing_whose_ratio_is_sure() -> None:
    _, measured = pair()
    rounds = (1.0, 1.6, 1.0, 1.5, 1.1)
    alike = rows([unquiet(m, rounds) for m in measured])
    ours = next(row for row in alike if not row.is_reference)
    assert ours.verdict == "SAME"
    assert (ours.doubts, ours.undecided) == ((), "")
    assert "!" not in text("median_s", ours) + text("speedup", ours) + text("verdict", ours)
    said = " ".join(terminal(alike, 300).split())
    assert "!" not in said
    assert f"{doubt.UNQUIET}: between rounds ({terminal_tables.HELD})" in said
    assert "±" in terminal(alike, 80)


def test_cases_that_are_unsteady_in_one_way_share_a_line() -> None:
    _, measured = pair()
    moved = (
        Validity(warnings=(f"{doubt.UNQUIET}: between rounds the median moved by up to {by}%",))
        for by in (9, 75)
    )
    both = [msgspec.structs.replace(m, validity=v) for m, v in zip(measured, moved, strict=True)]
    (line,) = terminal_tables.remarks(rows(both))
    assert line.count(" at batch ") == 2
    assert line.endswith(f"moved by up to 75% ({terminal_tables.HELD})")


def test_a_verdict_that_is_not_decided_is_marked_with_why() -> None:
    _, measured = pair()
    rounds = (1.0, 1.6, 1.0, 1.5, 1.1)
    unlike = rows([unquiet(m, rounds if m.reference != m.case.backend else rounds[::-1]) for m in measured])
    ours = next(row for row in unlike if not row.is_reference)
    assert ours.verdict == "UNCLEAR"
    assert ours.undecided.startswith("not decided: the interval ")
    assert ours.doubts == (ours.undecided,)
    assert "!" in text("speedup", ours)
    assert "!" not in text("median_s", ours)
    assert f"! {ours.undecided}" in " ".join(terminal(unlike, 200).split())


def test_tables_mark_the_figures_and_no_others(referred: Any) -> None:
    _, measured = referred
    found = rows(measured)
    text = terminal(found)
    cells = {}
    for line in text.splitlines():
        if line.startswith(CPU) and line.split()[1].isdigit():
            cells[line.split()[0], line.split()[1]] = line
    assert cells["engine-cpu", "4"].count("!") == 2  # its result, and the speed-up
    assert "× slower !" in cells["engine-cpu", "4"]
    assert cells["ort-cpu", "4"].count("!") == 3  # its result, its time, its images a second
    assert "s !" in cells["ort-cpu", "4"]
    assert not any("!" in line for (_, batch), line in cells.items() if batch != "4")
    assert doubt.MEANING in text
    header = to_csv(tables.table(found)).splitlines()[0].split(",")
    assert header.index("doubtful") < header.index("warnings") < header.index("median_s")
    for item in csv.DictReader(io.StringIO(to_csv(tables.table(found)))):
        assert (item["doubtful"] == "True") == bool(item["warnings"]) == (item["batch"] == "4")
    markdown = [
        line for line in to_markdown(tables.table(found), by_name=True).splitlines() if "slower ! |" in line
    ]
    assert len(markdown) == 1
    assert "| not decided" not in markdown[0]
    layers = records(tables.layer_table(measured))
    assert {item["batch"] for item in layers if item["doubtful"]} == {4}


@pytest.mark.parametrize("width", [120, 80, 70])
def test_marks_leave_the_terminal_s_table_whole(referred: Any, width: int) -> None:
    text = terminal(rows([warned(m) for m in referred[1]]), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert text.count("× slower !") == 6, "on the scoreboard and in the table"


def test_without_doubts_there_is_no_mark_anywhere() -> None:
    run, measured = pair()
    assert "!" not in terminal(rows(measured))
    assert "!" not in to_markdown(tables.table(rows(measured)), by_name=True)
    for chart in by_kind(run, measured).values():
        assert "doubtful" not in chart.finding
        assert not any(note.startswith("!") for note in chart.notes)


def test_a_reference_s_warning_is_told_where_only_its_contender_is_shown(referred: Any) -> None:
    ours = [row for row in rows(referred[1]) if not row.is_reference]
    assert [line for line in terminal_tables.remarks(ours) if "!" in line] == [
        f"lenet5-digits, engine-cpu at batch 4: ! {HELD_BACK} (of the reference ort-cpu)"
    ]


def test_charts_ring_the_points_count_them_and_say_why(referred: Any) -> None:
    run, measured = referred
    found = by_kind(run, measured)
    times, speed = found["op-time"], found["speed"]
    assert [p.x for p in points(times, "ort-cpu") if p.doubts] == [4]
    assert not any(p.doubts for p in points(times, "engine-cpu"))
    assert (
        " slower than ort-cpu at batch 1, 16, doubtful (!) at batch 4 (the GPU was held back); "
        in times.finding
    )
    assert [p.x for p in points(speed, "engine-cpu") if p.doubts] == [4]  # the ratio
    assert not any(p.doubts for p in points(speed, "engine-cpu", 1))  # its own rate
    assert speed.finding == times.finding
    assert HELD_BACK in points(times, "ort-cpu")[1].text
    assert f"! ort-cpu at batch 4: {HELD_BACK}" in times.notes
    assert "!" not in found["accuracy"].finding  # no warning of times is about answers
    bar = next(b for panel in found["breakdown"].panels for b in panel.bars if b.doubts)
    assert bar.total.endswith(doubt.MARK)
    assert found["breakdown"].finding.endswith("1 of 6 bars is doubtful: the GPU was held back.")


def test_a_run_laid_over_another_keeps_its_doubts(referred: Any) -> None:
    run, measured = referred
    plain = pair((1, 4, 16))
    both = lay_over(charts([plain]), charts([(run, measured)]), "other")
    times = next(chart for chart in both if chart.name.endswith("op-time"))
    assert any(p.doubts for s in times.panels[0].series if s.overlay for p in s.points)
    assert any(note.startswith("other: ! ort-cpu at batch 4") for note in times.notes)


def hollow(drawn: Any) -> list[Any]:
    """Marks of points whose middle is the paper."""
    marks = [marks for axes in drawn.axes for marks in axes.collections if isinstance(marks, PathCollection)]
    return [each for each in marks if all(tuple(face[:3]) == (1, 1, 1) for face in each.get_facecolor())]


@pytest.mark.sampled(4, "long")
def test_paper_draws_what_is_doubtful_hollow_or_hatched(referred: Any) -> None:
    run, measured = referred
    found = by_kind(run, measured)
    for kind, count in (("op-time", 1), ("breakdown", 6)):
        drawn = draw.figure(found[kind])
        bars = [bar for axes in drawn.axes for bar in axes.patches if bar.get_hatch()]
        points = hollow(drawn)
        assert len(bars if kind == "breakdown" else points) >= count
        assert all(mark.get_facecolor()[:3] == (1, 1, 1) for mark in bars)
        assert [[round(x) for x in marks.get_offsets()[:, 0]] for marks in points] == [[4]] * (
            kind == "op-time"
        )
        assert LEGEND in [text.get_text() for legend in drawn.legends for text in legend.get_texts()]
    for chart in by_kind(*pair((1, 4))).values():
        clean = draw.figure(chart)
        assert not any(mark.get_hatch() for axes in clean.axes for mark in axes.patches)
        assert not hollow(clean)
        assert LEGEND not in [text.get_text() for legend in clean.legends for text in legend.get_texts()]


def test_a_chart_s_numbers_say_what_speaks_against_each(referred: Any) -> None:
    lines = export.records(by_kind(*referred)["op-time"])
    assert [(line["series"], line["batch"]) for line in lines if line["doubts"]] == [("ort-cpu", 4)]
    assert {line["doubts"] for line in lines} == {None, HELD_BACK}
    bars = export.records(by_kind(*referred)["breakdown"])
    assert {(line["panel"], line["batch"]) for line in bars if line["doubts"]} == {("ort-cpu", 4)}


def test_a_report_marks_them_and_gives_no_interval_of_one_sample(referred: Any) -> None:
    _, measured = referred
    changed = [alone(m) if m.case.batch == 16 and m.case.backend == "engine-cpu" else m for m in measured]
    lines = [
        line.split(" | ")
        for line in to_markdown(report.section("lenet5-digits", rows(changed), ()).table).splitlines()
    ]
    at = {name.strip("| "): place for place, name in enumerate(lines[0])}
    cells = {(line[0].strip("| "), line[1]): line for line in lines[2:]}
    assert cells["4", "engine-cpu"][at["speed-up (95 % interval)"]].endswith("×) !")
    assert "!" not in cells["4", "engine-cpu"][at["median (95 % interval)"]]
    assert "s ! (" in cells["4", "ort-cpu"][at["median (95 % interval)"]]
    lonely = cells["16", "engine-cpu"]
    assert lonely[at["median (95 % interval)"]].endswith("s !")
    assert lonely[at["speed-up (95 % interval)"]] == "not decided !"
    assert "verdict" not in at, "the speed-up says it"


def test_many_doubts_come_to_few_words() -> None:
    texts = ["only 1 samples fit the budget; x", "only 9 samples fit the budget; x", HELD_BACK, HELD_BACK]
    assert doubt.in_short(texts) == "only 1–9 samples fit the budget, the GPU was held back"
    _, measured = pair((1, 4, 16))
    said = verdict("lenet5-digits", rows([warned(m) if m.case.batch == 1 else m for m in measured])).text
    assert ", doubtful (!) at batch 1 (the GPU was held back); " in said


def test_what_speaks_against_the_reference_from_end_to_end_is_told_of_the_speed_up() -> None:
    """And of no rate but its own."""
    held_back = "the bus was held back: at 3 GB/s"
    _, measured = pair()
    sent = [msgspec.structs.replace(m, end_to_end=synthetic.end_to_end(1e5)) for m in measured]
    plain = next(row.end_to_end for row in rows(sent) if row.against is not None)
    assert plain is not None
    assert plain.doubts == plain.speedup_doubts == ()
    found = [
        msgspec.structs.replace(m, end_to_end=msgspec.structs.replace(m.end_to_end, warnings=(held_back,)))
        if m.case.backend == m.reference and m.end_to_end is not None
        else m
        for m in sent
    ]
    row = next(row for row in rows(found) if row.against is not None)
    assert row.end_to_end is not None
    assert row.against is not None
    assert row.end_to_end.doubts == ()
    assert row.end_to_end.speedup_doubts == (f"{held_back} (of the reference {row.against.case.backend})",)
    assert doubt.in_short(row.end_to_end.speedup_doubts) == "the bus was held back"


# -------------------------------------------------------------------------------- what happens once


def test_what_happens_once_is_no_share_of_a_pass() -> None:
    """A second of each of them, before passes of a millisecond."""
    run, measured = pair()
    phases = {"h2d": 1e5, "compute": 8e5, "d2h": 5e4, "sync": 0.0}
    slow = [
        msgspec.structs.replace(m, wall_ns=1e6, phases=phases | dict.fromkeys(PREPARE_PHASES, 1e9))
        for m in measured
    ]
    for measurement in slow:
        found = breakdown.split(measurement)
        assert found is not None
        assert found.total_ns == sum(found.parts_ns.values()) == pytest.approx(1e6)
        assert not set(found.parts_ns) & set(PREPARE_PHASES)
    kinds = by_kind(run, slow)
    bars: list[Bar] = [bar for panel in kinds["breakdown"].panels for bar in panel.bars]
    assert {bar.total for bar in bars} == {"1.00 ms"}
    assert not {c.key for c in kinds["breakdown"].categories} & set(PREPARE_PHASES)
    # A chart of its own has them, and says that they happen once.
    once = {c.key: c.label for c in kinds["total-time"].categories}
    assert all(once[phase].endswith(", once") for phase in PREPARE_PHASES)
    assert "%" not in kinds["total-time"].finding
