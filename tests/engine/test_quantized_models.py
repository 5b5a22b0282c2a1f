"""Models as onnxruntime.quantization writes them, in every form: the engine's answer is that of float64, and
no further from it than ONNX Runtime's."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from bench.measure.answers import oracle
from engine.backend import Backend
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from models import catalogue
from tests.engine.backends.shared import EVERY_BACKEND, answers, usable
from tests.engine.harness import bare, run_ort, run_plan

pytestmark = pytest.mark.slow

BATCH = 3
OURS = [parameter for parameter in EVERY_BACKEND if str(parameter.id).startswith("engine-")]


def small_net(seed: int = 0) -> onnx.ModelProto:
    """Convolutions with a stride, one channel a group and 1 × 1, a sum, pools, a product; weights drawn."""
    random, node = np.random.default_rng(seed), helper.make_node

    def drawn(*shape: int) -> np.ndarray:
        return (random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    shapes = {"w0": (8, 3, 3, 3), "w1": (8, 1, 3, 3), "w2": (12, 8, 1, 1), "w3": (12, 12, 3, 3)}
    shapes |= {"b0": (8,), "b1": (8,), "b2": (12,), "wf": (12, 10), "bf": (10,)}
    held = {name: drawn(*shape) for name, shape in shapes.items()}
    held |= {"none": np.array(0, np.float32), "six": np.array(6, np.float32)}
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", ["c0"], ["r0"]),
        node("Conv", ["r0", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1], group=8),
        node("Clip", ["c1", "none", "six"], ["r1"]),
        node("Conv", ["r1", "w2", "b2"], ["c2"]),
        node("Conv", ["c2", "w3"], ["c3"], pads=[1, 1, 1, 1]),
        node("Add", ["c2", "c3"], ["sum"]),
        node("Relu", ["sum"], ["r"]),
        node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["m"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("MatMul", ["f", "wf"], ["g"]),
        node("Add", ["g", "bf"], ["h"]),
        node("Softmax", ["h"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class _Calibration:
    """What the ranges of the activations are found on."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        random = np.random.default_rng(1)
        self._fed: Iterator[dict[str, Any]] = iter(
            [{name: random.normal(size=shape).astype(np.float32)} for _ in range(3)]
        )

    def get_next(self) -> dict[str, Any] | None:
        return next(self._fed, None)


def quantized(source: onnx.ModelProto, folder: Path, form: str, types: str, per_channel: bool) -> Graph:
    """form: "QDQ", "QOperator" or "dynamic"; types: of activations and weights, "uint8 int8"."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static

    info = source.graph.input[0]
    shape = tuple(dim.dim_value or 4 for dim in info.type.tensor_type.shape.dim)
    onnx.save(source, folder / "source.onnx")
    of_x, of_w = ({"uint8": QuantType.QUInt8, "int8": QuantType.QInt8}[name] for name in types.split())
    target = folder / "quantized.onnx"
    logging.disable(logging.WARNING)  # it advises to optimise first
    try:
        if form == "dynamic":
            quantize_dynamic(folder / "source.onnx", target, weight_type=of_w, per_channel=per_channel)
        else:
            quantize_static(
                folder / "source.onnx", target, _Calibration(info.name, shape), QuantFormat[form],
                per_channel=per_channel, activation_type=of_x, weight_type=of_w,
            )  # fmt: skip
    finally:
        logging.disable(logging.NOTSET)
    return from_proto(onnx.load(target), form)


# Of each net the products, of which none is left in floating point; and the averages, which are such products
# where a file says by which scale they are quantized.
NETS = {
    "small": (small_net, {"qconv": 4, "qgemm": 1}, {"qgemm": 1}),
    "lenet5": (lambda: onnx.load(catalogue.path("lenet5-digits")), {"qconv": 2, "qgemm": 3}, {}),
}


# Of uint8 weights, and where ranges are found in the pass, ONNX Runtime writes no scales a channel that its
# own kernels take.
WAYS = [
    (form, types, per_channel)
    for form in ("QDQ", "QOperator", "dynamic")
    for types in ("uint8 int8", "int8 int8", "uint8 uint8")
    for per_channel in (False, True)
    if not per_channel or (form != "dynamic" and types != "uint8 uint8")
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("form", "types", "per_channel"), WAYS)
@pytest.mark.parametrize("net", NETS)
def test_every_product_is_of_whole_numbers_and_the_answer_is_right(
    net: str, form: str, types: str, per_channel: bool, tmp_path: Path
) -> None:
    make, products, averages = NETS[net]
    if form != "dynamic":
        products = {op: count + averages.get(op, 0) for op, count in products.items()}
    graph = quantized(make(), tmp_path, form, types, per_channel)
    ops = [step.op for step in bare(graph, BATCH).steps]
    assert {op: ops.count(op) for op in ("conv", "gemm", *products)} == {"conv": 0, "gemm": 0, **products}
    name, answer = graph.inputs[0].name, graph.outputs[0].name
    shape = (BATCH, *(size for size in graph.inputs[0].shape[1:] if isinstance(size, int)))
    fed = {name: np.random.default_rng(0).normal(size=shape).astype(np.float32)}
    right = oracle.run(graph, fed, [answer])[answer]
    ours, theirs = run_plan(graph, BATCH, fed)[answer], run_ort(graph, fed)[answer]
    np.testing.assert_allclose(ours, right, rtol=1e-5, atol=1e-6)
    assert np.abs(ours - right).max() <= max(np.abs(theirs - right).max(), 1e-6)


@pytest.mark.parametrize("backend", OURS)
@pytest.mark.parametrize("form", ["QDQ", "QOperator", "dynamic"])
def test_it_is_so_on_every_device(backend: Backend, form: str, tmp_path: Path) -> None:
    usable(backend)
    graph = quantized(small_net(), tmp_path, form, "uint8 int8", per_channel=form == "QDQ")
    fed = {"x": np.random.default_rng(0).normal(size=(BATCH, 3, 16, 16)).astype(np.float32)}
    right = oracle.run(graph, fed, ["y"])["y"]
    found = answers(backend, graph, fed, BATCH, tuned=False)["y"]
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
