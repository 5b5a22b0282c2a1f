"""ONNX Runtime's other providers: what they silently leave to another is refused; their settings are told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.backend import Options
from engine.backends import _provider_session, all_backends
from engine.backends._provider_session import Provider
from engine.backends.ort_providers import BACKENDS
from engine.ort import sessions
from engine.ort import sessions as ort
from kernels.errors import UnavailableError
from tests.engine.backends.nets import small_net

OPENVINO = next(backend._provider for backend in BACKENDS if backend.name == "ort-openvino-cpu")


def session_of(providers: list[str], placed: dict[str, int]) -> Any:
    """As ONNX Runtime's, with so many nodes on each provider."""
    parts = [
        SimpleNamespace(
            ep_name=name,
            get_nodes=lambda n=count: [SimpleNamespace(name=f"n{i}", op_type="Conv") for i in range(n)],
        )
        for name, count in placed.items()
    ]
    return SimpleNamespace(get_providers=lambda: providers, get_provider_graph_assignment_info=lambda: parts)


def test_a_session_without_the_provider_is_refused() -> None:
    for left in (["CPUExecutionProvider"], []):
        with pytest.raises(
            UnavailableError, match=r"fell back from XExecutionProvider to (CPU|nothing).*: ask"
        ):
            sessions.check_placement(session_of(left, {}), "XExecutionProvider", "a model", "ask")


def test_a_provider_that_is_there_and_runs_nothing_is_refused() -> None:
    there = ["XExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
    with pytest.raises(UnavailableError, match="placed every node of a model on the CPU"):
        sessions.check_placement(session_of(there, {there[2]: 3}), there[0], "a model", "")
    with pytest.raises(UnavailableError, match="placed every node of a model on other providers"):
        sessions.check_placement(session_of(there, {there[1]: 2, there[2]: 1}), there[0], "a model", "")


def test_nodes_that_others_run_are_told() -> None:
    there = ["XExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
    assert sessions.check_placement(session_of(there, {there[0]: 3}), there[0], "", "") == {}
    found = sessions.check_placement(session_of(there, {there[0]: 3, there[2]: 1}), there[0], "", "")
    assert found == {"nodes_on_cpu": "1: n0 (Conv)"}
    found = sessions.check_placement(session_of(there, {there[0]: 3, there[1]: 7}), there[0], "", "")
    assert found["nodes_elsewhere"].startswith("7: n0 (Conv)")
    assert found["nodes_elsewhere"].endswith(", …")


def test_a_build_that_lacks_the_provider_gives_no_session() -> None:
    """As the real ONNX Runtime here, which has no such provider, and would run on the CPU instead."""
    with pytest.raises(UnavailableError, match="OpenVINOExecutionProvider"):
        _provider_session.on_cpu(OPENVINO, small_net(), 2, Options(threads=1))


def test_a_provider_that_is_there_runs_with_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU's in the part of a further one: what is asked of ONNX Runtime, and what comes of it."""
    asked: list[Any] = []

    def created(*arguments: Any) -> Any:
        asked.append(arguments[-1])
        return plain(*arguments[:-1], ["CPUExecutionProvider"])

    plain = ort.create_session
    monkeypatch.setattr(ort, "create_session", created)
    given = Provider("ort-x", "CPUExecutionProvider", "x", settings=(("", (("device_type", "CPU"),)),))
    session = _provider_session.opened(given, small_net(), 2, "fp32", Options(threads=1), False)
    try:
        assert asked == [[("CPUExecutionProvider", {"device_type": "CPU"})]]
        assert session.backend == "ort-x"
        for array in session.given.values():
            array[:] = 1
        session.run()
        assert np.isclose(session.answers()["y"].sum(), 2)
    finally:
        session.close()


def test_settings_hang_on_the_precision() -> None:
    tensorrt = next(backend._provider for backend in BACKENDS if backend.name == "ort-tensorrt-cuda")
    assert tensorrt.of("fp16").keys() - tensorrt.of("tf32").keys() == {"trt_fp16_enable"}


def test_what_nobody_ran_says_so() -> None:
    assert all("nobody" in all_backends()[backend.name].untried for backend in BACKENDS)  # type: ignore[attr-defined]
