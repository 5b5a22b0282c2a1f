"""The profiler on a GPU, against what is known without it: launches, events' times, times after it."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import main
from bench.results import api_calls as profile_api
from bench.results import stats
from bench.results.event_files import events_in
from bench.run import client
from bench.run.kinds.profile import KIND as PROFILE
from bench.views.sentences import profile_remarks
from engine import backends, probe
from engine.backend import Options
from engine.cuda import cupti
from engine.cuda.runtime import import_cupy
from engine.graph import importer
from kernels import nvrtc
from models import catalogue

pytestmark = [pytest.mark.gpu, pytest.mark.real_gpu]
ENGINE = "engine-cuda"
KERNELS, LEAST_NS = 100, 100_000
WAYS = {"HtoD": "fill", "DtoH": "empty"}
REPLAYS = 10  # of a graph without the recorder, of which the fastest counts


@pytest.fixture(autouse=True)
def gpu() -> None:
    reason = backends.get(ENGINE).unavailable() or cupti.unavailable()
    if reason:
        pytest.skip(reason)


@pytest.mark.parametrize("cuda_graph", [False, True], ids=["one by one", "graph"])
def test_there_are_as_many_records_as_launches(cuda_graph: bool) -> None:
    graph = importer.load(catalogue.path("lenet5-digits"))
    session = backends.get(ENGINE).prepare(graph, 16, "fp32", Options(cuda_graph=cuda_graph))
    session.synchronize()
    order = session.launch_order()  # type: ignore[attr-defined]
    recorder = cupti.Recorder()
    recorder.start()
    for _ in range(50):
        session.run()
    session.synchronize()
    told = recorder.stop()
    session.close()
    kernels = [a for a in told.activities if a["kind"] == "kernel"]
    assert len(kernels) == 50 * sum(1 for _, name in order if name != "memcpy")
    launches = {c["correlation"] for c in told.calls if profile_api.purpose(c["name"]) == "launch"}
    recorded = {a["correlation"] for a in kernels}
    assert len(recorded) == 50 * (1 if cuda_graph else sum(1 for _, name in order if name != "memcpy"))
    assert recorded <= launches
    assert told.dropped in (0, None)


def test_the_sum_of_kernels_is_what_events_say() -> None:
    cupy = import_cupy()
    device = cupy.cuda.Device()
    blocks = 8 * int(device.attributes["MultiProcessorCount"])
    module = cupy.RawModule(
        path=str(nvrtc.compile_rung(probe.probe("fma"), f"sm_{device.compute_capability}"))
    )
    kernel = module.get_function("probe")
    buffer = cupy.cuda.alloc(blocks * 256 * 4)
    buffer.memset(0, blocks * 256 * 4)
    pointer = np.uint64(buffer.ptr)
    stream = cupy.cuda.Stream(non_blocking=True)
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()

    def launch(rounds: int) -> None:
        kernel((blocks,), (256,), (pointer, pointer, np.int64(rounds)))

    with stream:
        launch(1)
        rounds, took_ns = 64, 0.0
        while took_ns < 1.5 * LEAST_NS:
            rounds *= 2
            for event, work in ((start, rounds), (stop, 0)):
                event.record(stream)
                if work:
                    launch(work)
            stop.synchronize()
            took_ns = cupy.cuda.get_elapsed_time(start, stop) * 1e6
        stream.begin_capture()
        for _ in range(KERNELS):
            launch(rounds)
        graph = stream.end_capture()

    def events_ns() -> float:
        start.record(stream)
        graph.launch(stream)
        stop.record(stream)
        stop.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, stop)) * 1e6

    events_ns()  # the first replay uploads the graph
    before = min(events_ns() for _ in range(REPLAYS))
    recorder = cupti.Recorder()
    recorder.start()
    recorded = events_ns()
    told = recorder.stop()
    after = min(events_ns() for _ in range(REPLAYS))
    times = [a["end_ns"] - a["start_ns"] for a in told.activities if a["kind"] == "kernel"]
    # While it is recorded, gaps between a graph's kernels are wider: the profiler's doing, not the kernels'.
    print(
        f"{len(times)} kernels, sum {sum(times) / 1e6:.4f} ms; events without the recorder "
        f"{before / 1e6:.4f} ms before and {after / 1e6:.4f} ms after, with it {recorded / 1e6:.4f} ms"
    )
    assert len(times) == KERNELS
    assert min(times) >= LEAST_NS
    assert sum(times) == pytest.approx(min(before, after), rel=0.03)
    assert recorded >= 0.97 * sum(times)
    assert {a["name"] for a in told.activities if a["kind"] == "kernel"} == {"probe"}


# A process that takes samples when it is told to; with "profiled", after it has recorded a pass.
SAMPLER = """
import json, sys
from engine import backends
from engine.cuda import cupti
from engine.graph import importer
from engine.backend import Options
from models import catalogue
graph = importer.load(catalogue.path("lenet5-digits"))
session = backends.get("engine-cuda").prepare(graph, 1024, "fp32", Options())
if sys.argv[1] == "profiled":
    recorder = cupti.Recorder()
    recorder.start()
    session.run()
    session.synchronize()
    recorder.stop()
for _ in sys.stdin:
    session.time_runs(50)
    print(json.dumps([session.time_runs(20) / 20 for _ in range(30)]), flush=True)
