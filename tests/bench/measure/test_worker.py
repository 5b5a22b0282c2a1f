"""The worker: what comes of each case, and that one contender's failure is its own."""

import functools
import itertools
import os
import signal
import subprocess
import sys
import threading
import types
from collections import Counter

import msgspec
import numpy as np
import onnx
import pytest

import engine.backends
from bench.measure import net_runner, reporter, timing
from bench.measure.images import predictions
from bench.measure.net_runner import NetRunner
from bench.measure.outcomes import Restart
from bench.results.messages import (
    CaseStarted,
    Done,
    Hello,
    Log,
    Measured,
    ModelLoaded,
    Progress,
    Provisional,
    Start,
)
from bench.results.records import Case, Job
from bench.run import client
from bench.run.kinds.comparison import KIND as COMPARISON
from engine.cuda import rung as rung_cuda
from kernels.errors import KernelError, OutOfMemoryError, UnsupportedError

pytestmark = pytest.mark.slow

JOB = Job(
    models=("lenet5-digits",),
    backends=("ort-cpu",),
    batches=(2,),
    images=(40,),
    budget_s=0.05,
    layers=False,
)


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    # The rules themselves are tested elsewhere; here a comparison should be over soon.
    quick = functools.partial(timing.Rules, warmup_s=0.01, rewarm_s=0.005, min_s=0.02)
    monkeypatch.setattr(net_runner, "Rules", quick)


def changed(**fields):
    return msgspec.structs.replace(JOB, **fields)


def go(job, folder="", stop_after=None):
    """Run a job here; (measurements by backend, all messages)."""
    messages = []

    def stopped():
        return stop_after is not None and sum(isinstance(m, Measured) for m in messages) >= stop_after

    NetRunner(Start(job=job, folder=str(folder)), messages.append, stopped).run()
    return {m.measurement.case.backend: m.measurement for m in messages if isinstance(m, Measured)}, messages


class Fake:
    """ort-cpu under another name, with faults: `fault(session, outputs)` changes what is fetched."""

    title = "fake"
    device = "cpu"
    reference = "ort-cpu"
    precisions = ("fp32",)
    apart = "ort"

    def __init__(self, name, fault=lambda session, outputs: outputs, prepare=None, time_runs=None):
        self.name = name
        self.real = engine.backends.get("ort-cpu")
        self.fault = fault
        self.on_prepare = prepare or (lambda: None)
        self.on_time = time_runs or (lambda: None)
        self.open = 0
        self.reason = None

    def unavailable(self):
        return self.reason

    def supports(self, graph, batch, precision):
        return None if precision == "fp32" else f"{self.name} does not offer {precision}"

    def prepare(self, graph, batch, precision="fp32", options=None):
        self.on_prepare()
        self.open += 1
        return FakeSession(self, self.real.prepare(graph, batch, precision, options))


class FakeSession:
    def __init__(self, backend, real):
        self._backend = backend
        self._real = real
        self.timed = 0

    def __getattr__(self, name):
        return getattr(self._real, name)

    def time_runs(self, count, cold=False):
        self.timed += 1
        self._backend.on_time()
        return self._real.time_runs(count, cold)

    def fetch(self):
        return self._backend.fault(self, self._real.fetch())

    def close(self):
        self._backend.open -= 1
        self._real.close()


@pytest.fixture
def fakes(monkeypatch):
    """Adds backends to the list; gives a function that does."""

    def add(*found):
        real = {"ort-cpu": engine.backends.get("ort-cpu")}
        monkeypatch.setattr(engine.backends, "_found", lambda: real | {f.name: f for f in found})
        return ("ort-cpu", *(f.name for f in found))

    return add


