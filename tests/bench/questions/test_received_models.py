"""A model's file that does harm to whoever reads it costs a sentence, or its own cases: never the process
that talks to the user, and not the other models' cases."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import main
from bench.measure.ladder import describe
from bench.questions import model_questions
from bench.questions.ladder_questions import LadderQuestion
from bench.results.messages import CaseStarted
from bench.results.records import Case, Job, Run
from bench.run import client, confined
from bench.run.kinds.comparison import KIND as COMPARISON
from models import names
from tests import preloaded
from tests.engine.graph.test_bad_models import RELU, twice, with_functions
from tests.engine.harness import make_model

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="limits are the system's")]

GIB = 1 << 30
# Without the check that knows this file: ONNX's own goes on for ever, and lets no Python run meanwhile.
UNCHECKED = preloaded.MARK + (
    "import runpy, engine.graph.importer as importer; importer.check_size = lambda *_: None; "
    "runpy.run_module({module!r}, run_name='__main__')"
)


def unchecked(module: str) -> list[str]:
    return [sys.executable, "-c", UNCHECKED.format(module=module)]


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """2 KB of functions within functions, read by a process that is not warned of them."""
    model = with_functions([RELU, *(twice(i) for i in range(30))], 30)
    path = tmp_path / "endless.onnx"
    path.write_bytes(model.SerializeToString())
    monkeypatch.setattr(model_questions, "reader_command", lambda: unchecked("bench.questions.model_reader"))
    monkeypatch.setenv(confined.SECONDS_VARIABLE, "0.3")
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def vast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(confined.MEMORY_VARIABLE, "300")
    monkeypatch.chdir(tmp_path)
    return make_vast(tmp_path)


def make_vast(folder: Path) -> Path:
    """A model of 150 bytes, and a file of weights beside it of which nothing is on the disk."""
    node = helper.make_node("Add", ["x", "w"], ["y"], "add")
    model = make_model([node], {"x": ("N", 4)}, ["y"], {"w": np.ones((1, 4), np.float32)})
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.dims[:] = [3 * GIB // 16, 4]
    for key, value in (("location", "weights.bin"), ("offset", "0"), ("length", str(3 * GIB))):
        weight.external_data.add(key=key, value=value)
    with (folder / "weights.bin").open("wb") as file:
        file.truncate(3 * GIB)
    path = folder / "vast.onnx"
    path.write_bytes(model.SerializeToString())
    return path


COMMANDS = {
    "compare": ["compare", "{}"],
    "models show": ["models", "show", "{}"],
    "profile": ["profile", "{}"],
    "ladder": ["ladder", "gemm", "--model", "{}", "--node", "0", "--device", "cpu"],
    "selfcheck": ["selfcheck", "{}", "--times", "1"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_takes_for_ever_costs_a_sentence(
    command: str, endless: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main([text.format(endless) for text in COMMANDS[command]]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"model file {str(endless)!r} took more than 0.3 s to read and was given up" in told
    assert confined.SECONDS_VARIABLE in told
    assert not (endless.parent / "runs").exists()


@pytest.mark.parametrize("command", ["compare", "models show", "ladder"])
def test_a_file_that_takes_all_memory_costs_a_sentence(
    command: str, vast: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main([text.format(vast) for text in COMMANDS[command]]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"model file {str(vast)!r} takes more than 300 MiB of memory to read" in told
    assert confined.MEMORY_VARIABLE in told


@pytest.mark.sampled(4, "long")
def test_a_check_of_a_file_against_itself_is_made_by_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "small.onnx"
    node = helper.make_node("Relu", ["x"], ["y"], "relu")
    path.write_bytes(make_model([node], {"x": ("N", 4)}, ["y"]).SerializeToString())

    def loaded(*_: object) -> None:
        raise AssertionError("the command's own process loads it")

    monkeypatch.setattr("engine.graph.importer.load", loaded)
    monkeypatch.setattr("engine.graph.importer.from_proto", loaded)
    quick = ["--times", "1", "--batch", "1", "--backend", "engine-cpu", "--budget", "0.05"]
    monkeypatch.chdir(tmp_path)
    assert main.main(["selfcheck", str(path), *quick, "--instances", "1", "--out", "kept.json"]) in (0, 1)
    told = capfd.readouterr()
    assert "Of 1 comparisons of a backend with itself" in told.out
    assert "Traceback" not in told.err
    assert Path("kept.json").exists()


@pytest.mark.sampled(4, "long")
def test_ctrl_c_ends_the_wait_at_once(endless: Path) -> None:
    text = (
        "import sys, bench.questions.model_questions as questions, main; from bench.words import streams; "
        "streams.quiet_interrupts(); "
        f"questions.reader_command = lambda: {unchecked('bench.questions.model_reader')!r}; "
        f"sys.exit(streams.last_words(main.main(['compare', {str(endless)!r}])))"
    )
    environment = client.worker_environment() | {confined.SECONDS_VARIABLE: "600"}
    process = subprocess.Popen(
        [sys.executable, "-c", text], stderr=subprocess.PIPE, env=environment, text=True
    )
    reader = _child_of(process.pid)
    time.sleep(0.5)  # by then it is in what never ends
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, told = process.communicate(timeout=100)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert time.monotonic() - began < 60
    with pytest.raises(ProcessLookupError):
        os.kill(reader, 0)


def _child_of(parent: int) -> int:
    children = Path(f"/proc/{parent}/task/{parent}/children")
    while not (found := children.read_text().split()):
        time.sleep(0.05)
    return int(found[0])


def _case(model: Path | str, batch: int = 1) -> Case:
    return Case(model=str(model), backend="engine-cpu", precision="fp32", batch=batch, images=8)


def _run(
    cases: tuple[Case, ...],
    folder: Path,
    timeout_s: float = 60.0,
    hear: Callable[[client.Event], None] = lambda event: None,
) -> tuple[client.Outcome, dict[Case, tuple[str, str]]]:
    job = Job(
        models=tuple(dict.fromkeys(case.model for case in cases)),
        backends=("engine-cpu",),
        images=(8,),
        budget_s=0.05,
        timeout_s=timeout_s,
        layers=False,
    )
    with COMPARISON.create(folder, Run(job=job, cases=cases)) as held:
        outcome = client.run(job, cases, held, hear, command=unchecked("bench.measure.worker"))
    return outcome, {m.case: (m.disposition, m.reason) for m in outcome.measurements}


@pytest.mark.sampled(6, "longest")
def test_in_the_worker_it_costs_the_models_own_cases_once(
    endless: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the file was changed after it was looked at, or a run is gone on with. By a clock that jumps
    once the file is being read: how long the good case takes is no matter."""
    bad, good = (_case(endless), _case(endless, 2), _case(endless, 4)), _case(names.DEFAULT_MODEL)
    begun: list[Case] = []
    jumped: list[float] = []
    clock = types.SimpleNamespace(monotonic=lambda: time.monotonic() + sum(jumped))
    monkeypatch.setattr(client, "time", clock)

    def hear(event: client.Event) -> None:
        if isinstance(event, CaseStarted):
            begun.append(event.case)
            if event.case in bad and event.stage == "load":
                jumped.append(61.0)

    outcome, came = _run((*bad, good), tmp_path / "run", 60.0, hear)
    assert set(begun) == {bad[0], good}, "each of its cases was waited for"
    assert came[good] == ("ok", "")
    assert {came[case][0] for case in bad} == {"timed_out"}
    assert all("given up after 60 s (at: load)" in came[case][1] for case in bad)
    assert outcome.reason == ""