"""


def test_times_are_the_same_after_a_recording_and_without_one() -> None:
    workers = {
        name: subprocess.Popen(
            [sys.executable, "-c", SAMPLER, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=client.worker_environment(),
        )
        for name in ("plain", "profiled")
    }
    samples: dict[str, list[float]] = {name: [] for name in workers}
    rounds: dict[str, list[int]] = {name: [] for name in workers}
    try:
        for turn in range(12):
            for name in list(workers)[:: 1 if turn % 2 else -1]:
                worker = workers[name]
                assert worker.stdin is not None
                assert worker.stdout is not None
                worker.stdin.write("\n")
                worker.stdin.flush()
                taken = json.loads(worker.stdout.readline())
                if turn:  # the first warms up
                    rounds[name].append(len(samples[name]))
                    samples[name] += taken
    finally:
        for worker in workers.values():
            worker.kill()
            worker.communicate()
    ratio = stats.ratio_interval(samples["profiled"], samples["plain"], rounds["profiled"], rounds["plain"])
    print(f"profiled / plain: {ratio.value:.4f} ({ratio.low:.4f} to {ratio.high:.4f})")
    assert stats.verdict(ratio) == stats.Verdict.SAME


def test_both_backends_are_profiled_from_the_command_line(tmp_path) -> None:
    names = ["engine-cuda", "ort-cuda"]
    if reason := backends.get("ort-cuda").unavailable():
        pytest.skip(reason)
    arguments = ["profile", "lenet5-digits", "--backend", ",".join(names), "--batch", "16", "--budget", "0.5"]
    assert main.main([*arguments, "--out", str(tmp_path / "p"), "--charts", "none", "--format", "md"]) == 0
    folder = PROFILE.open(tmp_path / "p")
    for case in folder.measurements():
        found = case.breakdown()
        assert found is not None
        assert sum(share.time_ns for share in found.parts) == found.wall_ns
        assert case.attributed is not None
        assert case.attributed > 0.95
        assert case.dropped in (0, None)
        assert not any("no record" in note for note in case.notes)
        told = any("explained by nothing" in words for words in profile_remarks.waits(case))
        assert told == (found.part("rest") > profile_remarks.REST * found.wall)
        events = events_in(folder.path, case)
        staged = [i for i in events.intervals if i.kind == "staging" and i.run == 0]
        copied = {
            way: sum(a.nbytes for a in events.activities if a.copy == way and a.run == 0) for way in WAYS
        }
        for way, word in WAYS.items():  # every byte that was staged went over the bus
            nbytes = sum(i.nbytes for i in staged if i.name.startswith(word))
            print(f"{case.case.words}: {word} {nbytes} B, {way} {copied[way]} B")
            assert 0 < nbytes <= copied[way]
        assert found.part("staging") > 0
        assert (found.part("ort") > 0) == (case.case.backend == "ort-cuda")


def test_calls_tell_what_memory_they_got_and_what_they_waited_for() -> None:
    runtime = import_cupy().cuda.runtime
    stream = import_cupy().cuda.Stream(non_blocking=True)
    runtime.free(0)
    recorder = cupti.Recorder()
    recorder.start()
    pointer = runtime.malloc(3 << 20)
    runtime.memsetAsync(pointer, 0, 3 << 20, stream.ptr)
    stream.synchronize()
    runtime.free(pointer)
    told = recorder.stop()
    got = [c["name"] for c in told.calls if (c.get("nbytes"), c.get("memory")) == (3 << 20, "device")]
    waits = [c["name"] for c in told.calls if c.get("waited_for", "").startswith("stream")]
    print(f"got or released: {got}; waited for a stream: {waits}")
    assert any(profile_api.purpose(name) == "alloc" for name in got)
    assert any(profile_api.purpose(name) == "sync" for name in waits)


@pytest.mark.parametrize("backend", [ENGINE, "ort-cuda"])
def test_the_hardware_counts_every_kernel_or_it_is_said_why_not(backend: str, tmp_path) -> None:
    if reason := backends.get(backend).unavailable():
        pytest.skip(reason)
    arguments = ["profile", "lenet5-digits", "--backend", backend, "--batch", "64", "--budget", "0.2"]
    options = ["--counters", "--charts", "none", "--format", "md", "--table", "counters"]
    assert main.main([*arguments, *options, "--out", str(tmp_path / "p")]) == 0
    folder = PROFILE.open(tmp_path / "p")
    (case,) = folder.measurements()
    kernels = [a for a in events_in(folder.path, case).activities if a.kind == "kernel" and a.run == 0]
    counted = [a.counters for a in kernels if a.counters is not None]
    if not counted:
        # Not read at all; or, on a GPU that others use, other kernels were the fastest while they were.
        (reason,) = [note for note in case.notes if "counters are not read" in note or "no counters" in note]
        pytest.skip(reason)
    print(case.facts["counters"])
    assert len(counted) >= (1.0 if backend == ENGINE else 0.9) * len(kernels)
    for counters in counted:
        assert counters.dram_nbytes is not None
        assert 0 < (counters.warps_share or 0) <= 1
    images_nbytes = 64 * 28 * 28 * 4
    assert max(counters.dram_read_nbytes or 0 for counters in counted) > images_nbytes / 2
