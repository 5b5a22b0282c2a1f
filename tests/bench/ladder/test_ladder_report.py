"""The report of ladders: tables, charts, a sentence a rung that its figures support, a course's times."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import main
from bench.results.ladder_records import Ladder, RungCase, RungMeasurement
from bench.results.ladder_rows import RungRow, rows
from bench.results.records import Environment
from bench.run.kinds.ladder import KIND as LADDER
from bench.views.reports import ladder_report, report_form
from bench.views.reports.ladder_report import MAX_CHART_NBYTES
from bench.views.sentences import ladder_story
from bench.views.tables import ladder_report_tables
from kernels import registry
from kernels.errors import InputError
from tests.bench.ladder.test_ladder import example, measured
from tests.bench.ladder.test_ladder_precisions import mixed
from tests.bench.results import received
from tests.bench.undrawn import undrawn

pytestmark = pytest.mark.slow

OCCUPIED = {"registers": 32.0, "shared_nbytes": 0.0, "spill_nbytes": 0.0, "threads": 256.0, "occupancy": 1.0}


def compiled(
    measurement: RungMeasurement, grid: str = "1000×1×1", facts: dict[str, float] | None = None, **idea: str
) -> RungMeasurement:
    return msgspec.structs.replace(
        measurement,
        case=msgspec.structs.replace(measurement.case, **idea),
        compiled=OCCUPIED | (facts or {}),
        facts={"grid": grid, "multiprocessors": "132"},
    )


def story(*found: RungMeasurement) -> dict[str, str]:
    """The sentence of each rung, by its name."""
    ladder, _ = example()
    made: list[RungRow] = rows(ladder, found)
    return {row.name: ladder_story.sentence(ladder, row, made) for row in made if not row.case.is_reference}


CRAMPED = {"occupancy": 0.25, "spill_nbytes": 64.0}


def test_a_sentence_tells_the_gain_and_the_figures_that_changed() -> None:
    told = story(
        compiled(measured("naive", 1, 8e6), "50×1×1", idea="The plainest."),
        compiled(measured("tiles", 2, 4e6), "1000×1×1", {"registers": 40.0}, idea="Tiles in shared memory."),
        compiled(measured("wide", 3, 5e6), "900×1×1", CRAMPED, idea="Wider."),
        compiled(measured("same", 4, 5.01e6), "900×1×1", CRAMPED),
        compiled(measured("lost", 5, 9e6), "900×1×1", CRAMPED),
        compiled(measured("few", 6, 1e6), "20×1×1", {"occupancy": 0.5, "spill_nbytes": 64.0}),
        compiled(measured("one", 7, 9e6), "128×1×1", {"threads": 416.0}),
    )  # fmt: skip
    assert told["naive"] == (
        "takes 8.02 ms, 125 GFLOP/s, far from every limit (12 % of arithmetic); only 50 blocks for 132 "
        "multiprocessors: “The plainest.”"
    )
    assert re.fullmatch(
        r"is 2\.00× faster than 01 naive \(.+× to .+×\) \(8\.02 ms → 4\.01 ms, 125 GFLOP/s → 250 GFLOP/s, "
        r"1,000 blocks for 132 multiprocessors in place of 50, registers a thread 32 → 40\), "
        r"far from every limit \(25 % of arithmetic\): “Tiles in shared memory\.”",
        told["tiles"],
    ), told["tiles"]
    assert told["wide"].startswith("is 1.25× slower than 02 tiles (")
    assert "less occupancy (100 % → 25 %), more bytes of spill stores and loads (0 B → 64 B)" in told["wide"]
    assert told["wide"].endswith(", for all its idea: “Wider.”")
    assert told["same"].startswith("is as fast as 03 wide (within 2 %) (")
    assert "no figure recorded here says why" in told["lost"]
    assert "more occupancy (25 % → 50 %), despite only 20 blocks for 132 multiprocessors" in told["few"]
    assert "bound by arithmetic (99 % of that limit)" in told["few"]
    assert "; one block of 416 threads a multiprocessor" in told["one"]


def test_nothing_is_said_of_a_gain_that_the_samples_do_not_show() -> None:
    once = msgspec.structs.replace(measured("once", 2, 4e6), samples_ns=(4e6,), rounds=(0,))
    near = [measured("near", 2, 8e6 / 1.02)]
    wino = RungCase(rung="wino", number=3, idea="Fewer.")
    refused = RungMeasurement(case=wino, disposition="unsupported", reason="needs kernel = 3")
    told = story(measured("naive", 1, 8e6), once, refused)
    assert told["once"].startswith("not decided between 02 once and 01 naive (one sample says nothing of ")
    assert told["wino"] == "is refused here, as it needs kernel = 3: “Fewer.”"
    assert story(measured("naive", 1, 8e6), *near)["near"].startswith(
        "not decided between 02 near and 01 naive"
    )


# --------------------------------------------------------------------------------------------- the document


def saved(folder: Path, batch: int, slower: float, model: str = "ece408-high") -> Path:
    ladder, found = mixed()
    found = [msgspec.structs.replace(m, samples_ns=tuple(s * slower for s in m.samples_ns)) for m in found]
    broken = RungCase(rung="broken", number=8, idea="A slip.")
    wrong = RungMeasurement(case=broken, disposition="incorrect", reason="the bias is missing")
    found.insert(-2, wrong)
    title = f"{model} conv1, batch {batch}: shape"
    job = msgspec.structs.replace(
        ladder.job, model=model, node="conv1", batch=batch, device="cuda", title=title
    )
    changed: Ladder = msgspec.structs.replace(
        ladder,
        job=job,
        cases=tuple(m.case for m in found),
        limits={"cuda": msgspec.structs.replace(ladder.limits["cpu"], device="cuda")},
        reference="ONNX Runtime (CUDA)",
        command=f"python main.py ladder conv --batch {batch}",
        environment=Environment(gpu="Some GPU", packages={"numpy": "2.0"}),
    )
    made = LADDER.create(folder, changed)
    for measurement in found:
        made.append(measurement)
    return folder


@pytest.mark.sampled(4, "long")
def test_a_report_of_two_batch_sizes_of_one_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "all", 10_000, 50.0)
    saved(tmp_path / "few", 100, 1.0)
    assert main.main(["runs", "report", "all", "few", "--out", "docs/it.md", "--title", "On a GPU"]) == 0
    written = capsys.readouterr().out.split()
    text = Path("docs/it.md").read_text()
    assert text.startswith("# On a GPU\n")
    assert "1.00 TFLOP/s (a product)" in text
    assert "6.00 TFLOP/s in tf32" in text
    assert "| rung | in | batch 100 | batch 10,000 |" in text
    assert "| 02 tiles | fp32 | 2.00 ms (2.00× slower) | 100 ms (2.00× slower) |" in text
    assert "| reference | tf32 | 601 µs | 30.1 ms |" in text
    assert text.index("### ece408-high, conv1: batch 100\n") < text.index(
        "### ece408-high, conv1: batch 10,000\n"
    )
    assert "- **05 mma\\_stages** is 2.00× faster than" in text
    assert "- **03 cublas (library)** is 1.25× faster than" in text
    assert "- **08 broken** was not timed (incorrect: the bias is missing)" in text
    assert (
        "of the rungs held against it 06 mma\\_thrice is the fastest; 06 mma\\_thrice is as fast as the"
        in text
    )
    charts = [Path(name) for name in written if name.endswith(".png")]
    assert len(charts) == 4
    for path in charts:
        assert path.stat().st_size <= MAX_CHART_NBYTES
        assert f"]({path.relative_to('docs')})" in text
    course = text[text.index("## Beside the published times of a course") :]
    assert "Their times are of a Kepler card" in course
    assert "| 12.19 s |  |  |" in course  # no ladder of ours on a CPU here
    assert "| 2.868 s | 401 ms | 01 naive |" in course
    assert "| 68.60 ms | 100 ms | 02 tiles |" in course


def test_two_ladders_of_one_node_keep_their_own_charts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undrawn(monkeypatch)
    paths = [saved(tmp_path / "first", 100, 1.0), saved(tmp_path / "second", 100, 3.0)]
    report, *charts = ladder_report.write(paths, tmp_path / "it.md")
    assert len({path.read_bytes() for path in charts}) == len(set(charts)) == 4
    text = report.read_text()
    assert all(f"](it/{path.name})" in text for path in charts)


def test_a_course_stands_beside_its_own_model_alone(tmp_path: Path) -> None:
    for model, there in (("ece408-high", True), ("alexnet", False)):
        read = ladder_report.read(saved(tmp_path / model, 10_000, 1.0, model))
        text = report_form.rendered(ladder_report.TEMPLATE, ladder_report.context([read], []))
        assert ("course" in text) is there
        assert text.startswith("# Ladders on Some GPU\n")
    elsewhere = msgspec.structs.replace(read.ladder, environment=Environment(gpu="Another"))
    both = ladder_report.context([read, replace(read, ladder=elsewhere)], [])
    assert both["heading"] == "Ladders on Some GPU and Another"


def test_one_rung_over_two_models(tmp_path: Path) -> None:
    """High against low: one table, the ratio of each rung's times with the widest interval."""
    reads = [
        ladder_report.read(saved(tmp_path / model, 100, slower, model))
        for model, slower in (("ece408-high", 3.0), ("ece408-low", 1.0))
    ]
    assert ladder_report.over_models(reads[:1]) == []
    (table,) = ladder_report.over_models(reads)
    heads = [column.heading for column in table.columns]
    assert heads == ["rung", "ece408-high, conv1", "ece408-low, conv1", "ratio"]
    lines = {
        column.shown(row): [c.shown(row) for c in table.columns]
        for row in table.rows
        for column in table.columns[:1]
    }
    assert lines["02 tiles"][3].startswith("3.00× longer (")
    text = report_form.rendered(ladder_report.TEMPLATE, ladder_report.context(reads, []))
    assert "## One rung over 2 models: batch 100" in text


def test_every_rung_that_a_published_time_names_is_there() -> None:
    course = ladder_report_tables.load()
    for published in course.times:
        assert published.seconds > 0
        if published.rung not in ("", "fastest"):
            assert registry.find(published.device, "conv", published.rung).number


def test_runs_and_ladders_are_reported_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = saved(tmp_path / "one", 1, 1.0)
    (tmp_path / "empty").mkdir()
    for other, why in (
        (tmp_path / "empty", "holds no run"),
        (received.run(tmp_path / "run"), "report the two apart"),
    ):
        assert main.main(["runs", "report", str(folder), str(other), "--out", str(tmp_path / "o.md")]) == 2
        assert why in capsys.readouterr().err
    ladder, _ = example()
    LADDER.create(tmp_path / "none", ladder)
    with pytest.raises(InputError, match="no measurement"):
        ladder_report.read(tmp_path / "none")
