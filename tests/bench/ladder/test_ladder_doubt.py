"""A ladder's figures bear what speaks against them: their own warnings, those of the reference and of the
rung below, and that there is one sample alone, of which nothing is said to be the fastest."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import msgspec
from rich.console import Console

from bench.results import doubt
from bench.results.ladder_records import RungMeasurement
from bench.results.ladder_rows import RungRow, rows
from bench.results.records import Validity
from bench.views.charts import ladder_charts
from bench.views.sentences import ladder_story
from bench.views.sentences import ladder_story as story
from bench.views.tables import ladder_report_tables as report_tables
from bench.views.tables import ladder_tables as tables
from bench.views.tables.table import to_csv
from bench.words import units
from tests.bench.ladder.test_ladder import example, measured

HELD_BACK = "the GPU was held back: by its temperature"


def warned(measurement: RungMeasurement) -> RungMeasurement:
    return msgspec.structs.replace(measurement, validity=Validity(warnings=(HELD_BACK,)))


def alone(measurement: RungMeasurement) -> RungMeasurement:
    return msgspec.structs.replace(measurement, samples_ns=measurement.samples_ns[:1], rounds=(0,))


def changed(name: str, how: object) -> list[RungRow]:
    assert callable(how)
    ladder, found = example()
    return rows(ladder, [how(m) if m.case.rung == name else m for m in found])


def lines(found: list[RungRow]) -> dict[str, str]:
    """The terminal's table, by the first two words of its lines."""
    out = io.StringIO()
    Console(file=out, width=160, highlight=False).print(tables.terminal(example()[0], found))
    return {" ".join(line.split()[:2]): line for line in out.getvalue().splitlines() if line.strip()}


def test_a_reference_s_warning_marks_what_is_held_against_it_and_no_time_but_its_own() -> None:
    found = changed("reference", warned)
    for row in found:
        if row.time and not row.case.is_reference:
            assert row.doubts == row.gain_doubts == ()
            assert row.speedup_doubts == (f"{HELD_BACK} (of the reference)",)
    shown = lines(found)
    assert shown["02 better"].count("!") == 1
    assert "2.00× slower !" in shown["02 better"]
    assert "ms !" in shown["reference ok"]
    assert any(doubt.MEANING.startswith(start) for start in shown)
    for item in csv.DictReader(io.StringIO(to_csv(tables.table(found)))):
        timed = item["median_s"] != ""
        assert (item["doubtful"] == "True") == timed == (HELD_BACK in item["warnings"])
    assert "2.00× slower !" in report_tables.table(found)
    ladder, _ = example()
    chart = ladder_charts.speed(ladder, found)
    assert f"the time of {ladder.reference} is doubtful: the GPU was held back." in chart.finding
    assert chart.panels[0].baselines[0].label.endswith(doubt.MARK)
    assert any(HELD_BACK in note for note in chart.notes)


def test_the_rung_below_s_warning_marks_the_gain_alone() -> None:
    found = {row.name: row for row in changed("naive", warned)}
    better = found["better"]
    assert better.doubts == better.speedup_doubts == ()
    assert better.gain_doubts == (f"{HELD_BACK} (of naive)",)
    ladder, _ = example()
    assert "; to be doubted: the GPU was held back" in story.sentence(ladder, better, list(found.values()))
    near = ladder_charts.limits(ladder, list(found.values()))
    assert near is not None
    points = {s.label: s.points[0] for s in near.panels[0].series if s.marker}
    assert [label for label, point in points.items() if point.doubts] == ["01 naive"]
    assert "is doubtful" in near.finding
    bars = ladder_charts.speed(ladder, list(found.values())).panels[0].bars
    assert [bar.total.endswith(doubt.MARK) for bar in bars] == [True, False, False, False, False]


def test_one_sample_is_never_the_fastest_and_has_no_interval() -> None:
    found = changed("mine", alone)  # the fastest of all, by far
    ladder, _ = example()
    said = ladder_story.finding(ladder, found)
    assert said.startswith("02 better is the fastest")
    assert said.endswith("; 1 timed by one sample alone is left out.")
    mine = next(row for row in found if row.name == "mine")
    assert mine.time is not None
    assert not mine.time.known
    assert "%" not in lines(found)["90 mine"].partition("ms")[2].partition("!")[2][:8]
    item = next(i for i in csv.DictReader(io.StringIO(to_csv(tables.table(found)))) if i["rung"] == "mine")
    assert (item["low_s"], item["high_s"], item["speedup_low"], item["gain_high"]) == ("", "", "", "")
    assert item["doubtful"] == "True"
    sentence = story.sentence(ladder, mine, found)
    assert sentence.startswith("not decided between 90 mine and 02 better (one sample ")
    reference = next(row for row in found if row.case.is_reference)
    assert "mine" not in story.reference(ladder, reference, found)


def test_a_headline_ranks_nothing_that_cannot_be() -> None:
    ladder, _ = example()
    found = changed("nothing", alone)
    assert "faster than 01 naive" in ladder_story.finding(ladder, found)
    beyond = [replace(row, beyond="impossible") if row.name == "naive" else row for row in found]
    assert "naive" not in ladder_story.finding(ladder, beyond)


def test_a_reference_of_one_sample_gives_no_speed_up_in_the_headline() -> None:
    ladder, _ = example()
    assert "as fast as ONNX Runtime (CPU)" in ladder_story.finding(ladder, changed("nothing", alone))
    said = ladder_story.finding(ladder, changed("reference", alone))
    assert "not decided between 90 mine and ONNX Runtime (CPU) (one sample says nothing" in said
    every = [alone(m) if m.samples_ns else m for m in example()[1]]
    assert ladder_story.finding(ladder, rows(ladder, every)).startswith("No rung was timed by more than one")


def test_a_ladder_without_doubts_has_no_mark() -> None:
    found = changed("nothing", warned)
    assert not any("!" in line for line in lines(found).values())
    assert measured("naive", 1, 8e6).validity.warnings == ()


def test_a_headline_s_ratio_is_the_table_s() -> None:
    """Of rounds that both shared: the ratio of the medians of all would be another number."""
    ladder, found = example()

    def uneven(m: RungMeasurement) -> RungMeasurement:
        """The one with most of its samples in the quiet round, the other in the loud one."""
        if m.case.rung not in ("naive", "better") or not m.samples_ns:
            return m
        counts = (16, 4, 4) if m.case.rung == "naive" else (4, 4, 16)
        first = m.samples_ns[0]
        samples = [first * f for f, count in zip((1.0, 1.3, 1.7), counts, strict=True) for _ in range(count)]
        starts = (0, counts[0], counts[0] + counts[1])
        return msgspec.structs.replace(m, samples_ns=tuple(samples), rounds=starts)

    kept = [m for m in found if m.case.is_reference or m.case.rung in ("naive", "better")]
    naive, better = (row for row in rows(ladder, [uneven(m) for m in kept]) if not row.case.is_reference)
    assert naive.time is not None
    assert better.time is not None
    assert better.gain is not None
    told = f"{units.times(better.gain.value)} faster than 01 naive"
    assert told in ladder_story.finding(ladder, [naive, better])
    assert units.times(naive.time.value / better.time.value) not in told
