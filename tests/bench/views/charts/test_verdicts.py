"""The one sentence of a model agrees with the rows, says what it leaves out, and is the same everywhere."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench.results import doubt
from bench.results.records import Measurement, Run, Validity
from bench.results.rows import Row, rows
from bench.views import comparison
from bench.views.charts.comparison_charts import charts
from bench.views.reports import comparison_report as report
from bench.views.reports import report_form
from bench.views.sentences.verdicts import DOUBTFUL, Clause, ModelVerdict, verdict, verdicts
from bench.views.tables import terminal_tables
from bench.words import units
from tests.bench import synthetic

CPU = ("engine-cpu", "ort-cpu")
MODEL = "lenet5-digits"


def said(run: Run, measured: Sequence[Measurement]) -> ModelVerdict:
    return verdict(MODEL, rows(measured), [run])


def of(found: ModelVerdict, kind: str) -> Clause:
    return next(clause for clause in found.clauses if clause.kind == kind)


def like_its_reference(measured: Sequence[Measurement], batch: int, factor: float = 1.0) -> list[Measurement]:
    """Ours as long as the reference takes at one batch size."""
    other = next(m for m in measured if m.case.backend == "ort-cpu" and m.case.batch == batch)
    return [
        msgspec.structs.replace(m, samples_ns=tuple(v * factor for v in other.samples_ns))
        if (m.case.backend, m.case.batch) == ("engine-cpu", batch)
        else m
        for m in measured
    ]


def test_every_point_is_in_one_clause_and_every_ratio_is_the_row_s() -> None:
    run, measured = synthetic.run(backends=("engine-cuda", "ort-cuda", *CPU))
    found = said(run, measured)
    shown: dict[str, Row] = {row.case.key: row for row in rows(measured)}
    claims = [clause for clause in found.clauses if clause.kind in ("faster", "slower", "as fast", "unclear")]
    told = [case.key for clause in claims for case in clause.cases]
    assert sorted(told) == sorted(key for key, row in shown.items() if row.speedup is not None)
    words = {"faster": "FASTER", "slower": "SLOWER", "as fast": "SAME", "unclear": "UNCLEAR"}
    for clause in claims:
        own = [shown[case.key] for case in clause.cases]
        assert {row.verdict for row in own} == {words[clause.kind]}
        ratios = [row.speedup or 0 for row in own]
        up = sorted(ratios if clause.kind == "faster" else [1 / ratio for ratio in ratios])
        ends = list(dict.fromkeys(units.times(ratio) for ratio in (up[0], up[-1])))
        assert re.findall(r"[\d.]+×", clause.text) == (ends if clause.kind in ("faster", "slower") else [])
    assert found.text.count("engine-cuda is") == found.text.count("engine-cpu is") == 1
    assert found.text.endswith("; answers identical on 1,000 images.")


def test_what_is_level_and_what_is_not_decided_have_no_number() -> None:
    run, measured = synthetic.run(backends=CPU, batches=(1, 4, 16))
    measured = like_its_reference(measured, 4)
    wide = tuple(float(v) for v in (900, 1000, 1100, 1200) * 5)
    measured = [
        msgspec.structs.replace(m, samples_ns=wide, rounds=(0, 10)) if m.case.batch == 16 else m
        for m in measured
    ]
    found = said(run, measured)
    assert of(found, "as fast").text == "engine-cpu is as fast as ort-cpu at batch 4"
    assert of(found, "unclear").text == "not decided at batch 16"
    assert re.fullmatch(r"[\d.]+× slower at batch 1", of(found, "slower").text)


@pytest.mark.parametrize(
    "reason", ["not decided: other programs used 1.7 of 2 cores while this was measured"]
)
def test_why_it_is_not_decided_is_told_where_that_is_no_ratio(reason: str) -> None:
    run, measured = synthetic.run(backends=CPU, batches=(1,))
    busy = [replace(row, undecided=reason if row.speedup else "") for row in rows(measured)]
    text = verdict(MODEL, busy, [run]).text
    assert text.startswith(f"engine-cpu: not decided beside ort-cpu at batch 1 ({reason[13:]}); ")


def test_what_all_batch_sizes_share_is_said_once() -> None:
    run, measured = synthetic.run(backends=CPU, batches=(1, 4, 16))
    assert re.match(r"engine-cpu is [\d.]+× to [\d.]+× slower than ort-cpu at all 3 batch sizes; ",
                    said(run, measured).text)  # fmt: skip


def test_of_many_it_tells_of_ours_and_of_whoever_is_wrong() -> None:
    run, measured = synthetic.run(
        backends=[name for name in synthetic.REFERENCE if name not in CPU],
        batches=(1, 4),
        failures={("torch-cuda-graph", 4): ("incorrect", "off"), ("ort-cuda-tuned", 1): ("crashed", "x")},
    )
    found = said(run, measured)
    assert found.contenders == ("engine-cuda", "torch-cuda-graph")
    assert found.text.endswith("; torch-cuda-graph is wrong at batch 4; 4 others on the scoreboard.")
    assert "ort-cuda-tuned" not in found.text


def test_what_has_no_time_is_named_with_what_became_of_it() -> None:
    failures = {("engine-cpu", 4): ("crashed", "x"), ("ort-cpu", 16): ("timed_out", "y")}
    run, measured = synthetic.run(backends=CPU, batches=(1, 4, 16, 64), failures=failures)  # type: ignore[arg-type]
    text = said(run, measured[:-2]).text
    assert "slower than ort-cpu at batch 1, " in text
    assert "no time (ort-cpu has no time to compare with) at batch 16" in text
    assert "no time (crashed) at batch 4" in text
    assert "; ort-cpu: no time (timed out) at batch 16; " in text
    assert "; 2 of 8 cases are not measured yet." in text


def test_a_backend_that_refuses_a_model_is_said_to_and_nothing_more() -> None:
    run, measured = synthetic.run(
        backends=CPU, batches=(1, 4), failures={("engine-cpu", b): ("unsupported", "x") for b in (1, 4)}
    )
    text = said(run, measured).text
    assert text == "engine-cpu: no time (unsupported) at both batch sizes."


def test_answers_that_nobody_compared_are_not_called_the_same() -> None:
    run, measured = synthetic.run(backends=CPU, batches=(1,))
    bare = [msgspec.structs.replace(m, accuracy=None) for m in measured]
    assert said(run, bare).text.endswith("; answers were not compared.")
    half = [msgspec.structs.replace(m, accuracy=msgspec.structs.replace(m.accuracy, agreement=None))  # type: ignore[type-var]
            for m in measured]  # fmt: skip
    assert "identical" not in said(run, half).text
    assert said(run, half).text.endswith("; answers as float64's, each within its bound.")
    off = msgspec.structs.replace(half[0].accuracy.output, ok=False)  # type: ignore[union-attr, type-var]
    one = msgspec.structs.replace(half[0].accuracy, output=off)  # type: ignore[type-var]
    some = [msgspec.structs.replace(half[0], accuracy=one), *half[1:]]
    assert "as float64" not in said(run, some).text


def test_what_is_doubtful_is_in_no_breath_with_what_is_not() -> None:
    run, measured = synthetic.run(backends=("engine-cuda", "ort-cuda", *CPU), batches=(1, 4, 16))
    held = [
        msgspec.structs.replace(m, validity=Validity(warnings=("held back: by 9 %",)))
        if (m.case.backend, m.case.batch) == ("ort-cpu", 4)
        else m
        for m in measured
    ]
    found = said(run, held)
    assert found.contenders == ("engine-cuda", "engine-cpu")
    sure, unsure = found.clauses_of("engine-cpu")
    assert [case.batch for case in sure.cases] == [1, 16]
    assert [case.batch for case in unsure.cases] == [4]
    assert (sure.kind, unsure.kind) == ("slower", "doubtful")
    assert unsure.text == f"{DOUBTFUL} at batch 4 (held back)"
    assert [clause.kind for clause in found.clauses_of("")] == ["answers"]


def test_a_doubt_of_times_that_their_ratio_is_free_of_leaves_the_line_plain() -> None:
    run, measured = synthetic.run(backends=CPU, batches=(4,))
    unquiet = [
        msgspec.structs.replace(m, validity=Validity(warnings=(f"{doubt.UNQUIET}: by 9 %",)))
        for m in measured
    ]
    assert said(run, unquiet).text == said(run, measured).text


def test_the_same_sentence_stands_in_the_terminal_the_report_and_what_is_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, measured = synthetic.run(models=(MODEL, "alexnet"), backends=CPU, batches=(1, 4))
    lines = [found.line for found in verdicts(rows(measured), [run])]
    assert [line.split(":")[0] for line in lines] == [f"{name}, forward pass" for name in (MODEL, "alexnet")]
    out = io.StringIO()
    Console(file=out, width=1000, highlight=False).print(terminal_tables.terminal(rows(measured), [run]))
    assert [line for line in out.getvalue().splitlines() if ", forward pass: " in line] == lines
    for name in ("csv", "json", "md"):
        comparison.show_runs([(run, measured)], name)
        assert capsys.readouterr().err.splitlines() == lines  # standard output is the machine's
    made = charts([(run, measured)])
    for chart in made:
        if chart.name.endswith(("scoreboard", "op-time", "-speed")):
            assert f"{chart.model}, forward pass: {chart.finding}" in lines
    merged = report.merge([(run, measured)])
    text = report_form.rendered(report.TEMPLATE, report.context(merged, [(run, measured)], ()))
    assert all(f"**{line.replace(':', '**:', 1)}" in text.splitlines() for line in lines)


def test_no_rows_say_nothing() -> None:
    assert verdicts([]) == []
    assert (verdict(MODEL, []).text, verdict(MODEL, []).line) == ("", "")
