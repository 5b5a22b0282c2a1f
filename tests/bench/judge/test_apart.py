"""Kernels in processes apart, as users meet them: in a ladder, in a comparison, and when they end them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import psutil
import pytest

from bench import judge
from bench.measure import cases
from bench.measure.outcomes import outcome
from bench.questions import ladder_plan
from bench.results.messages import CaseStarted
from bench.results.records import Case, Job, Run
from bench.run import client
from bench.run.client import run
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.supervisor import RESTART_LIMIT, RESTART_STATUS, LaunchWorker, Result, Supervisor
from engine import backends
from engine.backend import Options, Witnessed
from engine.cpu.rung import CpuRungSession
from engine.graph import importer
from engine.isolated import empty, pool
from engine.isolated.client import rest
from engine.rung_devices import prepare
from kernels import confine, registry
from kernels.errors import CrashedError, KernelError, TooShortError
from kernels.ops.softmax import Softmax
from kernels.ops.unary import Unary
from models import catalogue
from tests.bench.judge import corpus, written
from tests.bench.judge.written import WORK_S

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="children are stopped and end with us on Linux")
LAZY = """# op = "softmax"
# rung = 90
# name = "lazy"
# idea = "Planted: four in five passes are not worked out, once it was looked at."
import numpy as np


def bind(p, inputs, output, workspace):
    x, y = (array.reshape(p.outer, p.axis) for array in (inputs[0], output))
    calls = [0]

    def run():
        calls[0] += 1
        if calls[0] < 20 or calls[0] % 5 == 0:
            e = np.exp(x - x.max(axis=1, keepdims=True))
            y[...] = e / e.sum(axis=1, keepdims=True)

    return run
"""
STUBBORN = """
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
with open({told!r}, "a") as file:
    file.write(f"{{os.getpid()}}\\n")
while True:
    time.sleep(0.01)
"""


@pytest.mark.sampled(4, "long")
def test_a_ladder_calls_each_what_it_is(tmp_path: Path) -> None:
    wanted = {
        "sleeps": ("ok",),
        "tenth_call_on": ("incorrect",),
        "every_second": ("incorrect",),
        "mends_the_poison": ("incorrect",),
        "answers_early_and_once": ("incorrect", "crashed", "timed_out"),  # it keeps back its answer
        "exits_75_when_warm": ("crashed",),
        "busy_children": ("failed",),
        "reference": ("ok",),
    }
    names = tuple(name for name in wanted if name != "reference")
    job = ladder_plan.job_of(
        Unary("tanh", 4096), "cpu", budget_s=0.05, threads=1, quick=True, timeout_s=15.0,
        rungs=names, kernel_dirs=(str(corpus.FOLDER / "cpu"),),
    )  # fmt: skip
    planned = ladder_plan.plan(job)
    folder = LADDER.create(tmp_path / "ladder", planned)
    ended = client.run(job, planned.cases, folder)
    assert not ended.reason
    found = {m.case.key: m for m in folder.measurements()}
    others = {name: m.disposition for name, m in found.items() if m.disposition not in wanted[name]}
    assert others == {}, [found[name].reason for name in others]
    assert set(found) == set(wanted)
    honest = found["sleeps"]
    assert min(honest.samples_ns) > 0.8e9 * WORK_S
    assert "taken off" in honest.facts["trigger"]
    assert "taken off" in found["reference"].facts["trigger"]
    assert "exit code 75" in found["exits_75_when_warm"].reason


@pytest.mark.sampled(4, "long")
def test_a_comparison_finds_a_kernel_that_skips_its_work(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "90_lazy.py").write_text(LAZY)
    graph = importer.load(catalogue.path("lenet5-digits"))
    node = next(node.name for node in graph.nodes if node.op_type == "Softmax")
    job = Job(
        models=("lenet5-digits",), backends=("engine-cpu",), batches=(64,), images=(64,), budget_s=0.1,
        layers=False, rungs={node: "lazy"}, kernel_dirs=(str(tmp_path / "own"),),
    )  # fmt: skip
    planned = cases.plan(job)
    folder = COMPARISON.create(tmp_path / "run", Run(job=job, cases=planned, command="", created_at=""))
    (found,) = run(job, planned, folder).measurements
    assert found.disposition == "incorrect", found.reason
    assert "during timing" in found.reason


def test_timed_passes_are_kept_and_can_be_rebuilt() -> None:
    graph = importer.load(catalogue.path("lenet5-digits"))
    for name in ("engine-cpu", "ort-cpu"):
        session = backends.get(name).prepare(graph, 2, options=Options(threads=1))
        info = graph.inputs[0]
        bound = {info.name: np.random.default_rng(1).random((2, *info.shape[1:]), np.float32)}
        session.bind(bound)
        assert isinstance(session, Witnessed)
        assert session.stirring is None
        assert session.time_runs(100) > 0
        stirring, kept = session.stirring, session.witnesses()
        assert stirring is not None
        assert session.stirring_ns > 0
        assert len({witness.number for witness in kept}) == len(kept) > 1
        for witness in kept:
            inputs = stirring.inputs_of(witness.number)
            assert (inputs[info.name] != bound[info.name]).any()
            session.bind(inputs)
            session.run()
            answers = session.fetch()
            for output, (places, values) in witness.outputs.items():
                np.testing.assert_allclose(values, answers[output].reshape(-1)[places], rtol=1e-4, atol=1e-7)
        assert session.witnesses() == ()
        session.close()


def test_a_pass_shorter_than_its_trigger_is_not_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that was busier when starting no kernel was measured than it is now."""
    rung = registry.find("cpu", "unary", 1)
    session = prepare(rung, Unary("tanh", 64), [np.zeros(64, np.float32)], 1)
    assert isinstance(session, CpuRungSession)
    session.time_runs(100)
    monkeypatch.setattr(empty, "waiting_ns", lambda *_: empty.Off(1e12, 0.0))
    assert session.warm_runs(100) > 0
    with pytest.raises(TooShortError, match="too short beside what starting it takes") as raised:
        session.time_runs(100)
    assert outcome(raised.value)[0] == "invalid"
    session.close()


