"""No output claims an order that is not decided, whatever was measured: drawn runs through the terminal,
Markdown, HTML, charts, lists and diffs.

Each run is drawn from samples that are faster, slower, alike, noisy, of one sample, of one round, doubted, or
faster round by round and slower by their medians. What the rows have decided is the truth that every text is
held against: "N× faster than X" stands only where that pair is FASTER.
"""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from rich.console import Console

import main
from bench.results import ladder_rows, stats
from bench.results.ladder_records import Ladder, RungMeasurement
from bench.results.records import Measurement, Run, Validity
from bench.results.rows import Row, rows
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.views import ladder as ladder_view
from bench.views.charts import ladder_charts
from bench.views.charts.comparison_charts import charts
from bench.views.comparison import result as listed
from bench.views.diff import between
from bench.views.diff import tables as diff_tables
from bench.views.reports import comparison_report as report
from bench.views.reports import ladder_report, report_form, report_html
from bench.views.sentences import diff_sentences as sentences
from bench.views.sentences import ladder_story as story
from bench.views.sentences.verdicts import verdicts
from bench.views.tables import comparison_tables as tables
from bench.views.tables import ladder_report_tables as report_tables
from bench.views.tables import ladder_tables, scoreboard, terminal_tables
from bench.views.tables.table import to_markdown
from tests.bench import synthetic
from tests.bench.ladder.test_ladder import example, measured

MODEL = "lenet5-digits"
CPU = ("engine-cpu", "ort-cpu")
KINDS = ("faster", "slower", "far", "alike", "noisy", "alone", "once", "doubted", "twisted")
BELOW_1 = re.compile(r"\b0\.\d+×")
CLAIM = re.compile(r"([\d.,]+×(?: to [\d.,]+×)?) (faster|slower)")
GREEN = re.compile(r"\x1b\[(?:[0-9;]*;)?32(?:;[0-9;]*)?m([^\x1b]*)")
DOUBT = "the GPU was held back: by its temperature"


def drawn(kind: str, base: float, rng: np.random.Generator) -> dict[str, Any]:
    """Samples of one contender whose reference takes `base`, in rounds."""
    factor = {"faster": 0.6, "slower": 1.7, "far": 43.0, "doubted": 0.5, "twisted": 0.9}.get(kind, 1.0)
    spread = 0.4 if kind == "noisy" else 1e-3
    counts = [4, 4, 4, 12] if kind == "twisted" else [6, 6, 6, 6]
    pace = [1.0, 1.0, 1.0, 2.0] if kind == "twisted" else [1.0] * 4
    parts = [
        base * factor * slow * np.exp(rng.normal(0, spread)) * (1 + 1e-3 * rng.random(count))
        for count, slow in zip(counts, pace, strict=True)
    ]
    samples = tuple(round(float(value), 1) for value in np.concatenate(parts))
    rounds = tuple(int(start) for start in np.cumsum([0, *counts[:-1]]))
    if kind == "alone":
        samples, rounds = samples[:1], (0,)
    if kind == "once":
        rounds = (0,)
    warnings = (DOUBT,) if kind == "doubted" else ()
    return {"samples_ns": samples, "rounds": rounds, "instances": (), "validity": Validity(warnings=warnings)}


def reference(base: float, rng: np.random.Generator, twisted: bool) -> dict[str, Any]:
    counts, pace = ([12, 4, 4, 4] if twisted else [6] * 4), ([1.0, 1.0, 1.0, 2.0] if twisted else [1.0] * 4)
    parts = [base * slow * (1 + 1e-3 * rng.random(count)) for count, slow in zip(counts, pace, strict=True)]
    return {
        "samples_ns": tuple(round(float(value), 1) for value in np.concatenate(parts)),
        "rounds": tuple(int(start) for start in np.cumsum([0, *counts[:-1]])),
        "instances": (),
    }


def comparison(kinds: tuple[str, ...], seed: int) -> tuple[Run, list[Measurement]]:
    """A kind a batch size."""
    rng = np.random.default_rng(seed)
    batches = tuple(2**place for place in range(len(kinds)))
    run, found = synthetic.run(backends=CPU, batches=batches)
    made = []
    for m in found:
        kind = kinds[batches.index(m.case.batch)]
        base = 1e5 * m.case.batch
        if m.case.backend == "ort-cpu":
            made.append(msgspec.structs.replace(m, **reference(base, rng, kind == "twisted")))
        else:
            made.append(msgspec.structs.replace(m, **drawn(kind, base, rng)))
    return run, made