def test_a_comparison_from_hello_to_done(tmp_path):
    found, messages = go(changed(backends=("engine-cpu", "ort-cpu"), layers=True), tmp_path)
    assert isinstance(messages[0], Hello)
    assert [case.backend for case in messages[0].cases] == ["engine-cpu", "ort-cpu"]
    assert {info.name for info in messages[0].environment.backends} >= {"engine-cpu", "ort-cpu"}
    assert messages[-1] == Done()
    model = next(m.model for m in messages if isinstance(m, ModelLoaded))
    assert model.parameters == 61_706
    assert model.flops_per_image > 0
    for name, one in found.items():
        assert (one.disposition, one.reason, one.reference) == ("ok", "", "ort-cpu")
        assert len(one.samples_ns) >= 1
        assert one.first_run_ns > 0
        assert {"load", "h2d", "compute", "d2h", "sync"} <= set(one.phases)
        assert one.wall_ns > 0
        assert one.accuracy.images == 40
        assert one.accuracy.top1 > 0.9
        assert one.accuracy.top5 >= one.accuracy.top1
        assert one.accuracy.output.ok
        assert one.accuracy.checked == 2
        assert one.dataset_ns["wall"] >= one.dataset_ns["compute"] > 0
        assert one.telemetry.device == "cpu"
        assert one.memory
        assert any(layer.time_ns for layer in one.layers)
        kept = predictions.load(tmp_path / "predictions" / f"{one.case.key}.npz")
        assert (kept.predicted == kept.label).mean() == pytest.approx(one.accuracy.top1)
        with np.load(tmp_path / "layers" / f"{one.case.key}.npz") as file:
            assert len(file["time_ns"]) == len(one.layers)
            assert (file["flops"] > 0).any()
        line = msgspec.json.encode(Measured(measurement=one))
        assert msgspec.json.decode(line, type=COMPARISON.says)
        if name == "engine-cpu":
            assert all(layer.isolated.ok for layer in one.layers)
            assert (one.accuracy.agreement, one.accuracy.reference) == (1.0, "ort-cpu")
    started = [m for m in messages if isinstance(m, CaseStarted)]
    assert {m.stage for m in started} == {"prepare", "time", "check", "layers"}
    turns = [m.case.backend for m in started if m.stage == "time"]
    soon = [m for m in messages if isinstance(m, Provisional)]
    early = [m for m in soon if m.measurement is None]
    assert sorted(m.case.backend for m in early) == ["engine-cpu", "ort-cpu"], "once a case, to draw it early"
    timed = [m for m in soon if m.measurement is not None]
    assert sorted(m.case.backend for m in timed) == ["engine-cpu", "ort-cpu"], "and once with its figures"
    for m in timed:
        assert m.measurement.samples_ns == found[m.case.backend].samples_ns
        assert m.measurement.accuracy is None, "the images come behind the first figures"
        line = msgspec.json.encode(m)
        assert msgspec.json.decode(line, type=COMPARISON.says) == m
    assert all(m.median_ns > 0 for m in soon)
    assert messages.index(soon[-1]) < next(i for i, m in enumerate(messages) if isinstance(m, Measured))
    each = {name: len(one.rounds) for name, one in found.items()}
    assert Counter(turns) == each, "each turn says whose it is, so that a crash is put down to the right one"


def test_the_reference_is_asked_where_it_is_not_among_the_cases():
    found, _ = go(changed(backends=("engine-cpu",)))
    assert (found["engine-cpu"].accuracy.agreement, found["engine-cpu"].accuracy.reference) == (
        1.0,
        "ort-cpu",
    )


def test_wrong_answers_are_incorrect_and_not_timed(fakes):
    wrong = Fake("wrong", lambda session, outputs: {n: a[:, ::-1] for n, a in outputs.items()})
    found, messages = go(changed(backends=fakes(wrong)))
    assert found["wrong"].disposition == "incorrect"
    assert "before timing: relative L2 error" in found["wrong"].reason
    assert found["wrong"].samples_ns == ()
    assert found["wrong"].accuracy.output.rel_l2 > 0.1
    assert found["ort-cpu"].disposition == "ok"
    assert not any(
        m.case.backend == "wrong" and m.stage == "time" for m in messages if isinstance(m, CaseStarted)
    )
    assert wrong.open == 0