def test_what_a_ladder_judges_by_never_lies_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path))
    rung = registry.rungs("cpu", "softmax")[-1]
    with judge.examine(rung, Softmax(5, 40, 1), threads=1, quick=True) as trial:
        trial.time_runs(3)
        assert trial.spot_check("during timing", thorough=True) is None
        assert trial.check("after timing") is None
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@LINUX
def test_a_process_runs_only_while_it_is_asked() -> None:
    rung = corpus.find("busy_threads").rung
    session = prepare(rung, Unary("tanh", 64), [np.zeros(64, np.float32)], 1)
    session.run()
    held = psutil.Process(session._child.pid)  # type: ignore[attr-defined]
    until = time.monotonic() + 60
    while held.status() != psutil.STATUS_STOPPED and time.monotonic() < until:
        time.sleep(0.01)
    before = held.cpu_times()
    time.sleep(0.1)
    assert held.cpu_times() == before
    assert session._child is not pool.child("rung", "ours")  # type: ignore[attr-defined]
    session.close()


@LINUX
def test_onnx_runtimes_process_stays_awake_until_another_is_asked() -> None:
    """Stopped and woken before each train its threads would often meet on one core."""
    graph = importer.load(catalogue.path("lenet5-digits"))
    reference = backends.get("ort-cpu").prepare(graph, 1)
    ours = prepare(registry.find("cpu", "unary", 1), Unary("tanh", 4096), [np.zeros(4096, np.float32)], 1)
    held = psutil.Process(reference._child.pid)  # type: ignore[attr-defined]
    reference.bind({info.name: np.zeros((1, *info.shape[1:]), np.float32) for info in graph.inputs})

    def stops() -> bool:
        until = time.monotonic() + 60
        while (stopped := held.status() == psutil.STATUS_STOPPED) is False and time.monotonic() < until:
            time.sleep(0.01)
        return stopped

    try:
        assert reference.time_runs(3) > 0
        assert held.status() != psutil.STATUS_STOPPED
        assert ours.time_runs(3) > 0
        assert stops()
        assert reference.time_runs(3) > 0
        assert held.status() != psutil.STATUS_STOPPED
        rest()
        assert stops()
    finally:
        reference.close()
        ours.close()