def ansi(renderable: Any, width: int = 150) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=True, color_system="standard", highlight=False).print(
        renderable
    )
    return out.getvalue()


def html_of(run: Run, found: list[Measurement]) -> str:
    merged = report.merge([(run, found)])
    sections = [report.section(MODEL, merged.rows, merged.runs)]
    context = report.context(merged, [(run, found)], sections)
    return report_form.rendered(report.TEMPLATE, context, report_html.templates())


def texts_of(run: Run, found: list[Measurement]) -> dict[str, str]:
    """Every place where people read of a comparison."""
    shown = rows(found)
    merged = report.merge([(run, found)])
    sections = [report.section(MODEL, merged.rows, merged.runs)]
    context = report.context(merged, [(run, found)], sections)
    return {
        "terminal": ansi(terminal_tables.terminal(shown, [run])),
        "markdown": to_markdown(tables.readable(shown)),
        "headline": "\n".join(found.line for found in verdicts(shown, [run])),
        "report": report_form.rendered(report.TEMPLATE, context),
        "html": html_of(run, found),
        "list": listed(run, found),
        "findings": "\n".join(chart.finding for chart in charts([(run, found)])),
        "points": "\n".join(
            point.text for chart in charts([(run, found)]) for panel in chart.panels for s in panel.series
            for point in s.points
        ),
        "boards": "\n".join(
            f"{cell.text}\n{cell.why}" for one in verdicts(shown, [run]) for line in one.board.lines
            for cell in line.cells
        ),
    }  # fmt: skip


def claims(text: str) -> list[tuple[str, str]]:
    """(amount, "faster" or "slower") of every claim; the ends of an interval of what is not decided are none,
    nor is what the pages explain."""
    text = re.sub(r"not decided \([^)]*\)", "not decided", re.sub(r"\x1b\[[0-9;]*m|<[^>]*>", "", text))
    text = re.sub(r"the interval .*? reaches|2\.00× slower: it takes twice as long", "", text)
    return CLAIM.findall(text)


def decided(shown: list[Row]) -> set[str]:
    words = {"FASTER": "faster", "SLOWER": "slower"}
    return {words[row.verdict] for row in shown if row.verdict in words}


@pytest.mark.parametrize("kinds", [*((kind,) * 2 for kind in KINDS), KINDS, KINDS[::-1]], ids="-".join)
def test_a_comparison_claims_what_is_decided_and_nothing_else(kinds: tuple[str, ...]) -> None:
    run, found = comparison(kinds, len(kinds))
    shown = [row for row in rows(found) if not row.is_reference]
    known = decided(shown)
    assert ("FASTER" in {row.verdict for row in shown}) == bool({"faster", "doubted"} & {*kinds})
    for place, text in texts_of(run, found).items():
        assert not BELOW_1.search(text), (place, BELOW_1.search(text))
        assert {way for _, way in claims(text)} <= known, (place, kinds)
        assert "is the fastest" not in text
    # Of each row its own cell says it, or that it is not decided.
    for column in (terminal_tables._TERMINAL, tables.readable(shown).columns):
        (cell,) = (c for c in column if c.name == "speedup")
        for row in shown:
            told = cell.words(row)
            assert ("not decided" in told) == (row.verdict == "UNCLEAR"), told
            assert [way for _, way in claims(told)] == [
                w for w in ("faster", "slower") if w == row.verdict.lower()
            ]


@pytest.mark.parametrize("kinds", [("faster",) * 3, ("noisy", "alone", "once"), ("doubted",) * 2, KINDS])
def test_only_what_is_decided_and_not_doubted_is_green(kinds: tuple[str, ...]) -> None:
    run, found = comparison(kinds, 7)
    shown = rows(found)
    sure = [row for row in shown if row.verdict == "FASTER" and not row.speedup_doubts]
    green = [
        text.strip() for text in GREEN.findall(ansi(terminal_tables.terminal(shown, [run]))) if text.strip()
    ]
    assert sorted(green) == sorted(f"{tables.pick(tables.COLUMNS, 'speedup')[0].words(row)}" for row in sure)
    html = html_of(run, found)
    coloured = re.findall(r'class="(?:faster|ok)"[^>]*>(.*?)</(?:b|li|td)>', html, re.DOTALL)
    if not sure:
        assert coloured == []
    assert not any("not decided" in text or "(!)" in text for text in coloured)
    for one in verdicts(shown, [run]):
        for line in one.board.lines:
            for cell in line.cells:
                (row,) = (r for r in shown if r.contender == line.contender and r.case.batch == cell.batch)
                assert (cell.grade in ("faster", "slower", "same")) == (
                    row.verdict in ("FASTER", "SLOWER", "SAME") and not row.speedup_doubts
                )
                if cell.grade == "undecided":
                    assert scoreboard.fill(cell) in ("", "#E3E3E3")
                    assert not re.search(r"\d", cell.text), "no number of what is not decided"


