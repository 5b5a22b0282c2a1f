"""Every backend, operator by operator, against the float64 oracle over drawn shapes and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

from bench.measure.answers import accuracy, oracle
from engine.backend import Backend
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from tests.engine.backends.shared import EVERY_BACKEND, answers, usable
from tests.engine.harness import make_model, one_node, random

pytestmark = pytest.mark.slow

# The backend is the same in all examples; the fixture only asks once whether it can run.
drawn = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
small = st.integers(1, 3)


@pytest.fixture(params=EVERY_BACKEND)
def backend(request: pytest.FixtureRequest) -> Backend:
    return usable(request.param)


def check(backend: Backend, graph: Graph, feeds: Mapping[str, np.ndarray]) -> None:
    """The outputs at the feeds' batch lie within the bound of a layer."""
    batch = next(iter(feeds.values())).shape[0]
    assert backend.supports(graph, batch, "fp32") is None
    names = [info.name for info in graph.outputs]
    expected = oracle.run(graph, feeds, names)
    actual = answers(backend, graph, feeds, batch)
    for name in names:
        stats = accuracy.error_stats(actual[name], expected[name], "fp32")
        # Inputs are about 1: a drawn sum that cancels to nearly nothing is right within a few 1e-6 of them.
        small = stats.reason.startswith("relative") and stats.max_abs <= 4e-6
        assert stats.ok or small, stats.reason


def followed(graph_nodes: list[Any], activation: str | None) -> tuple[list[Any], str]:
    if activation is None:
        return graph_nodes, "y"
    return [*graph_nodes, helper.make_node(activation, ["y"], ["z"], "after")], "z"


activations = st.sampled_from([None, "Relu", "Tanh", "Sigmoid"])


@st.composite
def windows(draw: Any) -> tuple[list[int], dict[str, Any]]:
    """Spatial sizes and the attributes of a 2-D window that fits them."""
    kernel = draw(st.lists(st.integers(1, 5), min_size=2, max_size=2))
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [draw(st.integers(1, k)) for k in kernel],
        "auto_pad": draw(st.sampled_from(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])),
    }
    if attributes["auto_pad"] == "NOTSET":
        attributes["pads"] = [draw(st.integers(0, k - 1)) for k in kernel * 2]
    return [draw(st.integers(k, 17)) for k in kernel], attributes


@drawn
@given(st.data())
def test_conv(backend: Backend, data: st.DataObject) -> None:
    spatial, attributes = data.draw(windows())
    if attributes["auto_pad"] == "NOTSET" and data.draw(st.booleans()):
        attributes["dilations"] = [2, 2]
        spatial = [2 * size for size in spatial]
    group, depth, maps = data.draw(small), data.draw(st.integers(1, 5)), data.draw(st.integers(1, 9))
    shape = (data.draw(st.integers(1, 5)), group * depth, *spatial)
    constants = {"w": random((group * maps, depth, *attributes["kernel_shape"]), 1)}
    if data.draw(st.booleans()):
        constants["b"] = random((group * maps,), 2)
    node = helper.make_node("Conv", ["x", *constants], ["y"], "conv", group=group, **attributes)
    nodes, output = followed([node], data.draw(activations))
    model = make_model(nodes, {"x": ("N", *shape[1:])}, [output], constants, ranks={output: 4})
    check(backend, from_proto(model, "conv"), {"x": random(shape)})


@drawn
@given(st.data(), st.sampled_from(["MaxPool", "AveragePool"]))
def test_pool(backend: Backend, data: st.DataObject, op_type: str) -> None:
    spatial, attributes = data.draw(windows())
    if attributes["auto_pad"] == "NOTSET":
        attributes["ceil_mode"] = data.draw(st.integers(0, 1))
    if op_type == "AveragePool":
        attributes["count_include_pad"] = data.draw(st.integers(0, 1))
    shape = (data.draw(small), data.draw(small), *spatial)
    # All negative: padding that took part as 0 would win a maximum.
    check(backend, one_node(op_type, shape, opset=19, **attributes), {"x": -np.abs(random(shape)) - 1})


