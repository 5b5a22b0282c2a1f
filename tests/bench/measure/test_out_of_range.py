"""An answer that has NaN because a number on the way is beyond what float16 holds is told so, in words."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from bench.measure.loaded_model import LoadedModel
from bench.results.records import Job
from tests.bench.measure.quantized_files import Net


@pytest.mark.parametrize(("scale", "precision", "told"), [
    (1e6, "fp16", True), (1.0, "fp16", False), (1e6, "bf16", False), (1e6, "fp32", False),
])  # fmt: skip
def test_what_float16_cannot_hold_is_told(scale, precision, told, tmp_path):
    net = Net()
    large = net("Relu", net("Mul", net.conv("x", 8, 3), net.constant(scale)), out="large")
    x = net("Relu", net.conv(net("Mul", large, net.constant(1 / scale)), 8, 8))
    onnx.save(net.proto(net.dense(net("Flatten", net("GlobalAveragePool", x)), 8, 10)), tmp_path / "net.onnx")
    job = Job(models=(str(tmp_path / "net.onnx"),), backends=("engine-cpu",), batches=(2,))
    loaded = LoadedModel(job.models[0], job, (2,), lambda *_: None)
    placed = loaded.placement(2, 0)
    (output,) = loaded.graph.outputs
    stats = loaded.check({output.name: np.full((2, 10), np.nan, np.float32)}, placed, precision)
    assert not stats.ok
    assert "NaN" in stats.reason
    assert ("large reach" in stats.reason and "beyond 65,504" in stats.reason) == told, stats.reason
