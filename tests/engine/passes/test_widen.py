"""Half precision on the CPU: computed in float32, and stored as the file says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine.backends.engine_cpu import EngineCpuHere
from engine.graph import importer
from engine.options import Options
from engine.planning.planner import plan
from tests.engine.harness import make_model, run_plan

TYPES = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
QUANTUM = {"float16": 2.0**-10, "bfloat16": 2.0**-7}  # of a number of its own size
SHAPES = {"w": (8, 3, 3, 3), "b": (8,), "k": (1, 8, 1, 1), "w2": (8, 5), "b2": (5,)}


def _model(half: str) -> tuple[Any, dict[str, np.ndarray]]:
    random = np.random.default_rng(0)
    dtype = np.dtype(half)
    weights = {
        n: (0.4 * random.standard_normal(s)).astype(np.float32).astype(dtype) for n, s in SHAPES.items()
    }
    node = helper.make_node
    nodes = [
        node("Cast", ["x"], ["xh"], to=TYPES[half]),
        node("Conv", ["xh", "w", "b"], ["c"], kernel_shape=[3, 3], pads=[1] * 4),
        node("Relu", ["c"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Erf", ["p"], ["e"]),
        node("Add", ["e", "k"], ["a"]),
        node("Clip", ["a"], ["l"]),
        node("Transpose", ["l"], ["t"], perm=[0, 1, 3, 2]),
        node("GlobalAveragePool", ["t"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "w2", "b2"], ["q"]),
        node("Softmax", ["q"], ["yh"]),
        node("Cast", ["yh"], ["y"], to=TensorProto.FLOAT),
    ]
    made = helper.make_graph(
        nodes,
        "half",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 5])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 22)], ir_version=10), weights


@pytest.mark.parametrize("half", TYPES)
def test_answers_are_float32s_to_the_types_rounding(half: str) -> None:
    model, weights = _model(half)
    graph = importer.from_proto(model, "half")
    x = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)
    x = x.astype(half).astype(np.float32)
    wide = importer.from_proto(_widened(model, weights), "wide")
    got, wanted = (_answer(each, x) for each in (graph, wide))
    off = np.abs(got - wanted).max()
    assert 0 < off < 4 * QUANTUM[half], "stored in the type after each node, and no coarser"
    assert np.array_equal(got, got.astype(half).astype(np.float32)), "the answer is a number of the type"


def test_each_kernel_computes_in_float32_and_what_is_moved_stays_as_it_is() -> None:
    graph = importer.from_proto(_model("float16")[0], "half")
    made = plan(graph, 2)
    computed = {step.op: step.params.dtype for step in made.steps if step.params.flops}
    assert set(computed) >= {"conv", "pool", "unary", "binary", "gemm", "softmax"}
    assert set(computed.values()) == {"float32"}
    assert {step.params.dtype for step in made.steps if step.op == "transpose"} == {"float16"}
    assert all(array.dtype == np.float32 for array in made.weights.values())


@pytest.mark.parametrize("dtype", ["int16", "uint16", "uint32"])
@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "Less"])
def test_whole_numbers_that_no_kernel_takes_are_those_of_numpy(op_type: str, dtype: str) -> None:
    """The largest and smallest among them: what is carried beyond the type's bits is cut away."""
    held = np.iinfo(dtype)
    edges = [held.min, held.min + 1, 1, 2, 3, held.max // 2, held.max - 1, held.max]
    a, b = (grid.reshape(-1) for grid in np.meshgrid(*[np.array(edges, dtype)] * 2))
    if op_type in ("Div", "Mod"):
        kept = (b != 0) & ~((a == held.min) & (b.astype(np.int64) == -1))  # of which C says nothing
        a, b = a[kept], b[kept]
    of = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    to = TensorProto.BOOL if op_type == "Less" else of
    proto = make_model(
        [helper.make_node(op_type, ["a", "b"], ["y"], "it")],
        {"a": a.shape, "b": b.shape},
        ["y"],
        opset=17,
        ranks={"y": 1},
        types={"a": of, "b": of, "y": to},
    )
    with np.errstate(all="ignore"):
        expected = {
            "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum,
            "Mod": np.mod, "Less": np.less, "Div": lambda a, b: np.trunc(a / b.astype(float)).astype(dtype),
        }[op_type](a, b)  # fmt: skip
    found = run_plan(importer.from_proto(proto, "whole"), len(a), {"a": a, "b": b})["y"]
    assert found.dtype == expected.dtype
    assert (found == expected).all()


def _answer(graph: Any, x: np.ndarray) -> np.ndarray:
    session = EngineCpuHere(graph, len(x), "fp32", Options())
    try:
        session.bind({"x": x})
        session.run()
        return session.fetch()["y"].copy()
    finally:
        session.close()


def _widened(model: Any, weights: dict[str, np.ndarray]) -> Any:
    """The same model in float32."""
    wide = type(model)()
    wide.CopyFrom(model)
    del wide.graph.initializer[:]
    wide.graph.initializer.extend(
        numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()
    )
    for node in wide.graph.node:
        if node.op_type == "Cast":
            node.attribute[0].i = TensorProto.FLOAT
    return wide


def test_a_tensor_of_the_model_may_be_called_as_its_wider_copy() -> None:
    """The factor of a later node, in float32."""
    node = helper.make_node
    for name in ("w:float32", "a:unrounded"):
        nodes = [
            node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
            node("Mul", ["h", "w"], ["a"]),
            node("Erf", ["a"], ["e"]),
            node("Cast", ["e"], ["f"], to=TensorProto.FLOAT),
            node("Mul", ["f", name], ["y"]),
        ]
        weights = {"w": np.float16([1, 2, 3]), name: np.float32([4, -5, 6])}
        graph = importer.from_proto(make_model(nodes, {"x": ("N", 3)}, ["y"], weights), "net")
        x = np.float32([[0.5, -0.25, 1.5]])
        expected = np.array([[math.erf(v * w) for v, w in zip(x[0], (1, 2, 3), strict=True)]]) * [4, -5, 6]
        np.testing.assert_allclose(run_plan(graph, 1, {"x": x})["y"], expected, rtol=2e-3)
