"""Kernels of the corpus for CUDA: they compile anywhere, and on a GPU none is let through.

Each run takes a few; `make attack` takes all.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench import judge
from bench.judge.trial import Trial
from bench.measure.answers import samples
from engine.cuda import rung as rung_cuda
from engine.machine import driver
from kernels import nvrtc, registry
from kernels.errors import UnavailableError
from kernels.languages.known import languages
from kernels.ops import OPS, Params, sized
from kernels.ops.conv import Conv
from kernels.ops.lrn import Lrn
from kernels.ops.pool import Pool
from kernels.ops.softmax import Softmax
from tests import keeping, sampling
from tests.bench.judge import attack, corpus, on_the_host
from tests.bench.judge.corpus import Cheat
from tests.standin.settings import NAME as SIMULATED

pytestmark = pytest.mark.slow

PLANTED = corpus.planted("cuda")
HOSTED = [cheat for cheat in PLANTED if cheat.hosted]
IMAGES = 8  # of a batch on the host, where each takes its time
LARGE, COUNTS, FEW = 1e7, (1, 4, 30, 70, 150), (1, 4)  # trains; of what takes long there
FEWEST_HONEST = 60


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> on_the_host.Hosted:
    return on_the_host.Hosted(tmp_path_factory.mktemp("hosted"))


@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
@pytest.mark.sampled(32)
@pytest.mark.parametrize("rung", [cheat.rung for cheat in PLANTED], ids=lambda rung: rung.name)
def test_a_cheat_compiles(rung: registry.Rung, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compile error would be caught too, and would prove nothing."""
    if rung.language and (reason := languages()[rung.language].unavailable()):
        pytest.skip(reason)
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(keeping.cubins()))
    assert nvrtc.compile_rung(rung, "sm_90").stat().st_size > 0


@pytest.mark.skipif(on_the_host.COMPILER is None, reason="no compiler for the host")
@pytest.mark.sampled(32)
@pytest.mark.parametrize("cheat", HOSTED, ids=lambda cheat: cheat.name)
def test_a_cheat_that_runs_on_the_host_is_caught(
    cheat: Cheat, hosted: on_the_host.Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most pass all checks before timing, and are caught by what they leave while they are timed."""
    monkeypatch.setattr(rung_cuda, "import_cupy", lambda: hosted)
    monkeypatch.setattr(nvrtc, "compile_rung", hosted.compiled)
    monkeypatch.setattr(nvrtc, "resources", lambda *_: None)
    params = cheat.params
    if isinstance(params, Conv):
        params = replace(params, n=min(params.n, IMAGES))
    said: list[str] = []
    with contextlib.suppress(judge.Wrong), judge.examine(cheat.rung, params, quick=True) as trial:
        said = _accusations(trial, COUNTS if params.flops < LARGE else FEW) or ["nothing"]
    assert said != ["nothing"]


@pytest.mark.gpu
@pytest.mark.real_gpu
@pytest.mark.usefixtures("gpu", "as_long_as_the_program")
@pytest.mark.sampled
@pytest.mark.timeout(1800)
def test_none_of_some_is_let_through(tmp_path: Path) -> None:
    count = len(PLANTED) if sampling.whole() else 16
    some = attack.sample(PLANTED, count, sampling.number("cheats"))
    outcomes = list(attack.attacked(some, tmp_path, together=attack.TOGETHER["cuda"]))
    assert {one.name: one.through for one in outcomes if one.through} == {}
    assert {one.name: one.disposition for one in outcomes if one.unexpected} == {}


@pytest.mark.timeout(300)  # it compiles for two minutes where two cores do much else
@pytest.mark.sampled
@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_honest_rungs_on_drawn_shapes_are_not_accused() -> None:
    drawn = random.Random(7)
    shapes_of = {cheat.rung.op: cheat.params for cheat in HOSTED if cheat.family != "precision"}
    bases: tuple[Params, ...] = (
        *(shapes_of[op] for op in ("conv", "gemm", "unary")),
        sized(Pool("max", 4, 5, 14, 17, 2, 3, 0, 0, 2, 2)),
        Lrn(4, 16, 35, 5, 1e-4, 0.75, 1.0),
        Softmax(70, 33, 1),
    )
    device = driver.device()
    # Simulated, every kernel is the same NumPy, and a pass takes a thousand times as long: a third of them.
    simulated = device is not None and device.name == SIMULATED
    each, counts = (1, (1, 4, 20)) if simulated else (2, (1, 20, 70))
    looked_at = 0
    accused: list[str] = []
    for params in bases:
        assert params.op in OPS
        rungs = registry.rungs("cuda", params.op)
        if simulated:
            rungs = sampling.some(f"honest {params.op}", rungs, -(-len(rungs) // 3))
        for rung in rungs:
            shapes = [shape.params for shape in samples.small_shapes(rung, params)]
            runs = not rung.yardstick
            fit = [shape for shape in shapes if runs and rung.refusal(shape, _capability()) is None]
            for shape in drawn.sample(fit, min(each, len(fit))):
                try:
                    made = Trial(rung, shape, rung.precision, seed=looked_at)
                except UnavailableError:  # a compiler that does not work here
                    continue
                with made as trial:
                    accused += _accusations(trial, counts)
                    if failure := trial.check_new("after timing"):
                        accused.append(f"{rung.label} on {shape}: {failure.finding.reason}")
                    if told := trial.renewal.told:
                        print(f"{rung.label} on {shape}: {told}")
                looked_at += 1
    print(f"{looked_at} honest rungs looked at")
    assert accused == []
    assert looked_at >= FEWEST_HONEST // (3 if simulated else 1)


def _accusations(trial: Trial, counts: Sequence[int]) -> list[str]:
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
