"""Quantized models in the QDQ form: ONNX Runtime's answers, a step a pair, weights dequantized beforehand."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

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


INTEGERS = ("uint16", "int16", "uint8", "int8", "uint4", "int4", "uint2", "int2")
FLOATING = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn")


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(INTEGERS + FLOATING),
    st.sampled_from(["float32", "float16"]),
    st.sampled_from(["tensor", "axis", "block"]),
    st.booleans(),
    st.data(),
)
def test_every_type_is_quantized_to_as_onnx_says(
    dtype: str, real: str, by: str, quantizes: bool, data: Any
) -> None:
    """By tensor, axis or block (of which the last may be cut), with scales in half precision, too; against
    ONNX's own evaluator."""
    sizes = tuple(data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=4)))
    axis, block = data.draw(st.integers(0, len(sizes) - 1)), data.draw(st.integers(1, 3))
    blocks = (*sizes[:axis], -(-sizes[axis] // block), *sizes[axis + 1 :])
    shape = {"tensor": (), "axis": (sizes[axis],), "block": blocks}[by]
    numbers = np.random.default_rng(len(sizes) + block)
    scale = np.asarray(numbers.choice([0.25, 0.5, 0.3], shape), real)
    zero = np.zeros(shape, dtype)
    if dtype in INTEGERS:
        held = ml_dtypes.iinfo(dtype)
        zero = np.asarray(numbers.integers(int(held.min), int(held.max) + 1, shape)).astype(dtype)
    how = {"axis": axis, **({"block_size": block} if by == "block" else {})}
    op_type, x = "QuantizeLinear", (np.rint(100 * random(sizes)) / 8).astype(real)
    if not quantizes:
        op_type, x = "DequantizeLinear", np.rint(9 * random(sizes)).astype(dtype)
    of, to = (helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in (real, dtype))
    types = {"x": of, "y": to} if quantizes else {"x": to, "y": of}
    node = helper.make_node(op_type, ["x", "scale", "zero"], ["y"], "it", **how)
    constants = {"scale": scale, "zero": zero}
    proto = make_model([node], {"x": sizes}, ["y"], constants, 25, {"y": len(sizes)}, types)
    expected = ReferenceEvaluator(proto).run(None, {"x": x})[0]
    ours = run_plan(from_proto(proto, "any"), sizes[0], {"x": x})["y"]
    assert ours.dtype == expected.dtype
    np.testing.assert_array_equal(ours.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize(
    ("op_type", "constants", "gives", "reason"),
    [
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
