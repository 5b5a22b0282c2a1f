"""The one sentence of a model agrees with the rows, says what it leaves out, and is the same everywhere."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from rich.console import Console

from bench.charts import charts
from bench.charts.verdicts import DOUBTFUL, Clause, Verdict, verdict, verdicts, why_unclear
from bench.comparison import report, saved
from bench.results import doubt
from bench.results.records import Measurement, Run, Validity
from bench.results.rows import Row, rows
from bench.show import terminal_tables
from bench.words import units
from tests.bench import synthetic

CPU = ("engine-cpu", "ort-cpu")
MODEL = "lenet5-digits"


def said(run: Run, measured: Sequence[Measurement]) -> Verdict:
    return verdict(MODEL, rows(measured), [run])


def of(found: Verdict, kind: str) -> Clause:
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
        if clause.kind in ("faster", "slower"):
            ratios = [row.speedup or 0 for row in own]
            up = sorted(ratios if clause.kind == "faster" else [1 / ratio for ratio in ratios])
            ends = list(dict.fromkeys(units.times(ratio) for ratio in (up[0], up[-1])))
            assert re.findall(r"[\d.]+×", clause.text) == ends
            # A range over batch sizes says where its ends stand: it is no interval.
            places = {
                (units.times(r if r >= 1 else 1 / r), f"{row.case.batch:,}")
                for r, row in zip(ratios, own, strict=True)
            }
            told = re.findall(r"\(least at ([\d,]+), most at ([\d,]+)\)", clause.text)
            assert len(told) == (1 if len(ends) > 1 else 0)
            assert {pair for at in told for pair in zip(ends, at, strict=True)} <= places
    assert found.text.count("engine-cuda is") == found.text.count("engine-cpu is") == 1
    assert found.text.endswith("; answers identical on 1,000 images.")


def test_what_is_level_and_what_is_unclear_say_why() -> None:
    run, measured = synthetic.run(backends=CPU, batches=(1, 4, 16))
    measured = like_its_reference(measured, 4)
    wide = tuple(float(v) for v in (900, 1000, 1100, 1200) * 5)
    measured = [
        msgspec.structs.replace(m, samples_ns=wide, rounds=(0, 10), validity=Validity(stop_reason="budget"))
        if m.case.batch == 16
        else m
        for m in measured
    ]
    found = said(run, measured)
    assert of(found, "as fast").text == "as fast at batch 4 (within 2 %)"
    unclear = of(found, "unclear")
    (row,) = (r for r in rows(measured) if r.case in unclear.cases)
    assert row.speedup_low is not None
    assert row.speedup_high is not None
    span = f"from {units.times(row.speedup_low)} to {units.times(row.speedup_high)} its speed"
    assert unclear.text == f"unclear at batch 16 (anything {span}, the time budget was spent)"
    assert unclear.before == " and "


def test_what_has_no_time_is_named_with_what_became_of_it() -> None:
    failures = {("engine-cpu", 4): ("crashed", "x"), ("ort-cpu", 16): ("timed_out", "y")}
    run, measured = synthetic.run(backends=CPU, batches=(1, 4, 16, 64), failures=failures)  # type: ignore[arg-type]
    text = said(run, measured[:-2]).text
    assert "slower than ort-cpu at batch 1" in text
    assert "not compared at batch 16 (ort-cpu has no time there)" in text
    assert "and without a time at batch 4 (crashed); " in text
    assert "; ort-cpu is without a time at batch 16 (timed out); " in text
    assert "; 2 of 8 cases are not measured yet." in text


def test_a_backend_that_refuses_a_model_is_said_to_and_nothing_more() -> None:
    run, measured = synthetic.run(
        backends=CPU, batches=(1, 4), failures={("engine-cpu", b): ("unsupported", "x") for b in (1, 4)}
    )
    text = said(run, measured).text
    assert text == "engine-cpu is without a time at batch 1–4 (unsupported)."


def test_answers_that_nobody_compared_are_not_called_the_same() -> None:
    run, measured = synthetic.run(backends=CPU, batches=(1,))
    bare = [msgspec.structs.replace(m, accuracy=None) for m in measured]
    assert said(run, bare).text.endswith("; answers were not compared.")
    half = [msgspec.structs.replace(m, accuracy=msgspec.structs.replace(m.accuracy, agreement=None))  # type: ignore[type-var]
            for m in measured]  # fmt: skip
    assert "identical" not in said(run, half).text


def test_a_doubt_of_times_that_their_ratio_is_free_of_leaves_the_line_plain() -> None:

    run, measured = synthetic.run(backends=CPU, batches=(4,))
    unquiet = [
        msgspec.structs.replace(m, validity=Validity(warnings=(f"{doubt.UNQUIET}: by 9 %",)))
        for m in measured
    ]
    (row,) = (r for r in rows(unquiet) if not r.is_reference)
    assert row.speedup_doubts == ()
    assert DOUBTFUL not in said(run, unquiet).text
    held = [msgspec.structs.replace(m, validity=Validity(warnings=("held back",))) for m in measured]
    text = f"; {DOUBTFUL}: engine-cpu and ort-cpu at batch 4 (held back); answers "
    assert text in said(run, held).text, "beside what it weighs on"


def test_what_is_doubtful_is_in_no_breath_with_what_is_not() -> None:
    run, measured = synthetic.run(backends=("engine-cuda", "ort-cuda", *CPU), batches=(1, 4, 16))
    held = [
        msgspec.structs.replace(m, validity=Validity(warnings=("held back",)))
        if (m.case.backend, m.case.batch) == ("ort-cpu", 4)
        else m
        for m in measured
    ]
    found = said(run, held)
    assert found.whos == ("engine-cuda", "engine-cpu")
    assert found.reliable("engine-cuda")
    assert not found.reliable("engine-cpu")
    sure, unsure, why = found.told_of("engine-cpu")
    assert [case.batch for case in sure.cases] == [1, 16]
    assert [case.batch for case in unsure.cases] == [4]
    assert (sure.doubtful, unsure.doubtful) == (False, True)
    assert unsure.text.endswith(" at batch 4 (!)")
    assert why.text == f"{DOUBTFUL}: ort-cpu at batch 4 (held back)"
    assert [clause.kind for clause in found.told_of("")] == ["answers"]


def test_the_same_sentence_stands_in_the_terminal_the_report_and_what_is_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, measured = synthetic.run(models=(MODEL, "alexnet"), backends=CPU, batches=(1, 4))
    lines = [found.line for found in verdicts(rows(measured), [run])]
    assert [line.split(":")[0] for line in lines] == [f"{name}, forward pass" for name in (MODEL, "alexnet")]
    out = io.StringIO()
    Console(file=out, width=1000, highlight=False).print(terminal_tables.terminal(rows(measured), [run]))
    assert out.getvalue().splitlines()[:2] == lines
    for name in ("csv", "json", "md"):
        saved.print_tables([(run, measured)], name)
        assert capsys.readouterr().err.splitlines() == lines  # standard output is the machine's
    made = charts([(run, measured)])
    for chart in made:
        if chart.name.endswith(("op-time", "-speed")):
            assert f"{chart.model}, forward pass: {chart.finding}" in lines
    merged = report.merge([(run, measured)])
    text = report.render(merged, [(run, measured)], ())
    assert all(f"- {line}" in text.splitlines() for line in lines)


def test_no_rows_say_nothing() -> None:
    assert verdicts([]) == []
    assert (verdict(MODEL, []).text, verdict(MODEL, []).line) == ("", "")


def test_an_interval_that_says_nothing_is_told_in_words() -> None:
    wild = [SimpleNamespace(speedup_low=1e-9, speedup_high=3e10, measurement=_stopped(""))]
    assert why_unclear(wild) == "its speed is as good as unknown"  # type: ignore[arg-type]
    narrow = [SimpleNamespace(speedup_low=0.9, speedup_high=1.2, measurement=_stopped("budget"))]
    told = why_unclear(narrow)  # type: ignore[arg-type]
    assert told == "anything from 0.900× to 1.20× its speed, the time budget was spent"


def _stopped(reason: str) -> SimpleNamespace:
    return SimpleNamespace(validity=SimpleNamespace(stop_reason=reason))
