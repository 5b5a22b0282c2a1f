"""A whole net by the engine's CUDA kernels without a GPU: its answers are judged, and it never has a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from bench.results.messages import Measured
from bench.results.records import Measurement
from engine import backends
from engine.backend import by_default
from engine.cuda import simulated_net
from engine.cuda.simulated_net import SimulatedNetSession
from kernels import numba_support, nvrtc
from tests.bench.measure.test_worker import changed, go
from tests.engine.harness import make_model

NAME = "engine-cuda-simulated"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable())),
    pytest.mark.skipif(numba_support.unavailable() is not None, reason=str(numba_support.unavailable())),
]


def net() -> onnx.ModelProto:
    draw = np.random.default_rng(5)
    weights = {
        "w": draw.standard_normal((4, 2, 3, 3)),
        "b": draw.standard_normal(4),
        "v": draw.standard_normal((36, 5)),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv"),
        helper.make_node("Tanh", ["c"], ["t"], "tanh"),
        helper.make_node("MaxPool", ["t"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"], "flat"),
        helper.make_node("MatMul", ["f", "v"], ["y"], "fc"),
    ]
    constants = {name: array.astype(np.float32) for name, array in weights.items()}
    return make_model(nodes, {"x": ("N", 2, 8, 8)}, ["y"], constants, 17, {"y": 2})


def measured(folder: Path) -> Measurement:
    onnx.save(net(), folder / "net.onnx")
    job = changed(
        models=(str(folder / "net.onnx"),), backends=(NAME,), batches=(2,), dataset="random", images=()
    )
    _, messages = go(job)
    (one,) = (m.measurement for m in messages if isinstance(m, Measured))
    return one


@pytest.mark.sampled(4, "long")
def test_its_answers_are_judged_and_it_has_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not by_default(backends.get(NAME))
    found = measured(tmp_path)
    assert (found.disposition, found.samples_ns, found.first_run_ns, found.phases) == (
        "untimed",
        (),
        None,
        {},
    )
    assert found.reason.startswith("2 images")
    assert found.accuracy is not None
    assert found.accuracy.output is not None
    assert found.accuracy.output.ok

    right = SimulatedNetSession.fetch

    def shifted(self: Any) -> dict[str, np.ndarray]:
        return {name: answer + 1 for name, answer in right(self).items()}

    monkeypatch.setattr(SimulatedNetSession, "fetch", shifted)
    assert measured(tmp_path).disposition == "incorrect"
    monkeypatch.setattr(simulated_net, "MOST_FLOPS", 100)
    found = measured(tmp_path)
    assert found.disposition == "unsupported"
    assert "a smaller batch or net runs" in found.reason
