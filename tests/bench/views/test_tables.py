"""Tables: the numbers are the records', what is unknown stays empty, and each format can be read back."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from bench.results.records import Accuracy, Disposition, Validity
from bench.results.rows import rows
from bench.results.summaries import SAMPLE
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.views.tables import comparison_tables as tables
from bench.views.tables import terminal_tables
from bench.views.tables.table import records, to_csv, to_json, to_markdown
from bench.words import units
from tests.bench import synthetic

pytestmark = pytest.mark.slow

DISPOSITIONS = list(Disposition.__args__)
FAILURES = {
    ("engine-cuda", 16): ("out_of_memory", "9 GiB | were wanted"),
    ("engine-cpu", 4): ("incorrect", "output off by 3.4e-02"),
}


@pytest.fixture(scope="module")
def shown() -> list[Any]:
    return rows(
        synthetic.run(batches=(1, 4, 16), models=("lenet5-digits", "dir/b.onnx"), failures=FAILURES)[1]
    )


def text_of(renderable: Any, width: int = 110) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(renderable)
    return out.getvalue()


def test_csv_and_json_hold_the_same_plain_numbers(shown: list[Any]) -> None:
    parsed = list(csv.DictReader(io.StringIO(to_csv(tables.table(shown)))))
    decoded = json.loads(to_json(records(tables.table(shown))))
    assert len(parsed) == len(decoded) == len(shown)
    for line, item, row in zip(parsed, decoded, shown, strict=True):
        assert line.keys() == item.keys()
        assert {k: "" if v is None else str(v) for k, v in item.items() if not isinstance(v, float)} == {
            k: v for k, v in line.items() if not isinstance(item[k], float)
        }
        if row.median_ns is None:
            assert item["median_s"] is None
            assert line["median_s"] == ""
        else:
            assert float(line["median_s"]) == item["median_s"] == pytest.approx(row.median_ns * 1e-9)


def test_the_speedup_and_its_verdict_agree(shown: list[Any]) -> None:
    for item in records(tables.table(shown)):
        if item["verdict"] == "FASTER":
            assert item["speedup_low"] > 1.02 * 0.99
        if item["verdict"] == "SLOWER":
            assert item["speedup_high"] < 1
        if item["backend"] == item["reference"]:
            assert item["speedup"] is None


def test_markdown_is_a_table_that_a_bar_in_a_reason_does_not_break(shown: list[Any]) -> None:
    lines = to_markdown(tables.table(shown), by_name=True).splitlines()
    assert len(lines) == len(shown) + 2
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_the_terminal_table_fits_and_tells_reasons(shown: list[Any]) -> None:
    text = text_of(terminal_tables.terminal(shown))
    assert max(map(len, text.splitlines())) <= 110
    assert "…" not in text
    assert "lenet5-digits" in text
    assert "b, 1,000 images" in text  # a model by path goes by its stem
    assert "out of memory: 9 GiB | were wanted" in text
    assert "incorrect: output off by 3.4e-02" in text
    assert "97.25 %" in text
    assert "faster" in text


@pytest.mark.parametrize("width", [120, 100, 80, 70])
def test_a_narrow_terminal_has_fewer_columns_and_none_cut(shown: list[Any], width: int) -> None:
    text = text_of(terminal_tables.terminal(shown), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    heads = next(line for line in text.splitlines() if line.startswith("backend "))
    assert ("error" in heads) == (width >= 120)
    assert "speed-up" in heads


def test_warnings_that_differ_in_figures_share_a_line() -> None:
    import msgspec

    _, measured = synthetic.run(backends=("ort-cpu",), batches=(1, 2, 4))
    noisy = [
        msgspec.structs.replace(m, validity=Validity(warnings=(f"the median moved by up to {p} %",)))
        for m, p in zip(measured, (7, 42, 9), strict=True)
    ]
    assert terminal_tables.remarks(rows(noisy)) == [
        "lenet5-digits, ort-cpu at batch 1–4: ! the median moved by up to 42 %"
    ]


def test_what_was_swapped_in_is_said_below_the_table_and_in_the_footer() -> None:
    import msgspec

    from bench.views.sentences import footer

    run, (measured,) = synthetic.run(backends=("ort-cpu",), batches=(4,))
    swapped = msgspec.structs.replace(measured, facts={"swapped": "conv1 + relu1 by conv 90 mine"})
    (said,) = terminal_tables.remarks(rows([swapped]))
    assert said == "lenet5-digits, ort-cpu at batch 4: with conv1 + relu1 by conv 90 mine"
    assert "ort-cpu: conv1 + relu1 by conv 90 mine" in footer.settings(run, [swapped])


def test_layers_have_shares_that_sum_to_one() -> None:
    _, measured = synthetic.run(backends=("engine-cpu",), batches=(8,))
    items = records(tables.layer_table(measured))
    assert sum(item["share"] for item in items) == pytest.approx(1)
    assert items[0]["gflops_per_s"] == pytest.approx(items[0]["flops"] / items[0]["time_s"] / 1e9)
    text = text_of(terminal_tables.layers(measured))
    assert "Conv+Tanh" in text
    assert "1.1e-07" in text


@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_figure_of_a_layer_is_cut(width: int) -> None:
    """On a GPU there are shapes and kernels of long names beside them."""
    found = [m for m in COMPARISON.open(SAMPLE).measurements() if m.layers]
    lines = text_of(terminal_tables.layers(found), width).splitlines()
    assert not [line for line in lines if re.search(r"[\d.]…|…\s*$", line)]
    assert all(len(line.rstrip()) <= width for line in lines)


def test_layers_of_nothing_say_so() -> None:
    _, measured = synthetic.run(backends=("ort-cpu",), batches=(1,), layers=False)
    assert "No case has its layers measured" in text_of(terminal_tables.layers(measured))


def test_layers_that_were_checked_and_not_timed_have_errors_and_say_so() -> None:
    import msgspec

    _, (one,) = synthetic.run(backends=("engine-cpu",), batches=(8,))
    layers = tuple(msgspec.structs.replace(x, time_ns=None, clock="") for x in one.layers)
    untimed = msgspec.structs.replace(one, layers=layers)
    items = records(tables.layer_table([untimed]))
    assert {item[name] for item in items for name in ("time_s", "share", "gflops_per_s")} == {None}
    text = text_of(terminal_tables.layers([untimed]))
    assert "batch 8, layers not timed" in text
    assert "1.1e-07" in text
    assert "GFLOP/s" not in text
    assert "GFLOP/s" in text_of(terminal_tables.layers([one]))


def test_a_reason_that_names_its_batch_is_one_line_for_all_batches() -> None:
    failures = {("ort-cpu", n): ("unsupported", f"refused at batch {n}: no Swish") for n in (1, 16, 1024)}
    measured = synthetic.run(backends=("ort-cpu",), batches=(1, 16, 1024), failures=failures)[1]  # type: ignore[arg-type]
    (line,) = terminal_tables.remarks(rows(measured))
    assert line.endswith("ort-cpu at batch 1–1,024: unsupported: refused: no Swish")


def test_an_accuracy_has_its_interval_and_where_there_is_none_its_reason() -> None:
    measured = synthetic.run(batches=(2,))[1]
    told = {
        "refused": "nothing says in which order",
        "hint": "another order would",
        "notes": ("2 of 9 broken",),
    }

    def answered(**fields: Any) -> list[Any]:
        accuracy = Accuracy(images=1000, labelled=fields.get("top1") is not None, **fields)
        return rows([msgspec.structs.replace(m, accuracy=accuracy) for m in measured])

    found = answered(top1=0.907, top5=0.99)
    text = " ".join(text_of(terminal_tables.terminal(found)).split())
    assert "top-1 90.70 % (88.74 % to 92.35 %), top-5 99.00 %" in text
    assert text.count("on 1,000 images (95 % interval)") == 1, "once for all that agree"
    assert records(tables.table(found))[0]["top1_low"] == pytest.approx(0.8874, abs=1e-4)
    refused = answered(**told)
    text = " ".join(text_of(terminal_tables.terminal(refused)).split())
    for words in ("no accuracy: nothing says in which order", "another order would", "2 of 9 broken"):
        assert words in text
    first = records(tables.table(refused))[0]
    assert (first["top1"], first["no_accuracy"]) == (None, "nothing says in which order")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(DISPOSITIONS), min_size=4, max_size=4), st.booleans())
def test_any_mix_of_dispositions_has_every_row_in_every_format(
    dispositions: list[Disposition], layers: bool
) -> None:
    failures = {
        (backend, 2): (disposition, f"reason {backend}")
        for backend, disposition in zip(synthetic.BACKENDS, dispositions, strict=True)
    }
    measured = synthetic.run(batches=(2,), failures=failures, layers=layers)[1]
    found = rows(measured)
    assert [item["disposition"] for item in records(tables.table(found))] == dispositions
    assert to_markdown(tables.table(found), by_name=True).count("\n") == len(found) + 2
    text = " ".join(text_of(terminal_tables.terminal(found)).split())
    for backend, disposition in zip(synthetic.BACKENDS, dispositions, strict=True):
        assert (f"reason {backend}" in text) == (disposition != "ok")
    for row in found:
        assert row.failed == (
            row.measurement.disposition not in ("ok", "untimed", "unsupported", "cancelled")
        )


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.00123, "s", "1.23 ms"),
        (999.96e-6, "s", "1.00 ms"),
        (1.0, "s", "1.00 s"),
        (0.0, "s", "0 s"),
        (45600.0, "", "45.6 k"),
        (2.5e-9, "s", "2.50 ns"),
        (1.25e-10, "s", "0.125 ns"),
        (4.7e-19, "s", "0 s"),
        (-4.7e-19, "s", "0 s"),
    ],
)
def test_si_prefixes(value: float, unit: str, shown: str) -> None:
    assert units.si(value, unit) == shown


def test_what_subtraction_rounds_away_is_no_time() -> None:
    assert units.digits(4.7e-10) == "0"
    assert units.change(0.1 + 0.2 - 0.3) == "±0 s"
    assert units.change(-1.25) == "−1.25 ns"


def test_what_is_not_quite_all_never_reads_all() -> None:
    assert units.percent(1.0) == "100.00 %"
    assert units.percent(0.99999) == "99.99 %"


def test_spans_join_neighbours_only() -> None:
    assert units.spans([1, 2, 8], [1, 2, 4, 8]) == "1–2, 8"
    assert units.spans([1024], [1, 1024]) == "1,024"
