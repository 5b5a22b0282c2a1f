"""The whole program on a machine with a GPU, as far as that needs none: all four backends beside each other.

What is asked is what only their meeting shows: that rows of one are rows of the other, that cases of both
end, that what is kept of one run is found by the next.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from bench.results.event_files import events_in
from bench.run import defaults
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.kinds.profile import KIND as PROFILE
from tests.bench.ladder.test_judge import PLANTED
from tests.standin.conftest import ROOT, Machine, choices, told

BACKENDS = ("engine-cpu", "engine-cuda", "ort-cpu", "ort-cuda")
# The default comparison, but for its large model, its large batches and the time of its samples.
DEFAULT = """
import sys
import msgspec
from pathlib import Path
from bench.commands.compare import Output, run_jobs
from bench.run.defaults import JOB
small = msgspec.structs.replace(
    JOB, models=JOB.models[:1], batches=JOB.batches[:1], own_batches={}, own_images={}, images=(32,),
    budget_s=0.02,
)
assert small.backends == ()
sys.exit(run_jobs([(small, Path("run"))], Output("json", ())))
"""
QUICK = ("--images", "32", "--budget", "0.02", "--charts", "none")


def test_the_default_comparison_ends_well_on_all_four_backends_and_keeps_its_kernels_times(
    machine: Machine, cache: Path
) -> None:
    machine.python("-c", DEFAULT)
    folder = COMPARISON.open(machine.folder / "run")
    found = list(folder.measurements())
    assert folder.missing() == ()
    assert [m.reason for m in found if m.disposition != "ok"] == []
    four = {m.case.backend: m for m in found}
    assert set(four) == set(BACKENDS)
    rows = {tuple(layer.nodes for layer in m.layers if layer.output) for m in four.values()}
    assert len(rows) == 1, "what one backend does in a step is a row of all"
    accuracies = {m.accuracy.top1 for m in four.values() if m.accuracy is not None}
    assert len(accuracies) == 1
    assert four["engine-cuda"].facts["gpu"] == "Stand-in GPU"
    assert all(layer.isolated is None or layer.isolated.ok for m in four.values() for layer in m.layers)
    chosen = {layer.nodes: layer.rung for layer in four["engine-cuda"].layers if layer.rung}
    assert {layer.chosen for layer in four["engine-cuda"].layers if layer.rung} == {"timed"}
    assert "Traceback" not in folder.log.read_text()
    # What was timed is kept: the next run times nothing anew, and has the same kernels.
    kept = choices(cache)
    assert "rungs" in {part for _, part in kept}
    batch = str(defaults.JOB.batches[0])
    words = ("--backend", "engine-cuda,ort-cuda", "--batch", batch, "--layers", "--instances", "1")
    again, _ = machine.main("compare", *words, *QUICK, "--format", "json", "--out", "again")
    assert choices(cache) == kept
    layers = [layer for layer in json.loads(again)["layers"] if layer["rung"]]
    assert {tuple(layer["nodes"].split()): layer["rung"] for layer in layers} == chosen


def test_a_comparison_that_was_killed_is_completed(machine: Machine) -> None:
    main = [str(Path(sys.modules["main"].__file__ or ""))]
    words = (
        "compare",
        "--batch",
        "1,2",
        *QUICK,
        "--no-layer-pass",
        "--no-tune",
        "--instances",
        "1",
        "--out",
        "run",
    )
    results = machine.folder / "run" / "results.jsonl"
    with machine.start(*main, *words) as process:
        while not (results.exists() and results.read_bytes().count(b"\n") >= 2):
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
        process.communicate()
    before = len(COMPARISON.open(machine.folder / "run").missing())
    assert before
    machine.main("compare", "--resume", "run", "--charts", "none")
    folder = COMPARISON.open(machine.folder / "run")
    found = list(folder.measurements())
    assert told(found) == ["ok"] * 8
    assert {m.case.backend for m in found} == set(BACKENDS)


def test_a_ladder_is_climbed_alone_and_in_the_model(machine: Machine) -> None:
    machine.main(
        "ladder", "pool", "--model", "lenet5-digits", "--batch", "2", "--budget", "0.02", "--whole-model",
        "--rung", "naive", "--rung", "compiled_window", "--instances", "2", "--charts", "none",
        "--out", "ladder",
    )  # fmt: skip
    found = list(LADDER.open(machine.folder / "ladder").measurements())
    assert {m.case.rung for m in found} == {"naive", "compiled_window", "reference"}
    assert [m.reason for m in found if m.disposition != "ok"] == []
    assert len({m.case for m in found}) == 6, "alone, and in the model"


def test_a_texture_is_read_alone_and_wherever_a_model_keeps_the_images(machine: Machine) -> None:
    """A device binds textures at multiples of 512 bytes alone."""
    machine.main(
        "ladder", "conv", "--model", "lenet5-digits", "--node", "conv1", "--batch", "1", "--budget", "0.02",
        "--rung", "texture", "--whole-model", "--instances", "1", "--charts", "none", "--out", "ladder",
    )  # fmt: skip
    found = list(LADDER.open(machine.folder / "ladder").measurements())
    assert [m.reason for m in found if m.disposition != "ok"] == []
    assert len({m.case for m in found if m.case.rung == "texture"}) == 2


def test_a_whole_net_is_climbed_from_launches_to_one_kernel(machine: Machine) -> None:
    machine.main(
        "ladder", "net", "--model", "lenet5-digits", "--batch", "2", "--budget", "0.02", "--charts", "none",
        "--instances", "1", "--out", "ladder",
    )  # fmt: skip
    found = {m.case.rung: m for m in LADDER.open(machine.folder / "ladder").measurements()}
    assert [m.reason for m in found.values() if m.disposition != "ok"] == []
    steps = 6
    assert found["launch_a_step"].facts["cuda_graph"] == "no: not asked for"
    assert "one_kernel" not in found["cuda_graph"].facts
    assert found["one_kernel"].facts["one_kernel"] == f"{steps} of {steps} steps"
    assert all(m.error is not None and m.error.ok and m.checks for m in found.values())


def test_a_kernel_that_faults_costs_itself_alone(machine: Machine) -> None:
    machine.main(
        "ladder", "conv", "--shape", "2,2,9,8,4,3", "--rung", "naive", "--rung", "zeros_only", "--rung",
        "illegal", "--kernels", str(PLANTED), "--budget", "0.02", "--instances", "1", "--charts", "none",
        "--out", "ladder",
        status=1,
    )  # fmt: skip
    found = {m.case.rung: m for m in LADDER.open(machine.folder / "ladder").measurements()}
    assert found["naive"].disposition == found["reference"].disposition == "ok"
    assert found["zeros_only"].disposition == "incorrect"
    assert found["illegal"].disposition == "crashed"
    assert "illegal memory access" in found["illegal"].reason


def test_a_pass_is_profiled(machine: Machine) -> None:
    machine.main(
        "profile", "lenet5-digits", "--backend", "engine-cuda,ort-cuda", "--runs", "2", "--budget", "0.02",
        "--charts", "none", "--out", "profile",
    )  # fmt: skip
    folder = PROFILE.open(machine.folder / "profile")
    found = {profile.case.backend: profile for profile in folder.measurements()}
    assert told(list(found.values())) == ["ok", "ok"]
    events = events_in(folder.path, found["engine-cuda"])
    kernels = [a for a in events.activities if a.kind == "kernel" and a.run is not None]
    assert {a.run for a in kernels} == {0, 1}
    assert all(a.nodes for a in kernels)
    assert {a.name for a in events.activities} >= {"conv_pool", "softmax", "memcpy HtoD", "memcpy DtoH"}
    # All its steps are one kernel here, which tells them apart.
    assert {kernel.name for kernel in kernels} == {"net"}
    for kernel in kernels:
        inside = [i for i in events.intervals if i.kind == "inside" and i.correlation == kernel.correlation]
        assert {node for i in inside for node in i.nodes} == set(kernel.nodes)
        assert all(kernel.start_ns <= i.start_ns < i.end_ns <= kernel.end_ns for i in inside)


def test_backends_are_held_against_themselves(machine: Machine) -> None:
    out, _ = machine.main(
        "selfcheck", "--times", "4", "--budget", "0.02", "--batch", "2", "--instances", "1", status=None
    )
    assert "comparisons of a backend with itself" in out
    for backend in BACKENDS:
        assert backend in out


def test_doctor_sees_the_device(machine: Machine) -> None:
    out, _ = machine.main("doctor")
    for backend in BACKENDS:
        assert f"✓  {backend}" in out


AHEAD = """
from bench.measure.loaded_model import LoadedModel
from bench.measure.tuned import tuning
from bench.results.records import Case, Job
from engine import backends
from engine.machine import host
from kernels.cache import cache_dir

