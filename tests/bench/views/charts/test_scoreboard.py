"""A scoreboard's cells are the rows' own ratios, and nothing that is not decided has a number or a colour."""

from __future__ import annotations

import csv
import io
import random
import re
from dataclasses import replace

import msgspec
import pytest
from rich.console import Console, Group

from bench.commands.export import records
from bench.results.records import Accuracy, Disposition, Measurement, Validity
from bench.results.rows import Row, rows
from bench.views.charts.comparison_charts import charts
from bench.views.charts.scoreboard import UNDECIDED, Cell, cell, fill, scoreboard
from bench.views.drawing import draw
from bench.views.drawing.looks import WIDTHS, look
from bench.views.reports import report_html
from bench.views.sentences.verdicts import verdicts
from bench.views.tables import scoreboard as shown
from bench.views.tables.scoreboard import ComparisonOutput
from bench.views.tables.scoreboard import scoreboard_output as as_json
from bench.views.tables.table import to_csv, to_markdown
from bench.words import palette
from tests.bench import synthetic

MODEL = "lenet5-digits"
BACKENDS = tuple(synthetic.REFERENCE)
RATIO = re.compile(r"\d×")


def drawn(seed: int) -> list[Row]:
    """Rows as a run of many backends may have them: of all verdicts and dispositions, doubted and not."""
    pick = random.Random(seed)
    _, measured = synthetic.run(backends=BACKENDS, batches=(1, 8, 64), layers=False)
    found = []
    for m in measured:
        ended: Disposition = pick.choices(
            ("ok", "incorrect", "invalid", "crashed", "unsupported"), (12, 1, 1, 1, 1)
        )[0]
        doubts = pick.choice([(), (), ("the GPU was held back: at 1200 MHz",)])
        samples = m.samples_ns[: pick.choice((30, 30, 30, 1))]
        if ended != "ok":
            m = msgspec.structs.replace(m, disposition=ended, reason="it | says *why*", samples_ns=())
        else:
            m = msgspec.structs.replace(m, samples_ns=samples, validity=Validity(warnings=doubts))
        found.append(msgspec.structs.replace(m, accuracy=Accuracy(images=0, labelled=False)))
    busy = "not decided: other programs used 1.7 of 2 cores while this was measured"
    return [
        replace(row, verdict="UNCLEAR", undecided=busy) if row.speedup and pick.random() < 0.2 else row
        for row in rows(found)
    ]


def test_only_what_is_decided_has_a_colour_and_only_that_and_the_doubtful_a_number() -> None:
    grades = set()
    for row in (row for seed in range(6) for row in drawn(seed)):
        made = cell(row)
        grades.add(made.grade)
        for dark in (False, True):
            colour = fill(made, dark)
            tinted = colour not in ("", UNDECIDED[dark], palette.DIVERGING[dark][2])
            assert tinted == (made.grade in ("faster", "slower"))
        if made.grade in ("faster", "slower"):
            assert RATIO.search(made.text)
        if made.grade in ("faster", "slower", "same"):
            assert (row.verdict, row.undecided, row.speedup_doubts) == (made.grade.upper(), "", ())
        if made.grade == "doubtful":
            assert made.text.endswith(" !")
            assert row.speedup_doubts[0] in made.why
        if made.grade in ("undecided", "wrong", "none"):
            assert not RATIO.search(made.text)
            assert made.why
        if row.undecided:
            assert made.grade == "undecided"
            assert made.why.startswith(row.undecided)
    assert grades >= {"faster", "slower", "undecided", "wrong", "none", "reference", "doubtful"}


@pytest.mark.parametrize("seed", range(3))
def test_no_line_above_a_board_has_a_number_that_is_not_decided(seed: int) -> None:
    found = drawn(seed)
    for verdict in verdicts(found):
        sure = {cell.text.removesuffix(" slower") for line in verdict.board.lines for cell in line.cells
                if cell.grade in ("faster", "slower")}  # fmt: skip
        told = set(re.findall(r"[\d.,]+×", verdict.text))
        assert told <= sure
        assert len(verdict.text.split()) < 100


def test_every_row_is_a_cell_and_says_its_ratio_and_times_wherever_it_is_shown() -> None:
    run, measured = synthetic.run(
        failures={("engine-cpu", 64): ("crashed", "it died"), ("engine-cuda", 8): ("incorrect", "off by 9")}
    )
    found = {(row.contender, row.case.batch): row for row in rows(measured)}
    board = scoreboard(MODEL, list(found.values()), [run])
    assert [line.contender for line in board.lines] == ["engine-cuda", "engine-cpu", "ort-cuda", "ort-cpu"]
    assert [line.is_reference for line in board.lines] == [False, False, True, True]
    for line in board.lines:
        for made in line.cells:
            assert made.speedup == found[line.contender, made.batch].speedup
    assert (board.lines[1].at(64).text, board.lines[1].at(64).why) == ("–", "crashed: it died")
    assert (board.lines[0].at(8).text, board.lines[0].at(8).why) == ("wrong", "off by 9")
    slower = found["engine-cpu", 1]
    assert board.lines[1].at(1).text == f"{1 / (slower.speedup or 1):.2f}× slower"
    assert "0." not in board.lines[1].at(1).why.partition(";")[0], "no ratio below 1 is read"
    table = shown.table(board)
    markdown = to_markdown(table)
    html = str(report_html.table(table))
    out = io.StringIO()
    (verdict,) = verdicts(list(found.values()), [run])
    Console(file=out, width=400).print(Group(*shown.terminal([verdict])))
    for line in board.lines:
        for made in line.cells:
            assert made.text in markdown
            assert made.text in html
            assert made.text in out.getvalue()
            assert report_html.plain.printable(made.why.replace("\n", "; ")) in html.replace("&#39;", "'")
    assert f"background:{fill(board.lines[0].at(1))}" in html


