"""The same planted faults as CUDA kernels: they compile anywhere, and on a GPU the judge names them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import judge
from bench.judge import Wrong
from bench.questions import ladder_plan
from bench.results.ladder_records import RungMeasurement
from bench.run import client
from bench.run.kinds.ladder import KIND as LADDER
from engine.cuda import rung as rung_cuda
from engine.machine import driver
from kernels import nvrtc, registry
from kernels.ops import Params
from kernels.ops.gemm import Gemm
from tests import sampling
from tests.bench.judge import on_the_host
from tests.bench.ladder.test_judge import CONV, NAMES, PLANTED
from tests.kernels.cuda_device import Device
from tests.standin.settings import NAME as SIMULATED

DEADLY = {"illegal": "crashed", "endless": "timed_out"}
RUNGS = [rung for rung in registry.rungs("cuda", "conv", [PLANTED]) if rung.user]


def test_the_planted_cuda_faults_are_those_of_the_cpu_and_two_deadly_ones() -> None:
    names = {rung.name for rung in RUNGS}
    assert set(DEADLY) <= names
    assert names - set(DEADLY) <= set(NAMES)
    assert len(names) >= 14


@pytest.mark.sampled(2)
@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_planted_faults_compile(rung: registry.Rung) -> None:
    """A compile error would be caught too, and would prove nothing."""
    assert nvrtc.compile_rung(rung, "sm_90").stat().st_size > 0


@pytest.mark.skipif(on_the_host.COMPILER is None, reason="no compiler for the host")
def test_what_a_kernel_remembers_from_shape_to_shape_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device keeps a module's memory from one session to the next."""
    hosted = on_the_host.Hosted(tmp_path)
    monkeypatch.setattr(rung_cuda, "import_cupy", lambda: hosted)
    monkeypatch.setattr(nvrtc, "compile_rung", hosted.compiled)
    monkeypatch.setattr(nvrtc, "resources", lambda *_: None)
    with pytest.raises(Wrong) as caught:
        judge.examine(registry.find("cuda", "conv", "stale", [PLANTED]), CONV)
    fault, words = NAMES["stale"]
    assert caught.value.finding.fault == fault
    assert words in caught.value.finding.reason


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("rung", [r for r in RUNGS if r.name not in DEADLY], ids=lambda rung: rung.name)
def test_a_planted_fault_is_caught_named_and_placed(rung: registry.Rung) -> None:
    fault, words = NAMES[rung.name]
    with pytest.raises(Wrong) as caught:
        judge.examine(rung, CONV)
    finding = caught.value.finding
    assert finding.fault == fault, finding
    assert re.search(re.escape(words), finding.reason) or fault == "nan"
    assert finding.when == "before timing"


@pytest.mark.sampled
@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "params",
    [CONV, *(Gemm(m, 50, 40, trans_b=True, bias=True, activation="relu") for m in (3, 20))],
    ids=lambda params: params.op,
)
def test_our_rungs_pass(params: Params) -> None:
    rungs, device = registry.rungs("cuda", params.op), driver.device()
    if device is not None and device.name == SIMULATED:  # there every kernel is the same NumPy
        rungs = sampling.some(f"ours {params}", rungs, -(-len(rungs) // 3))
    for rung in rungs:
        if rung.refusal(params, (9, 0)) is None and Device().compiles(rung, params):
            with judge.examine(rung, params, rung.precision) as trial:
                assert trial.time_runs(20) > 0
                assert trial.spot_check("during timing") is None
                assert trial.check("after timing") is None


@pytest.mark.gpu
@pytest.mark.real_gpu
@pytest.mark.usefixtures("gpu")
def test_a_deadly_rung_costs_itself_alone(tmp_path: Path) -> None:
    job = ladder_plan.job_of(
        CONV,
        "cuda",
        rungs=("naive", *DEADLY),
        kernel_dirs=(str(PLANTED),),
        budget_s=0.1,
        timeout_s=20.0,
        quick=True,
    )
    planned = ladder_plan.plan(job)
    folder = LADDER.create(tmp_path / "ladder", planned)
    client.run(job, planned.cases, folder)
    found: dict[str, RungMeasurement] = {m.case.rung: m for m in folder.measurements()}
    assert {name: found[name].disposition for name in DEADLY} == DEADLY
    assert found["naive"].disposition == "ok"
    assert found["reference"].disposition == "ok"