@pytest.mark.sampled(4, "long")
def test_in_the_worker_memory_is_limited(vast: Path, tmp_path: Path) -> None:
    bad, good = _case(vast), _case(names.DEFAULT_MODEL)
    _, came = _run((bad, good), tmp_path / "run")
    assert came[good] == ("ok", "")
    assert came[bad][0] == "out_of_memory"
    assert "takes more than 300 MiB of memory to read" in came[bad][1]


@pytest.mark.sampled(4, "long")
def test_a_worker_that_plans_asks_a_process_of_its_own(vast: Path, tmp_path: Path) -> None:
    """As the window has it, which plans nothing itself."""
    job = Job(models=(str(vast),), backends=("engine-cpu",), timeout_s=60)
    with COMPARISON.create(tmp_path / "run", Run(job=job, cases=())) as held:
        outcome = client.run(job, (), held)
    assert "takes more than 300 MiB of memory to read" in outcome.reason


def test_the_windows_ladder_asks_a_process_of_its_own(endless: Path) -> None:
    told = describe.answer(LadderQuestion(number=1, model=str(endless), batch=1, device="cpu"))
    assert "took more than 0.3 s to read" in told.error


def test_an_honest_file_is_planned_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model([helper.make_node("Relu", ["x"], ["y"], "r")], {"x": ("N", 4)}, ["y"])
    path = tmp_path / "honest.onnx"
    path.write_bytes(model.SerializeToString())
    job = Job(models=(names.DEFAULT_MODEL, str(path)), backends=("engine-cpu",), batches=(1, 2))
    planned = model_questions.cases(job)
    assert [(case.model, case.batch) for case in planned] == [
        (model, batch) for model in job.models for batch in (1, 2)
    ]
    started = []
    monkeypatch.setattr(model_questions, "ask", lambda *_: started.append(1))
    model_questions.cases(Job(models=(names.DEFAULT_MODEL,), backends=("engine-cpu",)))
    assert started == [], "a model of the catalogue takes no process"


def test_whoever_reads_ends_by_itself_though_nobody_waits(endless: Path) -> None:
    """Its parent was killed."""
    process = subprocess.Popen(
        [
            *unchecked("bench.questions.model_reader"),
            "-4.5",
        ],  # seconds, beyond which 5 are left to whoever waits
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=client.worker_environment(),
    )
    with process:
        assert process.stdin is not None
        process.stdin.write(b'{"type":"facts","model":"%b"}\n' % str(endless).encode())
        process.stdin.flush()
        assert process.wait(timeout=60) == -signal.SIGALRM


def test_the_memory_that_a_process_has_is_not_taken_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.setenv(confined.MEMORY_VARIABLE, "64")
    held = bytearray(96 << 20)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with confined.confined(60):
        fits = bytearray(32 << 20)
        with pytest.raises(MemoryError):
            bytearray(128 << 20)
    assert len(held) > len(fits)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert len(bytearray(128 << 20)) == 128 << 20