@drawn
@given(st.data(), st.sampled_from(["MaxPool", "AveragePool"]))
def test_pool_behind_an_activation_or_a_normalisation(
    backend: Backend, data: st.DataObject, op_type: str
) -> None:
    spatial, attributes = data.draw(windows())
    shape = (data.draw(small), data.draw(st.integers(1, 9)), *spatial)
    # ONNX Runtime takes odd sizes alone.
    lrn = {"size": data.draw(st.sampled_from([1, 3, 5])), "alpha": 0.5}
    kind, given = data.draw(st.sampled_from([("Tanh", {}), ("Sigmoid", {}), ("LRN", lrn)]))
    before = helper.make_node(kind, ["x"], ["before"], "before", **given)
    pool = helper.make_node(op_type, ["before"], ["y"], "pool", **attributes)
    nodes, output = followed([before, pool], data.draw(activations))
    model = make_model(nodes, {"x": ("N", *shape[1:])}, [output], opset=19, ranks={output: 4})
    check(backend, from_proto(model, "pool"), {"x": random(shape)})


@drawn
@given(st.data())
def test_gemm(backend: Backend, data: st.DataObject) -> None:
    m, k, n = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 200)), data.draw(st.integers(1, 70))
    trans = data.draw(st.booleans())
    constants = {"b": random((n, k) if trans else (k, n), 1)}
    shape = data.draw(st.sampled_from([None, (n,), (1, n), (1, 1)]))
    if shape is not None:
        constants["c"] = random(shape, 2)
    factors = {
        "alpha": data.draw(st.sampled_from([1.0, 0.5])),
        "beta": data.draw(st.sampled_from([1.0, 2.0])),
    }
    node = helper.make_node("Gemm", ["x", *constants], ["y"], "gemm", transB=int(trans), **factors)
    nodes, output = followed([node], data.draw(activations))
    model = make_model(nodes, {"x": ("N", k)}, [output], constants)
    check(backend, from_proto(model, "gemm"), {"x": random((m, k))})


@drawn
@given(st.data())
def test_matmul_add(backend: Backend, data: st.DataObject) -> None:
    m, k, n = (data.draw(st.integers(1, 33)) for _ in range(3))
    lead = data.draw(st.sampled_from([(), (3,)]))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], "product"),
        helper.make_node("Add", ["p", "b"], ["y"], "sum"),
    ]
    constants = {"w": random((k, n), 1), "b": random((n,), 2)}
    model = make_model(nodes, {"x": ("N", *lead, k)}, ["y"], constants, ranks={"y": 2 + len(lead)})
    check(backend, from_proto(model, "matmul"), {"x": random((m, *lead, k))})


@drawn
@given(st.sampled_from(["Add", "Sub", "Mul", "Div"]), st.data())
def test_binary_broadcasts(backend: Backend, op_type: str, data: st.DataObject) -> None:
    shape = (data.draw(small), 3, 4, 5)
    other = data.draw(st.sampled_from([(), (5,), (3, 1, 1), (1, 3, 4, 5), (4, 1), (1, 1, 1, 1)]))
    constant = np.abs(random(other, 1)) + np.float32(0.5)
    check(backend, one_node(op_type, shape, [constant.astype(np.float32)]), {"x": random(shape)})


@pytest.mark.parametrize("op_type", ["Relu", "Tanh", "Sigmoid"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 257), (2, 3, 5, 7)])
def test_unary(backend: Backend, op_type: str, shape: tuple[int, ...]) -> None:
    check(backend, one_node(op_type, shape), {"x": random(shape) * 20})


@pytest.mark.parametrize("op_type", ["Relu", "Tanh", "Sigmoid"])
def test_unary_at_the_ends(backend: Backend, op_type: str) -> None:
    values = np.array([[0.0, -0.0, 1e-30, -1e-30, 88.0, -88.0, 1e4, -1e4]], np.float32)
    check(backend, one_node(op_type, values.shape), {"x": values})


@pytest.mark.parametrize("op_type", ["HardSwish", "Gelu", "Elu", "LeakyRelu", "Softplus", "Erf", "Exp"])
def test_functions(backend: Backend, op_type: str) -> None:
    check(backend, one_node(op_type, (3, 257), opset=20), {"x": random((3, 257)) * 3})


@pytest.mark.parametrize("upper", [6.0, 0.75])
def test_clip_behind_a_convolution(backend: Backend, upper: float) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Clip", ["c", "low", "high"], ["y"]),
    ]
    constants = {"w": random((4, 3, 3, 3), 1), "low": np.float32(0), "high": np.float32(upper)}
    graph = from_proto(make_model(nodes, {"x": ("N", 3, 9, 8)}, ["y"], constants, ranks={"y": 4}), "clipped")
    check(backend, graph, {"x": random((2, 3, 9, 8)) * 3})