# ------------------------------------------------------------------------------------------ ladders


def climbed(kinds: tuple[str, ...], seed: int) -> tuple[Ladder, list[RungMeasurement]]:
    """Rungs one above the other, of each kind beside one reference, and a side rung."""
    rng = np.random.default_rng(seed)
    ladder, _ = example()
    found = []
    for place, kind in enumerate(kinds, start=1):
        m = measured(f"{kind}_{place}", place, 1.0, side=place == len(kinds))
        found.append(msgspec.structs.replace(m, **drawn(kind, 2e6, rng)))
    found.append(msgspec.structs.replace(measured("reference", 0, 1.0), **reference(2e6, rng, False)))
    return msgspec.structs.replace(ladder, cases=tuple(m.case for m in found)), found


def said_of(ladder: Ladder, found: list[RungMeasurement]) -> dict[str, str]:
    made = ladder_rows.rows(ladder, found)
    read = ladder_report.Climbed(ladder, tuple(found), tuple(made))
    part = ladder_report.part(read)
    nodes = [ladder_report.NodeSection("a node", None, (part,))]
    context = ladder_report.context([read], nodes)
    near = ladder_charts.limits(ladder, made)
    return {
        "terminal": ansi(ladder_tables.terminal(ladder, made), 240),
        "markdown": report_tables.table(made),
        "finding": story.finding(ladder, made),
        "stories": "\n".join(f"{label} {text}" for label, text in part.sentences),
        "references": "\n".join(part.references),
        "limits": near.finding if near is not None else "",
        "html": report_form.rendered(ladder_report.TEMPLATE, context, report_html.templates()),
        "list": ladder_view.result(ladder, found),
    }


DRAWN = [
    ("faster", "slower", "noisy", "alike"),
    ("alike", "alike", "far", "faster"),
    ("noisy", "noisy", "alone", "once"),
    ("doubted", "faster", "twisted", "slower"),
    ("once", "once", "once", "once"),
    ("far", "twisted", "noisy", "alike"),
]


@pytest.mark.parametrize("kinds", DRAWN, ids="-".join)
def test_a_ladder_calls_fastest_faster_and_slower_what_is_decided(kinds: tuple[str, ...]) -> None:
    ladder, found = climbed(kinds, 3)
    made = {row.case.label: row for row in ladder_rows.rows(ladder, found)}
    named = "|".join(name for name in made if not name.startswith("00"))
    texts = said_of(ladder, found)
    pairs = {
        (a, b): stats.compare(made[a].measurement, made[b].measurement).verdict
        for a, b in itertools.permutations(made, 2)
    }
    for place, text in texts.items():
        plain = re.sub(r"\x1b\[[0-9;]*m|<[^>]*>|\\|\*\*", "", text)
        assert not BELOW_1.search(plain), (place, plain)
        for name in re.findall(rf"({named}) is the fastest", plain):
            others = [other for other in made if other not in (name, "00 reference")]
            assert {pairs[name, o] for o in others if story.eligible(made[o])} <= {"FASTER", "SAME"}, place
        for first, way, second in re.findall(
            rf"({named})(?: is| is the fastest,)? [\d.,]+× (faster|slower) than ({named}|reference)", plain
        ):
            other = second if second in made else "00 reference"
            assert pairs[first, other].lower() == way, (place, first, second)
        for line in plain.splitlines():
            name = next((name for name in made if line.startswith(name)), "")
            if "bound by" in line and name:
                assert (made[name].limit or 0) >= 0.6, line
    for row in made.values():
        if row.gain is not None:
            assert row.lower is not None
            told = ladder_tables.gain(row)
            assert f"{row.lower.case.number:02d}" in told, "a gain names what it is over"
            assert (told.startswith("not decided")) == (row.gain_verdict == "UNCLEAR")
    lead = story.leading(list(made.values()))
    if lead is None or not lead.decided:
        assert 'class="faster"' not in texts["html"]
        assert 'class="ok"' not in texts["html"]
        assert not re.search(r"\d×", texts["list"]), "no number of what is not decided"


