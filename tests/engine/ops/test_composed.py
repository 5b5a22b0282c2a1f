"""Operators that are several kernels of others, or one by another name, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from engine.graph.importer import from_proto
from engine.ops import supported
from kernels.errors import KernelscopeError, UnsupportedError
from tests.engine.harness import agree, bare, make_model, one_node, random

few = settings(max_examples=16, deadline=None)
small = st.integers(1, 3)


@st.composite
def reductions(draw: Any) -> tuple[str, int, tuple[int, ...], list[int] | None, int]:
    op_type = draw(st.sampled_from([name for name in supported() if name.startswith("Reduce")]))
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)))
    axes = draw(st.one_of(st.none(), st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True)))
    if axes is not None:
        axes = [axis - len(shape) if draw(st.booleans()) else axis for axis in axes]
    return op_type, draw(st.sampled_from([7, 11, 12, 13, 17, 18, 21])), shape, axes, draw(st.integers(0, 1))


@few
@given(reductions())
def test_reductions_over_any_axes(case: Any) -> None:
    op_type, opset, shape, axes, keep = case
    by_input = opset >= (13 if op_type == "ReduceSum" else 18)
    constants = [np.array(axes)] if by_input and axes is not None else []
    attributes = {"axes": axes} if not by_input and axes is not None else {}
    rank = len(shape) if keep else len(shape) - (len(shape) if axes is None else len(axes))
    graph = one_node(op_type, shape, constants, opset=opset, rank=rank, keepdims=keep, **attributes)
    x = random(shape)
    if op_type == "ReduceLogSum":
        x = np.abs(x)
    agree(graph, {"x": x}, shape[0], tolerance=5e-5)


def test_the_mean_of_an_image_is_a_global_pool() -> None:
    mean = one_node("ReduceMean", (2, 3, 5, 7), axes=[2, -1], keepdims=1)
    pool = one_node("GlobalAveragePool", (2, 3, 5, 7))
    assert bare(mean, 2).steps[0].params == bare(pool, 2).steps[0].params


def test_reduction_with_no_axes_at_all_is_a_view() -> None:
    graph = one_node("ReduceMean", (2, 3), [np.array([], np.int64)], opset=18, noop_with_empty_axes=1)
    agree(graph, {"x": random((2, 3))}, 2)


@pytest.mark.parametrize("axes", [[0, 0], [1, -1], [2], [-3]])
def test_reduction_refuses_axes_that_are_none(axes: list[int]) -> None:
    with pytest.raises(KernelscopeError, match="axis"):
        bare(one_node("ReduceSum", (2, 3), [np.array(axes)], rank=0), 2)


@few
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_slice(sizes: list[int], data: Any) -> None:
    opset = data.draw(st.sampled_from([7, 10, 13]))
    axes = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, unique=True))
    starts = [data.draw(st.integers(-sizes[axis], sizes[axis] - 1)) for axis in axes]
    ends = [
        data.draw(st.integers(start % sizes[axis] + 1, 9)) for start, axis in zip(starts, axes, strict=True)
    ]
    axes = [axis - len(sizes) if opset > 7 and data.draw(st.booleans()) else axis for axis in axes]
    shape = tuple(sizes)
    if opset < 10:
        graph = one_node("Slice", shape, opset=opset, starts=starts, ends=ends, axes=axes)
    else:
        graph = one_node("Slice", shape, [np.array(v) for v in (starts, ends, axes)], opset=opset)
    agree(graph, {"x": random(shape)}, shape[0])


def test_slice_refuses_what_leaves_nothing() -> None:
    def refused(*constants: list[int]) -> str:
        graph = one_node("Slice", (2, 6), [np.array(c) for c in constants])
        with pytest.raises(UnsupportedError) as caught:
            bare(graph, 2)
        return str(caught.value)

    assert "leaves nothing" in refused([3], [3], [1], [1])


@few
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 1), st.data())
def test_split_and_concat(parts: list[int], other: int, data: Any) -> None:
    shape, axis = [2, 3, 3], 1 + other
    shape[axis] = sum(parts)
    opset = data.draw(st.sampled_from([7, 11, 13, 18]))
    names = [f"p{i}" for i in range(len(parts))]
    split = helper.make_node(
        "Split",
        ["x", *(["parts"] if opset >= 13 else [])],
        names,
        "split",
        axis=axis - 3 if opset > 7 else axis,
    )
    constants = {"parts": np.array(parts)} if opset >= 13 else {}
    if opset < 13:
        split.attribute.append(helper.make_attribute("split", parts))
    concat = helper.make_node("Concat", names[::-1], ["y"], "concat", axis=axis)
    outputs = ["y", *names]
    model = make_model(
        [split, concat], {"x": ("N", *shape[1:])}, outputs, constants, opset, dict.fromkeys(outputs, 3)
    )
    agree(from_proto(model, "parts"), {"x": random(tuple(shape))}, 2)


def test_parts_that_do_not_fit_are_refused() -> None:
    concat = helper.make_node("Concat", ["x", "c"], ["y"], "concat", axis=1)
    model = make_model([concat], {"x": ("N", 3, 4)}, ["y"], {"c": random((2, 3, 5))}, ranks={"y": 3})
    # What ONNX itself can tell is told at import; where the batch is not known it cannot.
    with pytest.raises(KernelscopeError):
        bare(from_proto(model, "parts"), 2)
    for opset, parts in ((13, [2, 2]), (13, [0, 5]), (13, [6, -1])):
        graph = one_node("Split", (2, 5), [np.array(parts)], opset=opset, outputs=2)
        with pytest.raises(UnsupportedError, match="do not make up the 2 along axis 0"):
            bare(graph, 2)


def test_uneven_split_is_of_opset_18() -> None:
    graph = one_node("Split", (2, 5), opset=18, outputs=3, axis=1, num_outputs=3)
    agree(graph, {"x": random((2, 5))}, 2)
    with pytest.raises(UnsupportedError, match="not evenly splittable"):
        bare(one_node("Split", (2, 5), opset=13, outputs=3, axis=1), 2)
    with pytest.raises(UnsupportedError, match="do not divide into 3"):
        bare(one_node("Split", (2, 5), opset=13, outputs=3), 2)


@few
@given(st.sampled_from(["Sum", "Mean"]), st.integers(1, 4), st.data())
def test_sums_of_any_number(op_type: str, count: int, data: Any) -> None:
    shape = (2, 3, 4)
    others = [
        random(
            tuple(data.draw(st.sampled_from([1, size])) for size in shape[data.draw(st.integers(0, 2)) :]), i
        )
        for i in range(1, count)
    ]
    agree(one_node(op_type, shape, others), {"x": random(shape)}, 2)


@few
@given(small, small, small, st.integers(1, 3), st.sampled_from(["DCR", "CRD"]))
def test_depth_and_space(c: int, h: int, w: int, block: int, mode: str) -> None:
    deep, wide = (2, c * block * block, h, w), (2, c, h * block, w * block)
    agree(one_node("DepthToSpace", deep, blocksize=block, mode=mode), {"x": random(deep)}, 2)
    agree(one_node("SpaceToDepth", wide, blocksize=block), {"x": random(wide)}, 2)


@few
@given(st.lists(st.booleans(), min_size=1, max_size=3), st.integers(0, 2))
def test_expand(ones: list[bool], more: int) -> None:
    shape = (2, *(1 if one else 3 for one in ones))
    wanted = [2] * more + [1, *(3 for _ in ones)]
    agree(one_node("Expand", shape, [np.array(wanted)], rank=len(wanted)), {"x": random(shape)}, 2)


def test_nobody_drops_out_and_the_mask_says_so() -> None:
    node = helper.make_node("Dropout", ["x"], ["y", "mask"], "drop")
    types = {"mask": TensorProto.BOOL}
    graph = from_proto(make_model([node], {"x": ("N", 3)}, ["y", "mask"], opset=13, types=types), "drop")
    agree(graph, {"x": random((2, 3))}, 2)