def test_nan_is_said_in_words(fakes):
    def with_nan(session, outputs):
        return {
            name: np.where(np.arange(array.shape[1]) == 3, np.nan, array) for name, array in outputs.items()
        }

    found, _ = go(changed(backends=fakes(Fake("nan", with_nan))))
    assert found["nan"].disposition == "incorrect"
    assert "NaN at index (0, 3)" in found["nan"].reason


def test_answers_that_go_wrong_while_timed_are_found(fakes):
    def later(session, outputs):
        return outputs if not session.timed else {n: a + 0.1 for n, a in outputs.items()}

    found, _ = go(changed(backends=fakes(Fake("later", later))))
    assert found["later"].disposition == "incorrect"
    assert "during timing" in found["later"].reason
    assert found["later"].samples_ns == ()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("batch", [1, 5, 32])
def test_an_answer_left_over_from_other_inputs_is_found(fakes, batch):
    first = []

    def stale(session, outputs):
        first.append(outputs)
        return first[0]

    # Right before timing, then never computed again: seen when other inputs are asked for.
    found, _ = go(changed(backends=fakes(Fake("stale", stale)), batches=(batch,)))
    assert found["stale"].disposition == "incorrect"
    assert "timing" in found["stale"].reason


def test_out_of_memory_beside_the_others_is_tried_again_alone(fakes):
    crowded = Fake("crowded")

    def prepare():
        if crowded.other_open():
            raise OutOfMemoryError("memory did not suffice for the arena")

    crowded.on_prepare = prepare
    opened = Fake("opened")
    crowded.other_open = lambda: opened.open > 0
    found, _ = go(changed(backends=fakes(opened, crowded)))
    assert found["crowded"].disposition == "ok"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OutOfMemoryError("12 GiB do not fit"), "12 GiB do not fit"),
        (MemoryError(), "the host's memory did not suffice"),
    ],
)
def test_out_of_memory_is_an_outcome(fakes, error, reason):
    def prepare():
        raise error

    found, messages = go(changed(backends=fakes(Fake("large", prepare=prepare))))
    assert found["large"].disposition == "out_of_memory"
    assert reason in found["large"].reason
    assert found["ort-cpu"].disposition == "ok"
    assert not any(isinstance(m, Log) for m in messages)


def test_an_unexpected_failure_is_told_with_its_traceback_in_the_log(fakes):
    def explode():
        raise ZeroDivisionError("rung 04 divided by 0")

    exploding = Fake("exploding", time_runs=explode)
    found, messages = go(changed(backends=fakes(exploding)))
    assert found["exploding"].disposition == "failed"
    assert found["exploding"].reason == "ZeroDivisionError: rung 04 divided by 0"
    log = next(m for m in messages if isinstance(m, Log))
    assert "Traceback" in log.text
    assert found["ort-cpu"].disposition == "ok"
    assert exploding.open == 0


def test_refusals_are_unsupported_with_the_reason(fakes):
    absent = Fake("absent")
    absent.reason = "there is no such device here"
    found, _ = go(changed(backends=fakes(absent)))
    assert (found["absent"].disposition, found["absent"].reason) == ("unsupported", absent.reason)
    found, _ = go(changed(backends=fakes(Fake("plain")), precisions=("fp16",)))
    assert found["plain"].disposition == "unsupported"
    assert "fp16" in found["plain"].reason


def test_what_is_not_installed_costs_its_own_cases_alone(fakes, monkeypatch):
    started = []
    monkeypatch.setattr(net_runner.pool, "start_early", lambda *kinds, alive: started.extend(kinds))
    fake = Fake("missing")
    fake.apart, fake.reason = "torch", "PyTorch is not installed: install it"
    found, _ = go(changed(backends=fakes(fake)))
    assert "torch" not in started, "its process would end with the error of the interpreter that is not there"
    assert found["ort-cpu"].disposition == "ok"
    assert (found["missing"].disposition, found["missing"].reason) == ("unsupported", fake.reason)