def test_its_numbers_are_the_same_as_csv_as_json_and_of_the_picture() -> None:
    run, measured = synthetic.run(batches=(1, 64), failures={("engine-cpu", 64): ("crashed", "it died")})
    (verdict,) = verdicts(rows(measured), [run])
    flat = list(csv.DictReader(io.StringIO(to_csv(shown.numbers(verdict.board)))))
    chart = next(c for c in charts([(run, measured)]) if c.name == f"{MODEL}-scoreboard")
    pictured = [(r["series"].split(" ")[0].strip(","), r["batch"], r["value"]) for r in records(chart)]
    assert pictured == [
        (line["contender"], int(line["batch"]), float(line["speedup"]) if line["speedup"] else None)
        for line in flat
    ]
    kept = msgspec.json.decode(msgspec.json.encode(as_json(verdict)))
    assert kept["line"] == verdict.text == chart.finding
    assert set(kept["lines"][0]["cells"][0]) == set(Cell.__struct_fields__), "one shape, whatever is known"
    assert "scoreboards" in ComparisonOutput.__struct_fields__


def test_what_is_planned_has_its_place_before_it_is_measured() -> None:
    run, measured = synthetic.run(backends=("engine-cpu", "ort-cpu"), batches=(1, 8))
    board = scoreboard(MODEL, rows(measured[:1]), [run])
    assert [(line.contender, line.is_reference) for line in board.lines] == [
        ("engine-cpu", False),
        ("ort-cpu", True),
    ]
    assert [made.grade for line in board.lines for made in line.cells][1:] == ["pending"] * 3
    assert board.has_comparisons
    assert not scoreboard(MODEL, [], ()).has_comparisons
    assert all(
        "scoreboard" not in c.name for c in charts([synthetic.run(backends=("ort-cpu",), batches=(1,))])
    )


def test_a_precision_that_a_backend_does_not_offer_is_no_line_and_a_model_that_it_refuses_is() -> None:
    run, measured = synthetic.rivals()
    refused = [
        msgspec.structs.replace(m, disposition="unsupported", samples_ns=(), reason="no LRN")
        if m.case.backend == "torch-cuda-graph"
        else m
        for m in measured
    ]
    boards = {verdict.precision: verdict.board for verdict in verdicts(rows(refused), [run])}
    first = {line.contender: [made.text for made in line.cells] for line in boards["fp32"].lines}
    assert first["torch-cuda-graph"] == ["–", "–"]
    assert "ort-cuda-tuned fp32-tc" not in first
    assert "engine-cuda fp32-tc" in first


def test_a_precision_that_no_reference_has_is_held_against_the_one_that_stands_for_it() -> None:
    measured = [
        msgspec.structs.replace(m, case=msgspec.structs.replace(m.case, precision="bf16"))
        if (m.case.backend, m.case.precision) == ("engine-cuda", "tf32")
        else m
        for m in synthetic.rivals()[1]
    ]

    def held(measured: list[Measurement]) -> dict[str, str]:
        beside = (row for row in rows(measured) if row.against is not None)
        return {row.measurement.case.precision: row.against.case.precision for row in beside}

    found = held(measured)
    assert (found["bf16"], found["fp16"], found["fp32-tc"]) == ("fp16", "fp16", "fp32")
    assert held([m for m in measured if m.case.precision != "fp16"])["bf16"] == "fp32"


def test_a_colour_is_fuller_the_further_from_the_same_and_blue_and_red_are_no_green() -> None:
    def of(ratio: float) -> str:
        return fill(Cell(batch=1, grade="faster" if ratio > 1 else "slower", speedup=ratio))

    for ratios in ((1.03, 1.5, 3.0, 8.0), (1 / 1.03, 1 / 1.5, 1 / 3, 1 / 8)):
        light = [palette.lightness(of(ratio)) for ratio in ratios]
        assert light == sorted(light, reverse=True)
        assert of(ratios[-1]) == of(ratios[-1] ** 3)
    for ratio in (1.03, 2.0, 50.0, 0.97, 0.5, 0.02):
        red, green, blue = (int(of(ratio)[at : at + 2], 16) for at in (1, 3, 5))
        assert (blue > green > red) if ratio > 1 else (red > green)
        assert palette.contrast(palette.ink_on(of(ratio)), of(ratio)) >= 4.5


@pytest.mark.parametrize("width", list(WIDTHS))
def test_no_text_of_a_picture_leaves_its_tile(width: str) -> None:
    run, measured = synthetic.run(backends=BACKENDS, batches=(1, 16, 256, 10_000))
    chart = next(c for c in charts([(run, measured)]) if c.name == f"{MODEL}-scoreboard")
    figure = draw.figure(chart, look(width))
    figure.draw_without_rendering()
    texts = {tile.text for tile in chart.panels[0].tiles}
    seen = set()
    for axes in figure.axes:
        for text in axes.texts:
            box = axes.transData.inverted().transform(text.get_window_extent())
            x, y = text.get_position()
            assert box[0][0] >= x - 0.5
            assert box[1][0] <= x + 0.5
            assert abs(box[0][1] - box[1][1]) <= 1, (text.get_text(), y)
            seen.add(text.get_text().replace("\n", " "))
    assert seen == texts