@pytest.mark.parametrize("sizes", [[4, 8], [3, 1, 7], [1] * 33])
@pytest.mark.parametrize("axis", [1, 3])
def test_concat(backend: Backend, sizes: list[int], axis: int) -> None:
    if backend.name == "ort-cuda" and len(sizes) > 32:
        pytest.skip("onnxruntime-gpu 1.31.1 ends the process there (seen on an H200)")
    names = [f"x{i}" for i in range(len(sizes))]
    feeds = {}
    for i, (name, size) in enumerate(zip(names, sizes, strict=True)):
        shape = [2, 3, 5, 4]
        shape[axis] = size
        feeds[name] = random(tuple(shape), i)
    node = helper.make_node("Concat", names, ["y"], axis=axis)
    inputs = {name: ("N", *array.shape[1:]) for name, array in feeds.items()}
    check(backend, from_proto(make_model([node], inputs, ["y"], ranks={"y": 4}), "joined"), feeds)


def test_a_choice_by_a_comparison(backend: Backend) -> None:
    nodes = [
        helper.make_node("Greater", ["x", "bound"], ["larger"]),
        helper.make_node("Where", ["larger", "x", "row"], ["y"]),
    ]
    constants = {"bound": random((3, 1), 1), "row": random((5,), 2)}
    graph = from_proto(make_model(nodes, {"x": ("N", 3, 5)}, ["y"], constants, ranks={"y": 3}), "chosen")
    check(backend, graph, {"x": random((2, 3, 5))})


@drawn
@given(st.data())
def test_lrn(backend: Backend, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.integers(1, 12)) for _ in range(4))
    size = data.draw(st.sampled_from([1, 3, 5, 7]))
    graph = one_node("LRN", shape, size=size, alpha=data.draw(st.sampled_from([1e-4, 1.0])), beta=0.75)
    check(backend, graph, {"x": random(shape) * 3})


@drawn
@given(st.sampled_from(["Softmax", "LogSoftmax"]), st.sampled_from([7, 11, 13, 17]), st.data())
def test_softmax(backend: Backend, op_type: str, opset: int, data: st.DataObject) -> None:
    shape = (data.draw(small), *data.draw(st.sampled_from([(10,), (1000,), (4, 5), (3, 4, 5)])))
    axis = data.draw(st.integers(1, len(shape) - 1))
    check(backend, one_node(op_type, shape, opset=opset, axis=axis), {"x": random(shape) * 10})


@pytest.mark.parametrize("shape", [(1, 3, 4, 4), (2, 5, 7, 6)])
def test_batch_normalization_and_global_pool(backend: Backend, shape: tuple[int, ...]) -> None:
    c = shape[1]
    constants = [random((c,), 1), random((c,), 2), random((c,), 3), np.abs(random((c,), 4)) + np.float32(0.1)]
    check(backend, one_node("BatchNormalization", shape, constants), {"x": random(shape)})
    check(backend, one_node("GlobalAveragePool", shape), {"x": random(shape)})


@pytest.mark.parametrize("perm", [(0, 2, 1, 3), (0, 3, 2, 1), (0, 1, 2, 3)])
def test_transpose(backend: Backend, perm: tuple[int, ...]) -> None:
    check(backend, one_node("Transpose", (2, 3, 4, 5), perm=perm), {"x": random((2, 3, 4, 5))})


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad(backend: Backend, mode: str) -> None:
    pads = np.array([0, 0, 1, 2, 0, 0, 2, 1], np.int64)
    check(backend, one_node("Pad", (2, 3, 5, 4), [pads], mode=mode), {"x": random((2, 3, 5, 4))})


def test_flatten_and_reshape(backend: Backend) -> None:
    check(backend, one_node("Flatten", (3, 2, 4, 5), rank=2), {"x": random((3, 2, 4, 5))})
    wanted = np.array([0, -1, 4], np.int64)
    check(backend, one_node("Reshape", (3, 2, 8), [wanted], rank=3), {"x": random((3, 2, 8))})


def test_an_error_of_a_layer_would_be_seen(backend: Backend) -> None:
    """The check itself: an answer off by one part in a thousand does not pass."""
    graph, x = one_node("Tanh", (4, 9)), random((4, 9))
    wrong = answers(backend, graph, {"x": x}, 4)["y"] * 1.001
    assert not accuracy.error_stats(wrong, oracle.run(graph, {"x": x}, ["y"])["y"], "fp32").ok
