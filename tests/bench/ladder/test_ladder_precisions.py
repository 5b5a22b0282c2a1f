"""Ladders whose rungs compute in several precisions: whom each is held against, and how that is shown."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest

from bench.questions import ladder_plan
from bench.results.ladder_records import REFERENCE, Ladder, RungMeasurement
from bench.results.ladder_rows import RungRow, rows
from bench.results.summaries import BESIDE_SAMPLE
from bench.run.kinds.ladder import KIND as LADDER
from bench.views.charts import ladder_charts
from bench.views.drawing import draw
from bench.views.drawing.looks import Look
from bench.views.tables import ladder_tables
from bench.views.tables.table import records
from engine import backends, probe
from kernels.errors import InputError
from tests.bench.ladder.test_ladder import HEADER, example, measured, small_job
from tests.bench.views.test_draw import assert_texts_apart


def mixed() -> tuple[Ladder, list[RungMeasurement]]:
    """Two rungs in fp32, two in tf32, one each of 3xTF32 and fp16, a library's, and their references."""
    found = [
        measured("naive", 1, 8e6),
        measured("tiles", 2, 2e6),
        measured("cublas", 3, 1.6e6, side=True, yardstick=True),
        measured("mma", 4, 0.8e6, precision="tf32"),
        measured("mma_stages", 5, 0.4e6, precision="tf32"),
        measured("mma_thrice", 6, 1e6, precision="fp32-tc"),
        measured("mma_half", 7, 0.5e6, precision="fp16"),
        measured(REFERENCE, 0, 1e6),
        measured(REFERENCE, 0, 0.6e6, precision="tf32"),
    ]
    ladder, _ = example()
    assert ladder.reached is not None
    limits = msgspec.structs.replace(ladder.reached, matrix_flops_per_s={"tf32": 6e12}, matrix_by="mma.sync")
    cases = tuple(m.case for m in found)
    return msgspec.structs.replace(ladder, cases=cases, limits={limits.device: limits}), found


def by_name(found: list[RungRow]) -> dict[str, RungRow]:
    return {row.name: row for row in found if not row.case.is_reference}


def test_each_rung_is_held_against_its_own_precisions_reference_and_neighbour() -> None:
    ladder, found = mixed()
    made = rows(ladder, found)
    named = by_name(made)
    ratios = {name: row.speedup.value for name, row in named.items() if row.speedup}
    assert ratios == pytest.approx(
        {"naive": 1 / 8, "tiles": 0.5, "cublas": 1 / 1.6, "mma": 0.75, "mma_stages": 1.5, "mma_thrice": 1.0},
        rel=0.01,
    )  # fp16 has no reference here
    over = {name: (row.below, row.beside) for name, row in named.items()}
    assert over == {
        "naive": ("", False),
        "tiles": ("naive", False),
        "cublas": ("tiles", True),
        "mma": ("tiles", True),
        "mma_stages": ("mma", False),
        "mma_thrice": ("tiles", True),
        "mma_half": ("tiles", True),
    }
    # A GFLOP: 1 ms in fp32, a sixth of that on the matrix units, and three products of theirs in 3xTF32.
    limits = {name: row.limit for name, row in named.items()}
    assert limits["tiles"] == pytest.approx(0.5, rel=0.01)
    assert limits["mma_stages"] == pytest.approx(1 / 6 / 0.4, rel=0.01)
    assert limits["mma_thrice"] == pytest.approx(0.5, rel=0.01)
    assert limits["mma_half"] is None
    assert "reference-tf32" in {row.case.key for row in made if row.case.is_reference and row.time}
    assert len({m.case.key for m in found}) == len(found)


def test_precisions_are_told_apart_in_tables_and_charts() -> None:
    from rich.console import Console

    ladder, found = mixed()
    made = rows(ladder, found)
    screen = Console(width=150, record=True, file=io.StringIO())
    screen.print(ladder_tables.terminal(ladder, made))
    text = screen.export_text()
    assert "03 cublas (library)" in text
    assert "over 02" in text, "a gain names what it is over"
    assert "a share above 100 %" not in text
    assert [r["precision"] for r in records(ladder_tables.table(made))].count("tf32") == 3
    speed, near = ladder_charts.charts(ladder, made)
    (panel,) = speed.panels
    assert [level.precision for level in panel.baselines] == ["fp32", "tf32"]
    assert [c.key for c in speed.categories] == ["fp32", "fp32-tc", "tf32", "fp16", "library"]
    assert "in tf32 05 mma_stages is the fastest, 1.50× faster than" in speed.finding
    lanes = near.panels[0].y
    assert lanes.labels == ("fp32", "fp32-tc", "TF32"), "each has its own limit; fp16's is not known here"
    (edge,) = (series for series in near.panels[0].series if len(series.points) > 1)
    assert {point.x for point in edge.points} == {1.0}
    shares = {row.case.label: row.limit for row in made if not row.case.is_reference}
    drawn = {s.label: s.points[0].x for s in near.panels[0].series if s.label in shares}
    assert drawn == {label: share for label, share in shares.items() if share}
    for chart in (speed, near):
        assert draw.render(chart, ("svg",))["svg"].startswith(b"<?xml")


@pytest.mark.parametrize("width", ["page", "one-column"])
def test_the_limits_of_a_long_ladder_can_be_read(width: str) -> None:
    ladder, found = mixed()
    more = [measured(f"rung_of_a_name_{i}", 10 + i, 1e6 * 1.03**i) for i in range(16)]
    near = ladder_charts.limits(ladder, rows(ladder, [*more, *found]))
    assert near is not None
    assert_texts_apart(near, Look(width))


@pytest.mark.parametrize("width", ["page", "one-column"])
def test_of_forty_rungs_in_four_lanes_the_names_stand_apart(width: str) -> None:
    folder = LADDER.open(BESIDE_SAMPLE[0])
    near = ladder_charts.limits(folder.header, rows(folder.header, folder.measurements()))
    assert near is not None
    assert_texts_apart(near, Look(width))


OTHER = HEADER + '# precision = "{precision}"\n'


def test_the_ladder_has_a_reference_a_precision_that_a_rung_computes_in(tmp_path: Path) -> None:
    for number, name, precision in ((91, "half", "fp16"), (92, "thrice", "fp32-tc"), (93, "coarse", "tf32")):
        text = OTHER.format(number=number, name=name, precision=precision)
        (tmp_path / f"{number}_{name}.py").write_text(text + "def bind(*_): ...\n")

    def told(**fields: object) -> list[str]:
        planned = ladder_plan.plan(small_job(kernel_dirs=(str(tmp_path),), **fields))
        return [case.key for case in planned.cases]

    everything = told()
    assert everything[-6:] == ["half", "thrice", "coarse", "reference", "reference-tf32", "reference-fp16"]
    only = told(precision="tf32")
    assert only[-3:] == ["coarse", "reference", "reference-tf32"]
    assert "half" not in only
    assert told(rungs=("im2col", "thrice")) == ["im2col", "thrice", "reference"]
    with pytest.raises(InputError, match="no rung of conv on cpu computes in tf32; they compute in fp32"):
        ladder_plan.plan(small_job(precision="tf32"))


@pytest.mark.gpu
def test_a_gpus_matrix_units_do_more_than_its_float32_cores() -> None:
    if reason := backends.get("engine-cuda").unavailable():
        pytest.skip(reason)
    reached = probe.cuda()
    if reached.matrix_missing:
        pytest.skip(reached.matrix_missing)
    assert reached.flops_per_s < reached.matrix_flops_per_s["tf32"] < reached.matrix_flops_per_s["fp16"]