def test_the_clock_of_a_process_with_a_users_kernel_is_not_asked(tmp_path: Path) -> None:
    """What says how long it took, where nobody asks, is understood no more."""
    body = """
        server = sys.modules["__main__"]  # the module that serves, forked or started
        server._timed = lambda held, ahead, count, each: [1]
        server.TRAIN = type("T", (), {"unpack": lambda self, body: (1, 0, 1, 1, True, False)})()
        work(x, y)
    """
    written.write(tmp_path, "tells_a_time", body)
    rung = registry.find("cpu", "unary", "tells_a_time", [tmp_path])
    session = prepare(rung, Unary("tanh", 64), [np.zeros(64, np.float32)], 1)
    session.run()
    with pytest.raises(CrashedError, match="said what was not asked"):
        session.time_runs(1)
    session.close()


def test_a_process_holds_no_more_than_it_is_given(tmp_path: Path) -> None:
    # It tells in what it raises: it may hardly write anywhere.
    body = (
        "raise RuntimeError(repr([os.readlink(f'/proc/self/fd/{n}') "
        "for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')]))"
    )
    if sys.platform != "linux":
        pytest.skip("descriptors are listed on Linux")
    held = os.open(tmp_path / "secret", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(held, True)
    try:
        written.write(tmp_path / "own", "looks", body)
        rung = registry.find("cpu", "unary", "looks", [tmp_path / "own"])
        session = prepare(rung, Unary("tanh", 64), [np.zeros(64, np.float32)], 1)
        with pytest.raises(KernelError) as told:
            session.run()
        session.close()
    finally:
        os.close(held)
    assert "secret" not in str(told.value)
    assert str(told.value).count("socket:") == 1


def test_a_process_that_is_gone_is_told_and_another_takes_its_place() -> None:
    rung = corpus.find("kills_itself").rung
    for _ in range(2):
        session = prepare(rung, Unary("tanh", 64), [np.zeros(64, np.float32)], 1)
        with pytest.raises(CrashedError, match="kills_itself was killed by SIGKILL"):
            session.run()
        with pytest.raises(KernelError):
            session.run()
        session.close()


def test_a_worker_is_not_started_anew_for_ever() -> None:
    case = Case(model="lenet5-digits", backend="engine-cpu", precision="fp32", batch=1)
    machine = Supervisor(COMPARISON, Job(models=("lenet5-digits",), backends=("engine-cpu",)), (case,))
    started = CaseStarted(case=case, stage="prepare")
    line = msgspec.json.encode(started) + b"\n"
    actions = machine.start(0.0)
    launches = 0
    while not machine.finished:
        assert launches < 2 * RESTART_LIMIT
        launches += sum(isinstance(action, LaunchWorker) for action in actions)
        machine.feed(line, 0.0)
        actions = machine.on_exit(RESTART_STATUS, "", 0.0)
    (settled,) = [action.measurement for action in actions if isinstance(action, Result)]
    assert settled.disposition == "crashed"
    assert f"{RESTART_LIMIT} times" in settled.reason


@pytest.mark.sampled(4, "long")
@LINUX
def test_two_interrupts_end_the_program_and_all_that_a_kernel_started(tmp_path: Path) -> None:
    told = tmp_path / "told"
    written.write(tmp_path / "own", "stubborn", STUBBORN.format(told=str(told)), op="softmax")
    command = [sys.executable, str(ROOT / "main.py"), "ladder", "softmax", "--device", "cpu"]
    command = [
        *command,
        "--kernels",
        str(tmp_path / "own"),
        "--rung",
        "stubborn",
        "--out",
        str(tmp_path / "out"),
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ | {confine.OPEN: "1"},
    )  # fmt: skip
    try:
        pids = _told(told, process)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.wait(60)
    finally:
        process.kill()
        process.communicate()
    until = time.monotonic() + 60
    while any(map(_runs, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [pid for pid in pids if _runs(pid)]


def _told(file: Path, process: subprocess.Popen[bytes]) -> list[int]:
    """The kernel's processes, once both have said who they are."""
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        pids = [int(line) for line in file.read_text().split()] if file.exists() else []
        if len(pids) >= 2:
            return pids
        time.sleep(0.05)
    raise AssertionError(f"the kernel never ran: {process.stderr.read() if process.stderr else b''!r}")


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
