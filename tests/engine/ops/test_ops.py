"""Every operator file against ONNX Runtime: shapes and values, over drawn shapes and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from engine.graph.importer import from_proto
from engine.ops import operators, supported
from kernels.errors import UnsupportedError
from tests.engine.harness import agree, bare, make_model, one_node, random

few = settings(max_examples=16, deadline=None)
small = st.integers(1, 3)


def windows(draw: Any, rank: int) -> dict[str, Any]:
    """Attributes of a sliding window and its kernel_shape."""
    ints = lambda low, high, n: draw(st.lists(st.integers(low, high), min_size=n, max_size=n))  # noqa: E731
    attributes: dict[str, Any] = {"kernel_shape": ints(1, 4, rank), "strides": ints(1, 3, rank)}
    attributes["auto_pad"] = draw(st.sampled_from(["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    if attributes["auto_pad"] == "NOTSET":
        attributes["pads"] = [
            p % k for p, k in zip(ints(0, 3, 2 * rank), attributes["kernel_shape"] * 2, strict=True)
        ]
    return attributes


@st.composite
def convolutions(draw: Any) -> tuple[tuple[int, ...], list[np.ndarray | None], dict[str, Any]]:
    rank = draw(st.sampled_from([1, 2, 2]))
    attributes = windows(draw, rank)
    if not attributes["auto_pad"].startswith("SAME"):  # ONNX Runtime refuses SAME with a dilation
        attributes["dilations"] = draw(st.lists(st.integers(1, 2), min_size=rank, max_size=rank))
    group, c, m = draw(small), draw(small), draw(small)
    attributes["group"] = group
    spatial = draw(st.lists(st.integers(1, 9), min_size=rank, max_size=rank))
    weight = random((m * group, c, *attributes["kernel_shape"]), 1)
    bias = random((m * group,), 2) if draw(st.booleans()) else None
    return (draw(small), c * group, *spatial), [weight, bias], attributes


@few
@given(convolutions())
def test_conv(case: Any) -> None:
    shape, constants, attributes = case
    graph = one_node("Conv", shape, constants, **attributes)
    try:
        bare(graph, shape[0])
    except UnsupportedError as error:
        assert "larger than the padded image" in str(error)  # noqa: PT017
        assume(False)
    agree(graph, {"x": random(shape)}, shape[0])


def test_conv_pads_the_dilated_window_evenly() -> None:
    """SAME_LOWER: 5 pixels by stride 2 make 3, which a window of 2·2+1 reaches from (3−1)·2+5−5 = 4 pads."""
    same = one_node("Conv", (1, 1, 5), [random((1, 1, 3))], auto_pad="SAME_LOWER", dilations=[2], strides=[2])
    explicit = one_node("Conv", (1, 1, 5), [random((1, 1, 3))], pads=[2, 2], dilations=[2], strides=[2])
    assert bare(same, 1).steps[0].params == bare(explicit, 1).steps[0].params


@st.composite
def pools(draw: Any) -> tuple[str, int, tuple[int, ...], dict[str, Any]]:
    rank = draw(st.sampled_from([1, 2, 2]))
    attributes = windows(draw, rank)
    op_type, opset = draw(st.sampled_from([("MaxPool", 12), ("AveragePool", 11), ("AveragePool", 19)]))
    if attributes["auto_pad"].startswith("SAME"):  # ONNX Runtime refuses windows with gaps between them
        pairs = zip(attributes["strides"], attributes["kernel_shape"], strict=True)
        attributes["strides"] = [min(stride, kernel) for stride, kernel in pairs]
    attributes["ceil_mode"] = draw(st.integers(0, 1))
    if op_type == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    if (op_type == "MaxPool" or opset == 19) and attributes["auto_pad"] in ("NOTSET", "VALID"):
        attributes["dilations"] = draw(st.lists(st.integers(1, 2), min_size=rank, max_size=rank))
    spatial = draw(st.lists(st.integers(4, 9), min_size=rank, max_size=rank))
    return op_type, opset, (draw(small), draw(small), *spatial), attributes


@settings(max_examples=32, deadline=None)
@given(pools())
def test_pool(case: Any) -> None:
    op_type, opset, shape, attributes = case
    graph = one_node(op_type, shape, opset=opset, **attributes)
    try:
        bare(graph, shape[0])
    except UnsupportedError as error:
        assert "larger than the padded image" in str(error)  # noqa: PT017
        assume(False)
    agree(graph, {"x": random(shape)}, shape[0])


@pytest.mark.parametrize("op_type", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("spatial", [(7,), (3, 5), (2, 3, 2)])
def test_global_pool(op_type: str, spatial: tuple[int, ...]) -> None:
    shape = (2, 3, *spatial)
    agree(one_node(op_type, shape), {"x": random(shape)}, 2)


@few
@given(st.data())
def test_gemm(data: st.DataObject) -> None:
    m, n, k = (data.draw(st.integers(1, 6)) for _ in range(3))
    trans_a, trans_b = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 1))
    bias = data.draw(st.sampled_from([None, (), (1,), (n,), (1, n), (m, 1), (m, n)]))
    a, b = (k, m) if trans_a else (m, k), (n, k) if trans_b else (k, n)
    attributes = {"transA": trans_a, "transB": trans_b, "alpha": data.draw(st.sampled_from([1.0, 0.5]))}
    attributes["beta"] = data.draw(st.sampled_from([1.0, 0.0, 2.0]))
    graph = one_node("Gemm", a, [random(b, 1), None if bias is None else random(bias, 2)], **attributes)
    agree(graph, {"x": random(a)}, a[0])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3, 4)),
        ((2, 5, 3), (3, 4)),
        ((2, 5, 3), (2, 3, 4)),
        ((2, 4, 5, 3), (2, 4, 3, 4)),
        ((2, 4, 5, 3), (1, 1, 3, 4)),
        ((1, 5, 3), (4, 3, 2)),
        ((2, 5, 3), (3,)),
        ((3,), (3, 4)),
        ((3,), (5, 3, 2)),
    ],
)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    rank = np.matmul(np.zeros(a), np.zeros(b)).ndim
    node = helper.make_node("MatMul", ["x", "b"], ["y"])
    graph = from_proto(make_model([node], {"x": a, "b": b}, ["y"], ranks={"y": rank}))
    agree(graph, {"x": random(a), "b": random(b, 1)}, a[0])


@few
@given(st.data())
def test_binary_broadcasts_as_numpy_does(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)))
    keep = data.draw(st.integers(0, len(shape)))
    other = tuple(data.draw(st.sampled_from([1, size])) for size in shape[len(shape) - keep :])
    swapped = data.draw(st.booleans())
    node = helper.make_node(
        data.draw(st.sampled_from(["Add", "Sub", "Mul", "Div"])), ["ab"[swapped], "ba"[swapped]], ["y"]
    )
    graph = from_proto(make_model([node], {"a": shape, "b": other}, ["y"], ranks={"y": len(shape)}, opset=7))
    feeds = {"a": np.asarray(random(shape) + 3), "b": np.asarray(random(other, 1) + 3)}
    agree(graph, feeds, shape[0] if len(shape) else 1)


@pytest.mark.parametrize("op_type", ["Relu", "Tanh", "Sigmoid"])
def test_unary(op_type: str) -> None:
    agree(one_node(op_type, (2, 3, 4)), {"x": random((2, 3, 4))}, 2)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn(size: int) -> None:
    shape = (2, 6, 3, 4)
    agree(one_node("LRN", shape, size=size, alpha=0.1, beta=0.6, bias=2.0), {"x": random(shape)}, 2)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("opset", [7, 11, 13, 23])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
def test_softmax_means_what_its_opset_says(op_type: str, opset: int, axis: int | None) -> None:
    shape = (2, 3, 4)
    attributes = {} if axis is None else {"axis": axis}
    agree(one_node(op_type, shape, opset=opset, **attributes), {"x": random(shape)}, 2)


@pytest.mark.parametrize(
    ("shape", "wanted", "allow_zero"),
    [
        ((2, 3, 4), [0, -1], 0),
        ((2, 3, 4), [-1, 4], 0),
        ((2, 3, 4), [0, 2, 6], 1),
        ((2, 12), [0, 3, 4], 0),
        ((1,), [], 0),
    ],
)
def test_reshape(shape: tuple[int, ...], wanted: list[int], allow_zero: int) -> None:
    constants = [np.array(wanted, np.int64)]
    graph = one_node("Reshape", shape, constants, rank=len(wanted), allowzero=allow_zero)
    if allow_zero:
        with pytest.raises(UnsupportedError, match=r"\(2, 3, 4\) does not fit shape \(0, 2, 6\)"):
            bare(graph, shape[0])
    else:
        agree(graph, {"x": random(shape)}, shape[0])


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_flatten(axis: int) -> None:
    agree(one_node("Flatten", (2, 3, 4), rank=2, axis=axis), {"x": random((2, 3, 4))}, 2)


@pytest.mark.parametrize("opset", [11, 13])
def test_squeeze_and_unsqueeze(opset: int) -> None:
    def given_axes(axes: list[int]) -> tuple[list[np.ndarray | None], dict[str, Any]]:
        return ([np.array(axes, np.int64)], {}) if opset >= 13 else ([], {"axes": axes})

    constants, attributes = given_axes([1, -1])
    agree(
        one_node("Squeeze", (2, 1, 3, 1), constants, opset, rank=2, **attributes),
        {"x": random((2, 1, 3, 1))},
        2,
    )
    agree(one_node("Unsqueeze", (2, 3), constants, opset, rank=4, **attributes), {"x": random((2, 3))}, 2)
    agree(one_node("Squeeze", (2, 1, 3), opset=opset, rank=2), {"x": random((2, 1, 3))}, 2)


@few
@given(st.permutations(range(4)), st.lists(st.integers(1, 3), min_size=4, max_size=4))
def test_transpose(perm: list[int], shape: list[int]) -> None:
    agree(one_node("Transpose", tuple(shape), perm=perm), {"x": random(tuple(shape))}, shape[0])


@few
@given(st.data())
def test_pad(data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from(["constant", "reflect", "edge", "wrap"]))
    shape = tuple(data.draw(st.lists(st.integers(3, 5), min_size=2, max_size=4)))
    low = -1 if mode == "constant" else 0
    pads = data.draw(st.lists(st.integers(low, 2), min_size=2 * len(shape), max_size=2 * len(shape)))
    opset = data.draw(st.sampled_from([10, 13]))
    if opset < 11:
        graph = one_node("Pad", shape, opset=opset, pads=pads, mode=mode, value=1.5)
    else:
        fill = np.array(1.5, np.float32) if mode == "constant" else None
        graph = one_node("Pad", shape, [np.array(pads, np.int64), fill], opset, mode=mode)
    agree(graph, {"x": random(shape)}, shape[0])


def test_pad_of_chosen_axes() -> None:
    constants = [np.array([1, 2], np.int64), None, np.array([-1], np.int64)]
    agree(one_node("Pad", (2, 3, 4), constants, opset=18), {"x": random((2, 3, 4))}, 2)


@pytest.mark.parametrize("opset", [7, 9, 15])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3), (2, 3, 4)])
def test_batch_normalization_alone(opset: int, shape: tuple[int, ...]) -> None:
    statistics = [random((3,), 1), random((3,), 2), random((3,), 3), np.abs(random((3,), 4))]
    agree(one_node("BatchNormalization", shape, statistics, opset, epsilon=0.01), {"x": random(shape)}, 2)


def test_dropout_and_identity_move_nothing() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Dropout", ["r"], ["d", "mask"], ratio=0.5),
        helper.make_node("Identity", ["d"], ["i"]),
        helper.make_node("Cast", ["i"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("Tanh", ["c"], ["y"]),
    ]
    graph = from_proto(make_model(nodes, {"x": ("N", 4)}, ["y"], opset=10))
    made = bare(graph, 2)
    assert [step.op for step in made.steps] == ["unary", "unary"]
    assert made.holder("c") == "r"
    agree(graph, {"x": random((2, 4))}, 2)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (one_node("Conv", (1, 1, 4, 4, 4, 4), [random((1, 1, 2, 2, 2, 2))]), "4 spatial axes"),
        (one_node("Dropout", (1, 4), [None, np.array(True)]), "training mode"),
        (
            one_node("Det", (1, 4, 4), rank=1),
            r"does not support Det on data .* docs/conformance.md lists what",
        ),
    ],
)
def test_a_refusal_names_node_op_and_reason(graph: Any, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"^node 'it' \({graph.nodes[0].op_type}\): .*{reason}"):
        bare(graph, 1)


def test_the_folder_is_the_list() -> None:
    assert supported() == tuple(sorted(operators()))
    asked = """Conv MaxPool AveragePool GlobalAveragePool Gemm MatMul Add Mul Sub Div Relu Tanh Sigmoid LRN
    Softmax LogSoftmax Flatten Reshape Dropout Identity Cast Transpose Pad BatchNormalization"""
    assert set(asked.split()) <= set(supported())
