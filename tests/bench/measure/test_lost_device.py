"""On a GPU: a kernel that breaks the device's context costs a process, one that does not compile none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.measure import cases
from bench.results.messages import Log
from bench.results.records import Job, Measurement, Run
from bench.run import client
from bench.run.kinds.comparison import KIND as COMPARISON
from engine import backends
from tests.bench.ladder.test_judge import PLANTED

pytestmark = [pytest.mark.gpu, pytest.mark.real_gpu]
BACKENDS = ("engine-cuda", "ort-cuda")
BATCHES = (1, 2)
DOES_NOT_COMPILE = """/*
op = "conv"
rung = 90
name = "broken"
idea = "It does not compile."
launch = "one_thread_an_output"
*/
extern "C" __global__ void conv(const float* x, const float* w, const float* b, float* y) { y[0] = nonsense; }
"""


@pytest.fixture(autouse=True)
def gpu() -> None:
    for name in BACKENDS:
        if reason := backends.get(name).unavailable():
            pytest.skip(reason)


def compared(rung: str, kernels: Path, folder: Path) -> tuple[dict[str, list[Measurement]], int]:
    """What came of each backend with that rung at conv1, and how often a new process went on."""
    job = Job(
        models=("lenet5-digits",),
        backends=BACKENDS,
        batches=BATCHES,
        images=(20,),
        rungs={"conv1": rung},
        kernel_dirs=(str(kernels),),
        budget_s=0.1,
        layers=False,
        tune="none",
    )
    told: list[Any] = []
    planned = cases.plan(job)
    run = COMPARISON.create(folder, Run(job=job, cases=planned))
    client.run(job, planned, run, told.append)
    found: dict[str, list[Measurement]] = {name: [] for name in BACKENDS}
    for measurement in run.measurements():
        found[measurement.case.backend].append(measurement)
    return found, sum(isinstance(event, Log) and "in a new process" in event.text for event in told)


def test_a_kernel_that_does_not_compile_costs_no_process(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "90_broken.cu").write_text(DOES_NOT_COMPILE)
    found, restarts = compared("broken", own, tmp_path / "run")
    assert [m.disposition for m in found["engine-cuda"]] == ["failed"] * len(BATCHES)
    assert all("90_broken.cu:8" in m.reason for m in found["engine-cuda"])
    assert [m.disposition for m in found["ort-cuda"]] == ["ok"] * len(BATCHES)
    assert restarts == 0


def test_an_illegal_access_costs_its_process_and_the_rest_goes_on(tmp_path: Path) -> None:
    found, restarts = compared("illegal", PLANTED, tmp_path / "run")
    assert [m.disposition for m in found["engine-cuda"]] == ["crashed"] * len(BATCHES)
    assert [m.disposition for m in found["ort-cuda"]] == ["ok"] * len(BATCHES)
    assert restarts == len(BATCHES)