class Driver:
    """In place of the driver: says whether the context still works, and counts how often it was asked."""

    def __init__(self, monkeypatch, lost):
        self.asked = 0
        self.lost = lost
        monkeypatch.setattr(rung_cuda, "lost", self)

    def __call__(self):
        self.asked += 1
        return self.lost


def failing_device(fakes, error):
    """A job with a CUDA backend that fails with `error` while it is timed, and another one behind it."""

    def fail():
        raise error

    device, other = Fake("device", time_runs=fail), Fake("other")
    device.device = other.device = "cuda"
    return changed(backends=fakes(device, other))


@pytest.mark.parametrize(
    "error",
    [
        KernelError("CUDA failed on conv 04: cudaErrorIllegalAddress: an illegal memory access"),
        RuntimeError("cudaErrorAssert: device-side assert triggered"),
    ],
)
def test_a_device_whose_context_is_lost_is_left_to_a_new_process(fakes, monkeypatch, error):
    Driver(monkeypatch, lost=True)
    messages = []
    start = Start(job=failing_device(fakes, error))
    with pytest.raises(Restart, match="broke the device's context; the rest goes on in a new process"):
        NetRunner(start, messages.append, lambda: False).run()
    told = {m.measurement.case.backend: m.measurement for m in messages if isinstance(m, Measured)}
    assert told["device"].disposition == "crashed"
    assert str(error) in told["device"].reason
    assert "other" not in told, "nothing is measured on a device that is lost"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (KernelError("mine.cu:7: conv 90 mine does not compile for sm_90"), 1),
        (KernelError("CUDA failed on conv 90: cudaErrorInvalidConfiguration: invalid configuration"), 1),
        (ValueError("a bug of ours"), 1),
        (OutOfMemoryError("memory did not suffice for conv1"), 0),
        (UnsupportedError("conv1 takes no groups"), 0),
    ],
)
def test_a_failure_that_leaves_the_context_whole_costs_that_case_alone(fakes, monkeypatch, error, asked):
    driver = Driver(monkeypatch, lost=False)
    found, messages = go(failing_device(fakes, error))
    assert found["device"].disposition in ("failed", "out_of_memory", "unsupported")
    assert (found["other"].disposition, found["ort-cpu"].disposition) == ("ok", "ok")
    assert messages[-1] == Done()
    assert driver.asked == asked


def test_a_driver_is_not_asked_of_the_cpu(fakes, monkeypatch):
    driver = Driver(monkeypatch, lost=True)

    def fail():
        raise KernelError("kernel in Python failed")

    found, _ = go(changed(backends=fakes(Fake("plain", time_runs=fail))))
    assert found["plain"].disposition == "failed"
    assert driver.asked == 0


def test_stopping_cancels_what_is_left(fakes):
    _, messages = go(changed(batches=(1, 2)), stop_after=1)
    measured = [m.measurement for m in messages if isinstance(m, Measured)]
    assert [m.disposition for m in measured] == ["ok", "cancelled"]
    assert messages[-1] == Done(reason="cancelled")


def test_a_job_that_means_nothing_ends_with_the_sentence():
    _, messages = go(changed(models=("lenet9",)))
    assert [type(m) for m in messages] == [Done]
    assert "'lenet9' is not known" in messages[0].reason


def small_model(path, weight):
    """x (N, 1, 28, 28) → Flatten → MatMul → y (N, 3)."""
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Flatten", ["x"], ["flat"], name="flatten"),
            onnx.helper.make_node("MatMul", ["flat", "w"], ["y"], name="fc"),
        ],
        path.stem,
        [info("x", onnx.TensorProto.FLOAT, ["N", 1, 28, 28])],
        [info("y", onnx.TensorProto.FLOAT, ["N", 3])],
        [onnx.numpy_helper.from_array(weight.astype(np.float32), "w")],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return str(path)


