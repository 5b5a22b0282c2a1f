"""The report of saved runs: the latest of each case, what falls short named, charts that are there and small,
and sentences that count right."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

import msgspec
import numpy as np
import pytest
from PIL import Image

import main
from bench.results.records import ErrorStats, Measurement, Run, Validity
from bench.results.rows import rows
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.views.drawing.draw import render
from bench.views.reports import comparison_report as report
from bench.views.reports import report_files, report_form
from bench.views.sentences import findings
from bench.views.sentences.verdicts import verdicts
from bench.views.tables import scoreboard
from bench.views.tables.table import to_markdown
from tests.bench import synthetic

pytestmark = pytest.mark.slow

Data = tuple[Run, list[Measurement]]
CPU = ("engine-cpu", "ort-cpu")
CUDA = ("engine-cuda", "ort-cuda")


def kept(path: Path, data: Data) -> Path:
    run, measurements = data
    with COMPARISON.create(path, run) as folder:
        for measurement in measurements:
            folder.append(measurement)
    return path


def changed(data: Data, change: Callable[[Measurement], Measurement]) -> Data:
    return data[0], [change(m) for m in data[1]]


def dated(stamp: str) -> Callable[[Measurement], Measurement]:
    return lambda m: msgspec.structs.replace(m, started_at=stamp)


def slowed(factor: float) -> Callable[[Measurement], Measurement]:
    return lambda m: msgspec.structs.replace(m, samples_ns=tuple(s * factor for s in m.samples_ns))


def tables_of(text: str) -> list[list[list[str]]]:
    """Every pipe table but scoreboards: header, rule, rows, each a list of cells."""
    found: list[list[list[str]]] = []
    before = False
    for line in text.splitlines():
        if line.startswith("|"):
            if not before:
                found.append([])
            found[-1].append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        before = line.startswith("|")
    return [table for table in found if not table[0][0].startswith("backend, by")]


@pytest.mark.sampled(6, "longest")
def test_a_report_has_every_case_and_charts_that_are_there_and_small(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batches = (1, 16, 1024)
    models = ("lenet5-digits", "dir/b.onnx")
    gpu = kept(tmp_path / "gpu", synthetic.run(backends=CUDA, models=models, batches=batches))
    cpu = kept(tmp_path / "cpu", synthetic.run(backends=CPU, batches=(1, 16, 64)))
    out = tmp_path / "docs" / "h200.md"
    line = ["runs", "report", str(gpu), str(cpu), "--out", str(out), "--charts", str(tmp_path / "docs/a b")]
    assert main.main(line) == 0
    assert capsys.readouterr().out.splitlines()[0] == str(out)
    text = out.read_text("utf-8")
    lenet, other = tables_of(text)
    assert len(lenet) == 2 + 2 * len(batches) + 6
    assert len(other) == 2 + 2 * len(batches)
    assert all(len({len(line) for line in table}) == 1 for table in (lenet, other))
    assert [int(line[0].replace(",", "")) for line in lenet[2:]] == sorted([*batches * 2, *(1, 16, 64) * 2])
    links = re.findall(r"!\[.+\]\((\S+)\)", text)
    assert [link.rpartition("-")[2] for link in links] == 2 * [
        "time.png",
        "speed.png",
        "breakdown.png",
        "accuracy.png",
    ]
    for link in links:
        path = out.parent / unquote(link)
        assert path.stat().st_size < 61_000
        with Image.open(path) as image:
            assert image.mode == "P"
            assert image.width > 1000
    commands = [line[4:] for line in text.splitlines() if line.startswith("    ")]
    assert commands == [COMPARISON.open(path).header.command for path in (gpu, cpu)]
    short = text.partition("## What falls short\n\n")[2].strip().splitlines()
    assert [line.partition(":")[0] for line in short] == ["Nothing"], "what is not decided is no shortcoming"
    assert "\n\n\n\n" not in text


@pytest.mark.usefixtures("blank_pictures")
def test_the_same_runs_give_the_same_report(tmp_path: Path) -> None:
    run = kept(tmp_path / "run", synthetic.run(backends=CPU, batches=(1, 4)))
    first = [path.read_bytes() for path in report.write([run], tmp_path / "r.md")]
    assert first == [path.read_bytes() for path in report.write([run], tmp_path / "r.md")]


def test_the_latest_of_a_case_counts_with_the_reference_of_its_own_run() -> None:
    old = changed(synthetic.run(backends=CPU, batches=(1, 4)), dated("2026-01-02T00:00:00+00:00"))
    new = changed(synthetic.run(backends=CPU, batches=(4,)), dated("2026-01-03T00:00:00+00:00"))
    new = changed(new, slowed(3.0))  # both sides: the speed-up stays
    for order in ((old, new), (new, old)):
        merged = report.merge(order)
        by_case = {(row.case.backend, row.case.batch): row for row in merged.rows}
        assert list(by_case) == [(b, n) for n in (1, 4) for b in CPU]
        once, again = rows(old[1]), rows(new[1])
        assert by_case["engine-cpu", 1].median_ns == once[0].median_ns
        assert by_case["engine-cpu", 4].median_ns == again[0].median_ns
        assert by_case["engine-cpu", 4].speedup == pytest.approx(again[0].speedup)
        assert merged.apart == merged.missing == ()


def test_a_reference_of_another_run_is_used_and_said_so() -> None:
    merged = report.merge([synthetic.run(backends=(name,), batches=(1, 2)) for name in CPU])
    assert [row.case.batch for row in merged.apart] == [1, 2]
    assert all(row.speedup for row in merged.apart)
    assert report.shortfalls(merged) == [
        "lenet5-digits, engine-cpu at batch 1–2: "
        "not timed together with the reference, which another run measured"
    ]


@pytest.mark.usefixtures("blank_pictures")
def test_cases_of_another_machine_in_the_same_table_are_named(tmp_path: Path) -> None:
    def on(gpu: str, data: Data) -> Data:
        run = data[0]
        return msgspec.structs.replace(
            run, environment=msgspec.structs.replace(run.environment, gpu=gpu)
        ), data[1]

    here = on("Example GPU", synthetic.run(backends=CUDA, batches=(1, 4, 16)))
    there = on(
        "Other GPU", changed(synthetic.run(backends=CUDA, batches=(4,)), dated("2036-01-01T00:00:00+00:00"))
    )
    merged = report.merge([there, here])
    (told,) = report.shortfalls(merged)
    assert told.endswith(": measured on Other GPU, most others on Example GPU")
    assert told.startswith("lenet5-digits, engine-cuda at batch 4, ort-cuda at batch 4")
    paths = [kept(tmp_path / name, data) for name, data in (("a", here), ("b", there))]
    text = report.write(paths, tmp_path / "r.md")[0].read_text("utf-8")
    assert text.startswith("# Comparison on Example GPU and Other GPU\n")
    assert report.shortfalls(report.merge([here, here])) == []


@pytest.mark.usefixtures("blank_pictures")
def test_what_falls_short_is_named_with_its_reason(tmp_path: Path) -> None:
    failures = {
        ("engine-cuda", 16): ("out_of_memory", "9 GiB | were *wanted*"),
        ("engine-cpu", 4): ("incorrect", "output off by 3.4e-02"),
    }
    run, measured = synthetic.run(batches=(1, 4, 16), failures=failures)  # type: ignore[arg-type]
    unquiet = Validity(warnings=("the machine was unquiet: between rounds the median moved by up to 7%",))
    measured[0] = msgspec.structs.replace(measured[0], validity=unquiet)
    lost = measured.pop()
    text = report.write([kept(tmp_path / "run", (run, measured))], tmp_path / "r.md")[0].read_text("utf-8")
    short = text.partition("## What falls short")[2]
    assert "- lenet5-digits, engine-cuda at batch 16: out of memory: 9 GiB \\| were \\*wanted\\*" in short
    assert "- lenet5-digits, engine-cpu at batch 4: incorrect: output off by 3.4e-02" in short
    assert "- lenet5-digits, engine-cuda at batch 1: the machine was unquiet" in short
    assert f"- lenet5-digits, {lost.case.backend}: 1 case not measured" in short
    assert short.count("\n- ") == 4
    assert "11 of 12 cases measured" in text
    results = {(line[0], line[1]): line[2] for line in tables_of(text)[0][2:]}
    assert results["1", "engine-cuda"] == "ok", "an unsteady time marks nothing"
    assert results["16", "engine-cuda"] == "out of memory"


def with_layer_error(measurement: Measurement, index: int, rel_l2: float) -> Measurement:
    layers = list(measurement.layers)
    ok = rel_l2 <= 1e-5
    error = ErrorStats(
        rel_l2=rel_l2, max_abs=1, mean_abs=1, max_rel=1, bound=1e-5, ok=ok, reason="" if ok else "too far off"
    )
    layers[index] = msgspec.structs.replace(layers[index], isolated=error)
    return msgspec.structs.replace(measurement, layers=tuple(layers))


@pytest.mark.parametrize(("rel_l2", "within"), [(9e-6, True), (3e-4, False)])
def test_the_worst_layer_is_found_and_one_beyond_its_bound_falls_short(rel_l2: float, within: bool) -> None:
    run, measured = synthetic.run(backends=CPU, batches=(1, 8))
    measured[2] = with_layer_error(measured[2], 3, rel_l2)
    merged = report.merge([(run, measured)])
    text = " ".join(findings.sentences(merged.rows))
    assert ("every layer is within its bound" in text) == within
    assert ("1 layer is beyond its bound" in text) != within
    assert "the worst is node3 (MaxPool), by itself, of lenet5-digits on engine-cpu, batch 8" in text
    assert (report.shortfalls(merged) == []) == within
    if not within:
        assert report.shortfalls(merged) == [
            "lenet5-digits, engine-cpu at batch 8: layer node3 (MaxPool), by itself: too far off"
        ]
    table = to_markdown(report.section("lenet5-digits", merged.rows, ()).table)
    assert ("**5 of 6**" in table) != within


def test_a_report_opens_with_a_line_and_a_scoreboard_of_each_model() -> None:
    run, measured = synthetic.run(models=("lenet5-digits", "alexnet"), backends=CUDA, batches=(1, 1024))
    counted, errors = findings.sentences(rows(measured))
    assert counted == "8 cases of 2 models measured: 8 ok."
    assert errors.startswith("Against float64")
    text = report_form.rendered(
        report.TEMPLATE, report.context(report.merge([(run, measured)]), [(run, measured)], ())
    )
    opening = text.partition("## How it was measured")[0]
    for found in verdicts(rows(measured), [run]):
        assert f"**{found.subject}**: {found.text}\n\n{to_markdown(scoreboard.table(found.board))}" in opening
    assert max(len(line.split()) for line in opening.splitlines()) < 50


@pytest.mark.usefixtures("blank_pictures")
def test_of_many_contenders_there_is_a_picture_and_a_sentence_for_each_precision(tmp_path: Path) -> None:
    run = kept(tmp_path / "run", synthetic.rivals())
    out, *pictures = report.write([run], tmp_path / "r.md")
    assert [path.name for path in pictures] == [
        f"lenet5-digits-{kind}-{precision}.png"
        for kind in ("op-time", "speed")
        for precision in ("fp32", "tf32", "fp16")
    ]
    text = out.read_text("utf-8")
    assert re.findall(r"!\[(.+)\]", text)[:2] == [
        f"lenet5-digits: time of a forward pass, {precision}" for precision in ("fp32", "tf32")
    ]
    told = [line for line in text.splitlines() if line.startswith("**lenet5-digits, ")]
    assert [line.split(", forward pass**: ")[0] for line in told] == [
        f"**lenet5-digits, {precision}" for precision in ("fp32", "tf32", "fp16")
    ]
    assert "engine-cuda fp32-tc is" in told[0]
    assert not any("not measured yet" in line for line in told)
    header, measured = synthetic.rivals()
    for chart in report.charts_of("lenet5-digits", rows(measured), [header]):
        lines = {series.label for panel in chart.panels for series in panel.series}
        assert 0 < len(lines) <= 5
        assert ("engine-cuda fp32-tc" in lines) == chart.name.endswith("fp32")
        assert chart.finding.startswith("engine-cuda")
        assert "not measured yet" not in chart.finding
    page = report.write([run], tmp_path / "r.html")[0].read_text("utf-8")
    assert page.count("<figure>") == len(pictures)
    assert len(re.findall(r"<b>lenet5-digits, \w+, forward pass:</b>", page)) == 3


def test_a_run_of_nothing_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = synthetic.run(batches=(1,))
    path = kept(tmp_path / "run", (run, []))
    assert main.main(["runs", "report", str(path), "--out", str(tmp_path / "r.md")]) == 2
    assert "there is no measurement in" in capsys.readouterr().err
    assert not (tmp_path / "r.md").exists()
    assert main.main(["runs", "report", str(path)]) == 2
    assert "--out" in capsys.readouterr().err


def noise(shape: Sequence[int]) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, shape, np.uint8))


@pytest.mark.sampled(4, "long")
def test_a_chart_too_full_for_its_palette_loses_pixels_and_not_the_report(tmp_path: Path) -> None:
    noise((300, 400, 3)).save(tmp_path / "full.png")
    small = report_files.small((tmp_path / "full.png").read_bytes(), most=20_000)
    assert len(small) <= 20_000
    (tmp_path / "small.png").write_bytes(small)
    with Image.open(tmp_path / "small.png") as image:
        assert image.width / image.height == pytest.approx(4 / 3, rel=0.02)


RIVALS = (
    "engine-cuda", "ort-cuda", "ort-cuda-tuned", "ort-cuda-tuned-strict", "torch-cuda-graph",
    "torch-compile-cuda", "torch-compile-cuda-tuned",
)  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backends", [synthetic.BACKENDS, RIVALS])
def test_series_keep_their_colours_in_the_palette(backends: Sequence[str], tmp_path: Path) -> None:
    """Also thin lines of many, below which stands more text than chart."""
    from bench.views.charts.comparison_charts import charts
    from bench.words import palette

    kinds = {**palette.BACKENDS, **palette.VARIANTS, **palette.RIVALS}
    chart = next(c for c in charts([synthetic.run(backends=backends)]) if c.name.endswith("op-time"))
    written = tuple(f"{i}: the quick brown fox jumps over the lazy dog, again and again" for i in range(40))
    for many in (chart, msgspec.structs.replace(chart, footer=(*chart.footer, *written))):
        (tmp_path / "c.png").write_bytes(report_files.small(render(many, ("png",))["png"]))
        with Image.open(tmp_path / "c.png") as image:
            counted = image.convert("RGB").getcolors(image.width * image.height)
        assert counted is not None
        counts, colours = (np.asarray(part) for part in zip(*counted, strict=True))
        for name in backends:
            wanted = [int(kinds[name][i : i + 2], 16) for i in (1, 3, 5)]
            assert np.abs(colours - wanted).max(axis=1).min() <= 12, name
        # And what is written is neither green nor blue.
        dark = colours.sum(axis=1) < 150
        assert counts[dark].sum() > 100
        assert (colours[dark].max(axis=1) - colours[dark].min(axis=1)).max() < 40


def test_a_chart_of_many_runs_names_a_few_commands_and_every_machine() -> None:
    from bench.views.sentences.footer import NAMED, footer

    made = [synthetic.run(backends=CPU, batches=(1,))[0] for _ in range(5)]
    runs = [
        msgspec.structs.replace(run, command=f"compare --batch {i}", environment=msgspec.structs.replace(
            run.environment, gpu=f"GPU {i % 2}"))
        for i, run in enumerate(made)
    ]  # fmt: skip
    lines = footer(runs, [])
    assert lines[-1] == "compare --batch 0; compare --batch 1; and 3 more like it"
    assert [sum(f"GPU {i}" in line for line in lines) for i in (0, 1)] == [1, 1]
    assert footer(runs[:NAMED], [])[-1] == "compare --batch 0; compare --batch 1"