def test_a_whole_model_that_is_longer_stands_beside_a_faster_rung_with_the_reason() -> None:
    ladder, found = climbed(("slower", "faster"), 1)
    (rung,) = (row for row in ladder_rows.rows(ladder, found) if row.name == "faster_2")
    rng = np.random.default_rng(2)
    models = []
    for m, kind in ((rung.measurement, "slower"), (found[-1], "")):
        case = msgspec.structs.replace(m.case, scope="model")
        samples = drawn(kind, 9e6, rng) if kind else reference(9e6, rng, False)
        models.append(msgspec.structs.replace(m, case=case, **samples))
    (model, _) = ladder_rows.rows(ladder, models, "model")
    assert (rung.verdict, model.verdict) == ("FASTER", "SLOWER")
    told = story.whole(rung, model, "the reference's")
    assert told.startswith("the whole model with it is 1.70× slower than the reference's (")
    assert "though the rung is faster at its node" in told
    text = ansi(ladder_tables.terminal(ladder, ladder_rows.rows(ladder, found), [model]), 240)
    assert "though the rung is faster at its node" in text


# ------------------------------------------------------------------------------------------ diffs


def saved(path: Path, run: Run, found: list[Measurement]) -> Path:
    with COMPARISON.create(path, run) as folder:
        for m in found:
            folder.append(m)
    return path


def test_a_diff_claims_what_is_decided_between_two_runs(tmp_path: Path, capsys: Any) -> None:
    before = saved(tmp_path / "a", *comparison(("alike",) * len(KINDS), 1))
    after = saved(tmp_path / "b", *comparison(KINDS, 2))
    diff = between.between(before, after)
    judged = {change.pair.key: change for change in diff.changes if change.verdict}
    assert {change.verdict for change in judged.values()} >= {"FASTER", "SLOWER", "SAME", "UNCLEAR"}
    table = diff_tables.readable(diff)
    (cell,) = (c for c in table.columns if c.name == "ratio")
    for change in judged.values():
        told = cell.words(change)
        assert [way for _, way in claims(told)] == [
            w for w in ("faster", "slower") if w == change.verdict.lower()
        ]
        assert bool(change.undecided) == (change.verdict == "UNCLEAR")
    for form in ("table", "md"):
        assert main.main(["runs", "diff", str(before), str(after), "--format", form]) == 0
        assert not BELOW_1.search(capsys.readouterr().out)
    said = sentences.verdict(diff)
    for name in ("faster", "slower"):
        count = sum(change.verdict == name.upper() for change in judged.values())
        assert re.search(rf"{name} in {count}\b", said), said


@pytest.mark.parametrize("case", ["no run", "unquiet", "bad option"])
def test_a_gate_that_could_not_judge_leaves_no_green_file(case: str, tmp_path: Path, capsys: Any) -> None:
    from xml.etree import ElementTree

    before = saved(tmp_path / "a", *comparison(("faster", "slower"), 1))
    run, found = comparison(("faster", "slower"), 2)
    if case == "unquiet":
        unquiet = Validity(warnings=("the machine was unquiet: by 90 %",))
        run, found = comparison(("noisy", "noisy"), 2)
        found = [msgspec.structs.replace(m, validity=unquiet) for m in found]
    after = saved(tmp_path / "b", run, found)
    arguments = ["runs", "diff", str(before), str(after), "--fail-on", "slower"]
    if case == "no run":
        arguments[3] = str(tmp_path / "nowhere")
    if case == "bad option":
        arguments += ["--bound", "x"]
    file = tmp_path / "diff.xml"
    file.write_text('<testsuites tests="3" failures="0" errors="0"/>')  # of the build before
    code = main.main([*arguments, "--junit", str(file)])
    assert code == 2
    said = capsys.readouterr().err
    root = ElementTree.parse(file).getroot()
    errors = list(root.iter("error"))
    assert errors
    assert root.get("errors") == str(len(errors)) != "0"
    assert errors[0].get("message", "")[:30] in said
