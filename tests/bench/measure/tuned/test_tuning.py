"""What is made ready ahead of a model's first case: kernels, while float64 is worked out."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from bench.measure.timing import Stopped
from bench.measure.tuned import tuning
from bench.results.records import Case, Job
from engine.backend import Options
from engine.machine import driver as cuda_driver
from engine.machine.driver import CudaDevice
from engine.planning import groups
from kernels import nvrtc
from kernels.errors import UnsupportedError
from tests.engine.planning.test_runs import net

CASE = Case(model="net", backend="engine-cuda", precision="fp32", batch=2)
JOB = Job(models=("net",), backends=("engine-cuda",), batches=(2, 8))


class Loaded(SimpleNamespace):
    """A model whose float64 answers are told by `answer`. beside: what is done meanwhile for another."""

    def __init__(self, answer: Any, beside: Any = lambda: None) -> None:
        super().__init__(graph=net(), compiled=set(), golden=answer, beside=beside, golden_images=2)


def ahead(loaded: Loaded) -> None:
    tuning._compile_ahead(CASE, loaded, JOB, Options(tuned=True), lambda text, share: None)  # type: ignore[arg-type]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(cuda_driver, "device", lambda: CudaDevice("a GPU", (9, 0), 132))


def test_kernels_of_steps_and_of_the_whole_net_are_compiled_while_float64_is_worked_out(
    gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, answered = threading.Event(), threading.Event()
    asked: list[tuple[str, dict[str, Any]]] = []

    def compile_ahead(wanted: Any, arch: str, threads: int, told: Any) -> None:
        asked.extend((rung.name, dict(defines)) for rung, defines in wanted)
        assert arch == "sm_90"
        begun.set()
        assert answered.wait(60)

    def answer() -> None:
        assert begun.wait(60)
        answered.set()

    monkeypatch.setattr(nvrtc, "compile_ahead", compile_ahead)
    monkeypatch.setattr("engine.machine.host.physical_cores", lambda: 8)
    ahead(Loaded(answer))
    nets = [defines for name, defines in asked if name == "one_kernel"]
    assert len(nets) < len(asked)
    assert asked[0][0] == asked[len(nets) - 1][0] == "one_kernel", "what takes longest is begun first"
    stamped = [defines for defines in nets if "STAMPS" in defines]
    assert 0 < len(stamped) == len(nets) / 2
    asked.clear()
    for event in (begun, answered):
        event.clear()
    monkeypatch.setattr("engine.machine.host.physical_cores", lambda: 2)
    ahead(Loaded(answer))
    assert not any("STAMPS" in defines for _, defines in asked), (
        "few cores have no time for what may not come"
    )


def test_kernels_of_each_layer_alone_are_compiled_with_them(
    gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the images that layers are looked at with, which is no batch size of the job."""
    asked: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(
        nvrtc, "compile_ahead", lambda wanted, *given: asked.extend((r.name, dict(d)) for r, d in wanted)
    )
    loaded = Loaded(lambda: None)
    loaded.golden_images = 5
    ahead(loaded)
    how = Options(tuned=True)
    alone = tuning._alone(CASE, loaded, how)  # type: ignore[arg-type]
    assert len(alone) >= len(groups.groups(loaded.graph, 5))
    assert all((rung.name, dict(defines)) in asked for rung, defines in alone)


def test_what_is_wrong_with_float64_is_told_where_it_is_wanted_and_who_stops_is_heard(
    gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvrtc, "compile_ahead", lambda *given: None)

    def refuse() -> None:
        raise UnsupportedError("the oracle cannot run it")

    ahead(Loaded(refuse))

    def stop(*given: object) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        ahead(Loaded(stop))
    monkeypatch.setattr(nvrtc, "compile_ahead", stop)
    with pytest.raises(Stopped):
        ahead(Loaded(lambda: None))


def test_something_else_is_begun_meanwhile_where_there_are_cores(
    gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(nvrtc, "compile_ahead", lambda *given: begun.append("compilers"))
    monkeypatch.setattr("engine.machine.host.physical_cores", lambda: 8)
    ahead(Loaded(lambda: None, lambda: begun.append("beside")))
    assert begun == ["beside", "compilers"]
    begun.clear()
    monkeypatch.setattr("engine.machine.host.physical_cores", lambda: 2)
    ahead(Loaded(lambda: None, lambda: begun.append("beside")))
    assert begun == ["compilers"], "two cores have enough to do"
