"""Real workers killed in the midst of it: nothing measured is lost, and a resume completes the run."""

import errno
import os
import signal
import subprocess
import sys
import time

import msgspec
import psutil
import pytest

from bench.measure import cases
from bench.results import results_file
from bench.results.messages import CaseStarted
from bench.results.records import Job, Measurement, Run
from bench.run import client
from bench.run.kinds.comparison import KIND as COMPARISON
from kernels.errors import InputError
from tests import preloaded

pytestmark = pytest.mark.slow

JOB = Job(
    models=("lenet5-digits",),
    backends=("ort-cpu",),
    batches=(1, 2, 4),
    images=(20,),
    budget_s=0.05,
    layers=False,
    threads=1,
)
# The same in a process of its own, saying each event on a line.
DRIVER = (
    preloaded.MARK
    + """
import sys
from pathlib import Path
from bench.run import client
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.results.messages import CaseStarted
from bench.results.records import Measurement
folder = COMPARISON.resume(Path(sys.argv[1]))
def show(event):
    if isinstance(event, Measurement):
        print("measured", event.disposition, flush=True)
    elif isinstance(event, CaseStarted):
        print("started", event.stage, flush=True)
outcome = client.run(folder.header.job, folder.missing(), folder, show)
print("cancelled" if outcome.cancelled else "complete", flush=True)
"""
)


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def planned(tmp_path):
    COMPARISON.create(tmp_path / "run", Run(job=JOB, cases=cases.plan(JOB))).close()
    return tmp_path / "run"


def drive(planned):
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(planned)],
        stdout=subprocess.PIPE,
        env=client.worker_environment(),
        text=True,
    )


def read_until(process, word):
    seen = []
    for line in process.stdout:
        seen.append(line.strip())
        if word in line:
            return seen
    pytest.fail(f"the driver ended without {word!r}: {seen}")


def complete(planned):
    """Resume here; gives the measurements the run then holds."""
    folder = COMPARISON.resume(planned, JOB)
    outcome = client.run(JOB, folder.missing(), folder)
    assert not outcome.cancelled
    assert outcome.reason == ""
    assert folder.missing() == ()
    return folder.measurements()


def test_a_worker_killed_in_a_case_costs_that_case_alone(planned):
    folder = COMPARISON.resume(planned, JOB)
    events, workers = [], []

    def show(event):
        events.append(event)
        measured = sum(isinstance(e, Measurement) for e in events)
        if measured == 1 and isinstance(event, CaseStarted) and event.stage == "time":
            os.kill(workers[-1], signal.SIGKILL)

    client.run(JOB, folder.missing(), folder, show, on_worker=lambda pid, _: workers.append(pid))
    found = {m.case.batch: m for m in COMPARISON.open(planned).measurements()}
    assert {batch: m.disposition for batch, m in found.items()} == {1: "ok", 2: "crashed", 4: "ok"}
    assert "SIGKILL" in found[2].reason
    assert found[1].samples_ns
    assert COMPARISON.open(planned).header.models[0].parameters == 61_706


def test_everything_killed_at_once_loses_nothing_measured(planned):
    driver = drive(planned)
    read_until(driver, "measured ok")
    started = psutil.Process(driver.pid).children()
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    driver.stdout.close()
    _, alive = psutil.wait_procs(started, timeout=30)
    assert not alive, "a worker whose parent is gone ends by itself"
    before = COMPARISON.open(planned).measurements()
    assert [m.disposition for m in before][:1] == ["ok"]
    after = complete(planned)
    assert after[: len(before)] == before
    assert {m.disposition for m in after} == {"ok"}


@pytest.mark.sampled(4, "long")
def test_ctrl_c_ends_in_order_and_keeps_what_was_measured(planned):
    driver = drive(planned)
    read_until(driver, "measured ok")
    read_until(driver, "started time")
    started = time.monotonic()
    driver.send_signal(signal.SIGINT)
    seen = read_until(driver, "cancelled")
    seen += [line.strip() for line in driver.stdout]
    assert driver.wait(timeout=30) == 0
    driver.stdout.close()
    assert time.monotonic() - started < 12, "asked, not killed"
    assert seen[-1] == "cancelled"
    before = COMPARISON.open(planned).measurements()
    assert {m.disposition for m in before} == {"ok"}, "cancelled cases are not written"
    assert {m.disposition for m in complete(planned)} == {"ok"}


@pytest.mark.sampled(4, "long")
def test_a_resumed_run_measures_only_what_is_missing(planned):
    folder = COMPARISON.resume(planned, JOB)
    client.run(JOB, folder.header.cases[:2], folder)
    lines = (planned / "results.jsonl").read_bytes()
    complete(planned)
    assert (planned / "results.jsonl").read_bytes().startswith(lines)
    assert (planned / "results.jsonl").read_bytes().count(b"\n") == len(folder.header.cases)
    other = msgspec.structs.replace(JOB, budget_s=1.0)
    with pytest.raises(InputError, match=r"started with budget_s = 0\.05, not 1\.0"):
        COMPARISON.resume(planned, other)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is Linux's")
def test_a_full_disk_is_one_sentence_and_leaves_no_worker(planned, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    folder = COMPARISON.resume(planned, JOB)
    workers = []
    monkeypatch.setattr(results_file.os, "fsync", full)
    with pytest.raises(InputError, match="no space left on device"):
        client.run(JOB, folder.header.cases, folder, on_worker=lambda pid, _: workers.append(pid))
    assert workers
    assert not any(psutil.pid_exists(worker) for worker in workers)
