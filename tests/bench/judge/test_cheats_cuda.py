"""Kernels that cheat while they are timed: they compile anywhere, and on a GPU none comes out right."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from bench import judge
from bench.judge import suite
from bench.judge.trial import Trial
from bench.ladder import plan as ladder_plan
from bench.ladder.kind import KIND as LADDER
from bench.run import client
from engine import backends
from engine.cuda import rung as rung_cuda
from kernels import nvrtc, registry
from kernels.ops import OPS, Params, sized
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.lrn import Lrn
from kernels.ops.pool import Pool
from kernels.ops.softmax import Softmax
from kernels.ops.unary import Unary
from tests import keeping
from tests.bench.judge import on_the_host
from tests.bench.ladder.test_judge_cuda import DEADLY

pytestmark = pytest.mark.slow

CHEATS = Path(__file__).parent / "cheats_cuda"
CONV = sized(Conv(8, 6, 14, 17, 8, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1, group=2, bias=True, activation="relu"))
TIMED: tuple[Params, ...] = (
    CONV,
    Gemm(64, 50, 40, trans_b=True, bias=True, activation="relu"),
    Unary("relu", 6000),
)
# Of few images every block of threads holds poison, and who skips those without it skips nothing: on a GPU
# that one is timed on so many. Of them another, which leaves out one image, would save nothing.
IMAGES, OF_MANY = 256, ("blocks_without_poison",)
PLANTED = {p.op: [rung for rung in registry.rungs("cuda", p.op, [CHEATS]) if rung.user] for p in TIMED}
FEWEST_HONEST = 60
# What is wrong whether it is timed or not.
CAUGHT_BEFORE = ("half_precision", "beside_the_output")


@pytest.fixture
def gpu() -> None:
    if reason := backends.get("engine-cuda").unavailable():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> on_the_host.Hosted:
    return on_the_host.Hosted(tmp_path_factory.mktemp("hosted"))


def test_there_are_many() -> None:
    assert sum(map(len, PLANTED.values())) == len(list(CHEATS.glob("*.cu"))) >= 25
    assert not DEADLY.keys() & {rung.name for rungs in PLANTED.values() for rung in rungs}


@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
@pytest.mark.parametrize("rung", [r for rungs in PLANTED.values() for r in rungs], ids=lambda rung: rung.name)
def test_a_cheat_compiles(rung: registry.Rung, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compile error would be caught too, and would prove nothing."""
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(keeping.cubins()))
    assert nvrtc.compile_rung(rung, "sm_90").stat().st_size > 0


@pytest.mark.skipif(on_the_host.COMPILER is None, reason="no compiler for the host")
@pytest.mark.parametrize(
    ("rung", "params"),
    [(rung, params) for params in TIMED for rung in PLANTED[params.op]],
    ids=lambda it: getattr(it, "name", ""),
)
def test_a_cheat_that_runs_on_the_host_is_caught(
    rung: registry.Rung, params: Params, hosted: on_the_host.Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most pass all checks before timing, and are caught by what they leave while they are timed."""
    monkeypatch.setattr(rung_cuda, "import_cupy", lambda: hosted)
    monkeypatch.setattr(nvrtc, "compile_rung", hosted.compiled)
    monkeypatch.setattr(nvrtc, "resources", lambda *_: None)
    if rung.name in CAUGHT_BEFORE:
        with pytest.raises(judge.Wrong):
            judge.examine(rung, params, quick=True)
        return
    with judge.examine(rung, params, quick=True) as trial:
        assert _accusations(trial, (1, 4, 30, 70, 150)) != []


@pytest.mark.gpu
@pytest.mark.real_gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "params", [*TIMED, replace(CONV, n=IMAGES)], ids=["conv", "gemm", "unary", "conv of many"]
)
def test_no_cheat_comes_out_right(params: Params, tmp_path: Path) -> None:
    names = [rung.name for rung in PLANTED[params.op]]
    many = isinstance(params, Conv) and params.n == IMAGES
    names = [name for name in names if (name in OF_MANY) == many]
    honest = registry.rungs("cuda", params.op)[0].name
    job = ladder_plan.job_of(
        params, "cuda", rungs=(honest, *names), kernel_dirs=(str(CHEATS),), budget_s=0.05, timeout_s=20.0,
        quick=True,
    )  # fmt: skip
    planned = ladder_plan.plan(job)
    folder = LADDER.create(tmp_path / "ladder", planned)
    client.run(job, planned.cases, folder)
    found = {measured.case.rung: measured for measured in folder.measurements()}
    table = Table("cheat", "disposition", "reason")
    for name in names:
        table.add_row(name, found[name].disposition, found[name].reason)
    Console(width=160).print(table)
    assert found[honest].disposition == "ok", found[honest].reason
    assert [name for name in names if found[name].disposition == "ok"] == []


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_honest_rungs_on_drawn_shapes_are_not_accused() -> None:
    drawn = random.Random(7)
    bases: tuple[Params, ...] = (
        *TIMED,
        sized(Pool("max", 4, 5, 14, 17, 2, 3, 0, 0, 2, 2)),
        Lrn(4, 16, 35, 5, 1e-4, 0.75, 1.0),
        Softmax(70, 33, 1),
    )
    looked_at = 0
    accused: list[str] = []
    for params in bases:
        assert params.op in OPS
        for rung in registry.rungs("cuda", params.op):
            shapes = [shape.params for shape in suite.small_shapes(rung, params)]
            runs = not rung.yardstick
            fit = [shape for shape in shapes if runs and rung.refusal(shape, _capability()) is None]
            for shape in drawn.sample(fit, min(2, len(fit))):
                with Trial(rung, shape, rung.precision, seed=looked_at) as trial:
                    accused += _accusations(trial)
                    if failure := trial.check_new("after timing"):
                        accused.append(f"{rung.label} on {shape}: {failure.finding.reason}")
                    if told := trial.renewal.told:
                        print(f"{rung.label} on {shape}: {told}")
                looked_at += 1
    print(f"{looked_at} honest rungs looked at")
    assert accused == []
    assert looked_at >= FEWEST_HONEST


def _accusations(trial: Trial, counts: Sequence[int] = (1, 20, 70)) -> list[str]:
    failure = None
    for count in counts:
        trial.time_runs(count)
        failure = failure or trial.spot_check("during timing")
        if failure is not None:
            break
    failure = failure or trial.check("after timing")
    if failure is None:
        return []
    return [f"{trial.rung.label} on {failure.finding.params}: {failure.finding.reason}"]


def _capability() -> tuple[int, int]:
    from engine.cuda.runtime import capability_of, import_cupy

    return capability_of(import_cupy())