def test_a_model_by_path_on_random_images_has_agreement_and_no_accuracy(tmp_path):
    path = small_model(tmp_path / "own.onnx", np.random.default_rng(0).normal(size=(784, 3)))
    found, _ = go(changed(models=(path,), backends=("engine-cpu", "ort-cpu"), images=()))
    ours = found["engine-cpu"].accuracy
    assert (ours.labelled, ours.top1, ours.agreement) == (False, None, 1.0)


def test_nan_among_the_weights_is_said_in_words(tmp_path):
    weight = np.zeros((784, 3))
    weight[5, 1] = np.nan
    path = small_model(tmp_path / "broken.onnx", weight)
    found, _ = go(changed(models=(path,)))
    assert found["ort-cpu"].disposition == "failed"
    assert "weight w of model broken holds NaN" in found["ort-cpu"].reason


def test_progress_is_not_told_for_every_image(monkeypatch):
    """By a clock on which little time passes, however long it takes."""
    clock = itertools.count(step=reporter.QUIET_S / 100)
    monkeypatch.setattr(reporter, "time", types.SimpleNamespace(monotonic=lambda: next(clock)))
    _, messages = go(changed(images=(300,), batches=(1,)))
    assert sum(isinstance(m, Progress) for m in messages) < 30


# --------------------------------------------------------------------------------------- as a process


def start_worker(**options):
    return subprocess.Popen(
        client.worker_command(COMPARISON.worker),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=client.worker_environment(),
        **options,
    )


LONG = changed(batches=(1, 2, 4, 8), budget_s=20.0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", ["close", signal.SIGTERM, signal.SIGINT])
def test_a_worker_ends_in_order_when_asked(how):
    worker = start_worker()
    killer = threading.Timer(60, worker.kill)
    killer.start()
    worker.stdin.write(msgspec.json.encode(Start(job=LONG)) + b"\n")
    worker.stdin.flush()
    messages = []
    for line in worker.stdout:
        messages.append(msgspec.json.decode(line, type=COMPARISON.says))
        if isinstance(messages[-1], CaseStarted) and messages[-1].stage == "time":
            break
    if how == "close":
        worker.stdin.close()
    else:
        worker.send_signal(how)
    messages += [msgspec.json.decode(line, type=COMPARISON.says) for line in worker.stdout]
    assert worker.wait() == 0
    killer.cancel()
    assert worker.stderr.read() == b""
    for pipe in (worker.stdin, worker.stdout, worker.stderr):
        pipe.close()
    assert messages[-1] == Done(reason="cancelled")
    assert {m.measurement.disposition for m in messages if isinstance(m, Measured)} == {"cancelled"}


def test_what_is_no_job_is_said_and_not_thrown():
    worker = start_worker()
    out, err = worker.communicate(b"{nonsense\n", timeout=60)
    assert worker.returncode == 2
    assert "no job it can read" in msgspec.json.decode(out, type=COMPARISON.says).reason
    assert err == b""


def test_whatever_is_printed_stays_out_of_the_protocol():
    code = (
        "import os, subprocess, sys\n"
        "from bench.measure.parent_channel import ParentChannel\n"
        "from bench.results.messages import Done\n"
        "channel = ParentChannel()\n"
        "print('from Python', flush=True)\n"
        "os.write(1, b'from a library\\n')\n"
        "subprocess.run(['echo', 'from a child'])\n"
        "channel.say(Done())\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=client.worker_environment(), timeout=60
    )
    assert told.stdout == msgspec.json.encode(Done()) + b"\n"
    assert told.stderr.split(b"\n")[:3] == [b"from Python", b"from a library", b"from a child"]


def test_a_case_has_a_name_in_words():
    case = Case(model="net", backend="ort-cpu", precision="fp32", batch=4, images=10)
    assert case.words == "net on ort-cpu, fp32, batch 4, 10 images"
    assert os.sep not in case.key
