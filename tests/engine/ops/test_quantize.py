"""Quantized models in the QDQ form: ONNX Runtime's answers, a step a pair, weights dequantized beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from kernels.errors import UnsupportedError
from tests.engine.harness import agree, bare, make_model, random, run_ort, run_plan

OPSETS = st.sampled_from([10, 13, 19, 21])


def pair(
    shape: tuple[int, ...],
    scale: np.ndarray,
    zero: np.ndarray | None,
    back: np.ndarray | None = None,
    opset: int = 13,
    outputs: tuple[str, ...] = ("y",),
    **attributes: int,
) -> Graph:
    """x → q → y. back: the scale of the second, where it is another."""
    constants = {"scale": scale, "back": scale if back is None else back}
    names = ["scale"]
    if zero is not None:
        constants["zero"] = zero
        names.append("zero")
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *names], ["q"], "first", **attributes),
        helper.make_node("DequantizeLinear", ["q", "back", *names[1:]], ["y"], "second", **attributes),
    ]
    types = {"q": TensorProto.INT8 if zero is not None and zero.dtype == np.int8 else TensorProto.UINT8}
    ranks = dict.fromkeys(outputs, len(shape))
    proto = make_model(nodes, {"x": ("N", *shape[1:])}, outputs, constants, opset, ranks, types)
    return from_proto(proto, "pair")


@settings(max_examples=14, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=4), st.sampled_from(["uint8", "int8"]), OPSETS, st.data()
)
def test_there_and_back(sizes: list[int], dtype: str, opset: int, data: Any) -> None:
    """Some quotients are more than eight bits hold, and by scales that are powers of two some are halves."""
    axis = data.draw(st.integers(-len(sizes), len(sizes) - 1)) if opset >= 13 else None
    shape: tuple[int, ...] = () if axis is None or data.draw(st.booleans()) else (sizes[axis],)
    numbers = np.random.default_rng(len(sizes))
    scale = np.asarray(numbers.choice([0.25, 0.5, 0.3], shape), np.float32)
    held = np.iinfo(dtype)
    zero = np.asarray(numbers.integers(held.min, held.max + 1, shape), dtype)
    how = {} if axis is None or not shape else {"axis": axis}
    x = np.rint(100 * random(tuple(sizes))) / 8
    graph = pair(tuple(sizes), scale, zero, opset=opset, outputs=("q", "y"), **how)
    ours, theirs = run_plan(graph, sizes[0], {"x": x}), run_ort(graph, {"x": x})
    np.testing.assert_array_equal(ours["q"], theirs["q"])
    np.testing.assert_allclose(ours["y"], theirs["y"], rtol=1e-6)
    alone = pair(tuple(sizes), scale, zero, opset=opset, **how)
    np.testing.assert_array_equal(run_plan(alone, sizes[0], {"x": x})["y"], ours["y"])


def test_without_a_zero_point_it_is_unsigned() -> None:
    agree(pair((2, 3), np.array(0.1, np.float32), None), {"x": random((2, 3))}, 2)


def test_a_pair_is_one_step_and_no_other_is() -> None:
    scale, zero = np.array(0.1, np.float32), np.array(3, np.uint8)
    assert [step.nodes for step in bare(pair((2, 3), scale, zero), 2).steps] == [("first", "second")]
    assert len(bare(pair((2, 3), scale, zero, outputs=("q", "y")), 2).steps) == 2, "q is given out"
    other = pair((2, 3), scale, zero, back=np.array(0.2, np.float32))
    assert len(bare(other, 2).steps) == 2, "by another scale"
    agree(other, {"x": random((2, 3))}, 2)


@pytest.mark.parametrize("opset", [10, 13, 21])
def test_weights_are_dequantized_beforehand(opset: int) -> None:
    constants = {
        "q": np.arange(-6, 6, dtype=np.int8).reshape(3, 4),
        "scale": np.array([0.5, 0.25, 2, 1] if opset > 10 else 0.5, np.float32),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "scale"], ["w"], "weights"),
        helper.make_node("MatMul", ["x", "w"], ["y"], "it"),
    ]
    graph = from_proto(make_model(nodes, {"x": ("N", 3)}, ["y"], constants, opset), "weights")
    assert [step.nodes for step in bare(graph, 2).steps] == [("it",)]
    agree(graph, {"x": random((2, 3))}, 2)


@pytest.mark.parametrize(
    ("op_type", "constants", "gives", "reason"),
    [
        ("QuantizeLinear", [np.float32(1), np.uint16(0)], TensorProto.UINT16, "uint16, and uint8 and int8"),
        ("QuantizeLinear", [np.ones(2, np.float32)], TensorProto.UINT8, "does not fit axis 1"),
    ],
)
def test_refusals_say_what_would_work(
    op_type: str, constants: list[np.ndarray], gives: int, reason: str
) -> None:
    named = {f"c{i}": np.asarray(value) for i, value in enumerate(constants)}
    node = helper.make_node(op_type, ["x", *named], ["y"], "it")
    proto = make_model([node], {"x": ("N", 3)}, ["y"], named, 21, types={"y": gives})
    with pytest.raises(UnsupportedError, match=rf"^node 'it' .*{reason}"):
        bare(from_proto(proto, "refused"), 2)
