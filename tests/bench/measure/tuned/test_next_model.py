"""What is done for the next model of a run while kernels of the one before are compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.measure import cases, net_runner, runner
from bench.measure.answers import oracle
from bench.measure.timing import Stopped
from bench.measure.tuned import next_model
from bench.results.messages import Start
from bench.results.records import Case, Job
from engine import backends
from engine.machine import driver as cuda_driver
from engine.machine.driver import CudaDevice
from kernels import nvrtc
from kernels.cache import cache_dir

BACKENDS = ("engine-cpu", "engine-cuda")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The rungs that compilers are asked for, with a GPU and nobody who runs on it."""
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cuda_driver, "device", lambda: CudaDevice("a GPU", (9, 0), 132))
    monkeypatch.setattr(cuda_driver, "unavailable", lambda: None)
    monkeypatch.setattr(type(backends.get("engine-cuda")), "unavailable", lambda self: None)

    def prepare(*given: Any, **named: Any) -> None:
        raise AssertionError("a session while another model's kernels are compiled")

    for name in (*BACKENDS, "ort-cpu"):
        monkeypatch.setattr(type(backends.get(name)), "prepare", prepare)
    found: list[str] = []

    def compile_ahead(wanted: Any, arch: str, threads: int, told: Any) -> None:
        found.extend(rung.name for rung, _ in wanted)
        told(1, 1)

    monkeypatch.setattr(nvrtc, "compile_ahead", compile_ahead)
    oracle._kept.clear()
    return found


def groups(model: str) -> list[cases.Group]:
    return [tuple(Case(model=model, backend=name, precision="fp32", batch=2) for name in BACKENDS)]


def made_ready(members: list[cases.Group], of: Job, go_on: Callable[[], None] = lambda: None) -> None:
    following = next_model.NextModel(of, go_on)
    following.begin(members)
    following.wait()


def job(*models: str, tune: str = "all") -> Job:
    return Job(models=models, backends=BACKENDS, batches=(2,), tune=tune)


def test_its_file_its_kernels_and_its_float64_answers(asked: list[str]) -> None:
    made_ready(groups("lenet5-digits"), job("lenet5-fashion", "lenet5-digits"))
    assert "one_kernel" in asked
    (file,) = cache_dir().glob("models/*/lenet5-digits.onnx")
    assert file.stat().st_size > 100_000
    answered = list(oracle._kept.values())
    assert any("prob" in " ".join(tensors) for tensors in answered)
    assert list(cache_dir().glob("oracle/*.npz")), "kept for the time when it is asked"


def test_another_s_file_is_read_when_its_cases_answer_for_it_alone(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "mine.onnx")
    Path(path).write_bytes(b"not to be read")

    def load(*given: Any) -> None:
        raise AssertionError("read")

    monkeypatch.setattr(next_model, "load", load)
    made_ready(groups(path), job("lenet5-digits", path))
    assert asked == []


@pytest.mark.parametrize("members", [[], [group[:1] for group in groups("lenet5-digits")]])
def test_nothing_where_no_kernels_of_it_are_to_be_compiled(
    asked: list[str], members: list[cases.Group]
) -> None:
    made_ready(members, job("lenet5-digits"))
    assert asked == []
    made_ready(groups("lenet5-digits"), job("lenet5-digits", tune="none"))
    assert asked == []


def test_what_goes_wrong_is_told_when_its_turn_has_come_and_who_stops_is_heard(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        made_ready(groups("lenet5-digits"), job("lenet5-digits"), stop)

    def out_of_memory(*given: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(next_model, "LoadedModel", out_of_memory)
    made_ready(groups("lenet5-digits"), job("lenet5-digits"))


def test_no_images_are_downloaded_for_it(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.datasets.available", lambda name: "not downloaded yet")

    def load(*given: Any, **named: Any) -> None:
        raise AssertionError("downloaded")

    monkeypatch.setattr("models.datasets.load", load)
    made_ready(groups("lenet5-digits"), job("lenet5-digits"))
    assert asked, "its kernels are compiled all the same"


def test_nothing_is_timed_before_it_is_ready(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a pass nor a reference's configurations, which are timed before contenders are prepared."""
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    done: list[str] = []
    timed, tuned = runner.time_together, net_runner.tuning.tune
    monkeypatch.setattr(next_model.NextModel, "wait", lambda self: done.append("wait"))
    monkeypatch.setattr(runner, "time_together", lambda *g, **n: (done.append("time"), timed(*g, **n))[1])
    monkeypatch.setattr(net_runner.tuning, "tune", lambda *g, **n: (done.append("tune"), tuned(*g, **n))[1])
    of = {"models": ("lenet5-digits",), "backends": ("ort-cpu",), "batches": (2,), "images": (4,)}
    told: list[object] = []
    net_runner.NetRunner(Start(job=Job(**of, budget_s=0.02, layers=False)), told.append, lambda: False).run()  # type: ignore[arg-type]
    # Of a new model; then, after what is tuned, before the first time.
    assert done == ["wait", "tune", "wait", "time"]
    done.clear()
    swept = Job(**of, budget_s=0.02, layers=False, tune_reference=True)  # type: ignore[arg-type]
    case = Case(model="lenet5-digits", backend="ort-cpu", precision="fp32", batch=2, images=4)
    net_runner.NetRunner(Start(job=swept, cases=(case,)), told.append, lambda: False).run()
    assert done[:3] == ["wait", "wait", "tune"]