host.physical_cores = lambda: host.SPARE_CORES
engine, batches = backends.get("engine-cuda"), (1, 2)
job = Job(models=("lenet5-digits",), backends=("engine-cuda",), batches=batches)
loaded = LoadedModel("lenet5-digits", job, batches, lambda text, share: None, {"engine-cuda"})
how = tuning.options(engine, loaded, job)
nets = lambda: {path.name for path in (cache_dir() / "cubin").iterdir() if "one_kernel" in path.name}
for batch in batches:
    case = Case(model="lenet5-digits", backend="engine-cuda", precision="fp32", batch=batch)
    tuning.tune(case, loaded, job, lambda: None, lambda text, share: None)
    before = nets() if batch == 1 else before
    session = engine.prepare(loaded.graph, batch, "fp32", how)
    assert session.facts["one_kernel"].endswith("of 6 steps"), session.facts
    session.run()
    assert {time.clock for time in session.op_times(0.001)} >= {"stamps"}
    session.close()
assert before and nets() == before, (len(before), nets() - before)
"""


@pytest.mark.slow
def test_a_net_in_one_kernel_is_compiled_ahead_at_every_batch_size_and_with_stamps(tmp_path: Path) -> None:
    """One size after the other, each waited a second or two for its kernels; with a cache of its own."""
    Machine(tmp_path, tmp_path / "cache").python(
        "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}){AHEAD}"
    )
