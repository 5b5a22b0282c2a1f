"""Operators of eight-bit numbers: equal to exact arithmetic in every number, whatever the types, zero points
and scales; what cannot be exact is refused in words."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from kernels.errors import UnsupportedError
from tests.engine.harness import bare, run_ort, run_plan

EIGHT = ("uint8", "int8")
TYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "int32": TensorProto.INT32,
         "float32": TensorProto.FLOAT}  # fmt: skip
FEW = settings(max_examples=12, deadline=None)


def model(
    op_type: str, given: dict[str, np.ndarray | None], to: str, rank: int, domain: str = "", **attributes: Any
) -> Graph:
    """y = op_type(x, …), all but x constant; None leaves an optional input out."""
    names = ["x", *(name if value is not None else "" for name, value in given.items() if name != "x")]
    x = given["x"]
    assert x is not None
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"], "it", domain=domain, **attributes)],
        "made",
        [helper.make_tensor_value_info("x", TYPES[x.dtype.name], x.shape)],
        [helper.make_tensor_value_info("y", TYPES[to], [None] * rank)],
        [numpy_helper.from_array(v, n) for n, v in given.items() if v is not None and n != "x"],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return from_proto(helper.make_model(graph, ir_version=8, opset_imports=opsets), "made")


def whole(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    held = np.iinfo(dtype)
    return random.integers(held.min, held.max + 1, shape).astype(dtype)


def rounded(sums: np.ndarray, scale: np.ndarray, out_scale: Any, zero: np.ndarray, axis: int) -> np.ndarray:
    """In rational numbers: round(sum · scale / out_scale) + zero, halves to the even neighbour."""
    held = np.iinfo(zero.dtype)
    column = [1] * sums.ndim
    column[axis] = -1
    each = np.broadcast_to(scale.reshape(column) if scale.size > 1 else scale.reshape(()), sums.shape)
    found = [
        min(
            max(round(int(s) * Fraction(float(f)) / Fraction(float(out_scale))) + int(zero), held.min),
            held.max,
        )
        for s, f in zip(sums.reshape(-1), each.reshape(-1), strict=True)
    ]
    return np.array(found, zero.dtype).reshape(sums.shape)


def exact(*scales: np.ndarray) -> np.ndarray:
    """The product of float32 scales, which float64 holds."""
    return np.multiply(*(scale.astype(np.float64) for scale in scales))


def conv_sums(given: dict[str, np.ndarray], **attributes: Any) -> np.ndarray:
    """By onnx.reference's Conv in 64-bit floating point, in which they are exact."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], **attributes)
    unknown = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, None) for n in ("x", "w")]
    graph = helper.make_graph(
        [node], "c", unknown, [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)]
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = given["x"].astype(np.float64) - float(given["xz"])
    w = given["w"].astype(np.float64) - given["wz"].astype(np.float64).reshape(-1, 1, 1, 1)
    return ReferenceEvaluator(made).run(None, {"x": x, "w": w})[0].astype(np.int64)


@st.composite
def _convolution(draw: Any) -> tuple[dict[str, Any], dict[str, Any], np.random.Generator]:
    """The tensors, the attributes, and what further numbers come from."""
    random = np.random.default_rng(draw(st.integers(0, 1 << 20)))
    group = draw(st.sampled_from([1, 1, 2]))
    c, m = group * draw(st.integers(1, 3)), group * draw(st.integers(1, 3))
    kernel = [draw(st.integers(1, 3)) for _ in range(2)]
    dtypes = [draw(st.sampled_from(EIGHT)) for _ in range(2)]
    several = draw(st.booleans())
    given: dict[str, Any] = {
        "x": whole(random, (draw(st.integers(1, 2)), c, 6, 7), dtypes[0]),
        "w": whole(random, (m, c // group, *kernel), dtypes[1]),
        "xz": whole(random, (), dtypes[0]),
        "wz": whole(random, (m,) if several else (1,), dtypes[1]),
    }
    attributes = {
        "pads": [draw(st.integers(0, 1)) for _ in range(4)],
        "strides": [draw(st.integers(1, 2)) for _ in range(2)],
        "dilations": [draw(st.integers(1, 2)) for _ in range(2)],
        "group": group,
    }
    return given, attributes, random


@FEW
@given(_convolution())
def test_a_convolution_of_whole_numbers(made: tuple[Any, Any, Any]) -> None:
    given, attributes, _ = made
    order = {
        name: given[name] if name != "wz" or given[name].size > 1 else given[name].reshape(())
        for name in given
    }
    graph = model("ConvInteger", order, "int32", 4, **attributes)
    y = run_plan(graph, len(given["x"]), {"x": given["x"]})["y"]
    np.testing.assert_array_equal(y, conv_sums(given, **attributes))


@FEW
@given(_convolution(), st.sampled_from(EIGHT), st.booleans(), st.booleans())
def test_a_convolution_between_scales(made: tuple[Any, Any, Any], to: str, bias: bool, powers: bool) -> None:
    """powers: of two, so that many answers are ties."""
    given, attributes, random = made
    m = len(given["w"])
    several = given["wz"].size > 1
    draw = (lambda shape: np.exp2(random.integers(-6, -3, shape))) if powers else (
        lambda shape: random.uniform(0.01, 0.1, shape)
    )  # fmt: skip
    scales = {n: np.float32(draw(s)) for n, s in (("xs", ()), ("ws", (m,) if several else ()), ("ys", ()))}
    scales["ys"] = np.float32(scales["ys"] * 64)
    b = random.integers(-9999, 9999, m).astype(np.int32) if bias else None
    zero = whole(random, (), to)
    order = {"x": given["x"], "xs": scales["xs"], "xz": given["xz"], "w": given["w"], "ws": scales["ws"],
             "wz": given["wz"] if several else given["wz"].reshape(()), "ys": scales["ys"], "yz": zero,
             "b": b}  # fmt: skip
    graph = model("QLinearConv", order, to, 4, **attributes)
    sums = conv_sums(given, **attributes) + (0 if b is None else b.reshape(-1, 1, 1))
    expected = rounded(sums, exact(scales["xs"], scales["ws"]), scales["ys"], zero, 1)
    np.testing.assert_array_equal(run_plan(graph, len(given["x"]), {"x": given["x"]})["y"], expected)


@st.composite
def _matrices(draw: Any) -> tuple[dict[str, Any], np.random.Generator]:
    random = np.random.default_rng(draw(st.integers(0, 1 << 20)))
    m, n, k = (draw(st.integers(1, 9)) for _ in range(3))
    before = draw(st.sampled_from([(), (), (2,), (2, 3)]))
    of_b = draw(st.sampled_from([(), before]))
    dtypes = [draw(st.sampled_from(EIGHT)) for _ in range(2)]
    several = not of_b and draw(st.booleans())
    return {
        "x": whole(random, (*before, m, k), dtypes[0]),
        "w": whole(random, (*of_b, k, n), dtypes[1]),
        "xz": whole(random, (), dtypes[0]),
        "wz": whole(random, (n,) if several else (), dtypes[1]),
    }, random


def matrix_sums(given: dict[str, np.ndarray]) -> np.ndarray:
    x, w = (given[n].astype(np.int64) - given[z].astype(np.int64) for n, z in (("x", "xz"), ("w", "wz")))
    return x @ w


@FEW
@given(_matrices())
def test_a_matrix_product_of_whole_numbers(made: tuple[Any, Any]) -> None:
    given, _ = made
    graph = model("MatMulInteger", given, "int32", given["x"].ndim)
    y = run_plan(graph, len(given["x"]), {"x": given["x"]})["y"]
    np.testing.assert_array_equal(y, matrix_sums(given))


@FEW
@given(_matrices(), st.sampled_from(EIGHT), st.booleans())
def test_a_matrix_product_between_scales(made: tuple[Any, Any], to: str, powers: bool) -> None:
    given, random = made
    shape = given["wz"].shape
    scales = {
        "xs": np.float32(0.05),
        "ws": np.float32(random.uniform(0.01, 0.1, shape)),
        "ys": np.float32(3.7),
    }
    if powers:
        scales = {
            "xs": np.float32(0.5),
            "ws": np.float32(np.exp2(random.integers(-6, -2, shape))),
            "ys": np.float32(8),
        }
    zero = whole(random, (), to)
    order = {"x": given["x"], "xs": scales["xs"], "xz": given["xz"], "w": given["w"], "ws": scales["ws"],
             "wz": given["wz"], "ys": scales["ys"], "yz": zero}  # fmt: skip
    graph = model("QLinearMatMul", order, to, given["x"].ndim)
    sums = matrix_sums(given)
    expected = rounded(sums, exact(scales["xs"], scales["ws"]), scales["ys"], zero, sums.ndim - 1)
    np.testing.assert_array_equal(run_plan(graph, len(given["x"]), {"x": given["x"]})["y"], expected)


@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("to", ["uint8", "int8", "float32"])
def test_microsofts_product(to: str, trans_b: int) -> None:
    random = np.random.default_rng(trans_b)
    a, b = whole(random, (3, 40), "uint8"), whole(random, (5, 40) if trans_b else (40, 5), "int8")
    c = random.integers(-5000, 5000, 5).astype(np.int32)
    of_a, of_b = np.float32(0.05), np.float32(random.uniform(0.01, 0.1, 5))
    sums = (a.astype(np.int64) - 7) @ (b.T if trans_b else b).astype(np.int64) + c
    order = {"x": a, "as": of_a, "az": np.uint8(7), "b": b, "bs": of_b, "bz": np.zeros(5, np.int8), "c": c}
    if to != "float32":
        order |= {"ys": np.float32(1.3), "yz": np.array(3, to)}
    graph = model("QGemm", order, to, 2, "com.microsoft", transB=trans_b)
    y = run_plan(graph, 3, {"x": a})["y"]
    if to == "float32":
        np.testing.assert_array_equal(y, (sums * exact(of_a, of_b)).astype(np.float32))
    else:
        np.testing.assert_array_equal(
            y, rounded(sums, exact(of_a, of_b), np.float32(1.3), np.array(3, to), 1)
        )


@pytest.mark.parametrize("dtype", EIGHT)
@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("QLinearAdd", {}),
        ("QLinearMul", {}),
        ("QLinearConcat", {"axis": 1}),
        ("QLinearAveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("QLinearGlobalAveragePool", {"channels_last": 0}),
        ("QLinearLeakyRelu", {"alpha": 0.1}),
        ("QLinearSigmoid", {}),
        ("QLinearSoftmax", {"axis": -1, "opset": 13}),
    ],
)
def test_microsofts_operators_between_scales_are_those_of_onnx_runtime(
    op_type: str, attributes: dict[str, Any], dtype: str
) -> None:
    """But for a quantum where float32 is near a tie."""
    random = np.random.default_rng(3)
    x, low = whole(random, (2, 3, 4, 6), dtype), np.iinfo(dtype).min
    scales = {"xs": np.float32(0.043), "xz": np.array(low + 99, dtype)}
    out = {"ys": np.float32(0.071), "yz": np.array(low + 120, dtype)}
    if op_type == "QLinearSoftmax":
        out = {"ys": np.float32(1 / 256), "yz": np.array(low, dtype)}
    order: dict[str, Any] = {"x": x, **scales}
    if op_type in ("QLinearAdd", "QLinearMul"):
        other = {
            "b": whole(random, (2, 3, 4, 6), dtype),
            "bs": np.float32(0.017),
            "bz": np.array(low + 7, dtype),
        }
        order |= other
    order |= out
    if op_type == "QLinearConcat":
        node = helper.make_node(op_type, ["ys", "yz", "x", "xs", "xz", "x", "xs", "xz"], ["y"], "it",
                                domain="com.microsoft", **attributes)  # fmt: skip
        proto = model("QLinearSigmoid", order, dtype, 4, "com.microsoft").whole_proto()
        proto.graph.node[0].CopyFrom(node)
        graph = from_proto(proto, "concat")
    else:
        graph = model(op_type, order, dtype, 4, "com.microsoft", **attributes)
    ours, theirs = (
        run({"x": x})["y"].astype(int)
        for run in (lambda f: run_plan(graph, 2, f), lambda f: run_ort(graph, f))
    )
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= 1
    assert (ours != theirs).mean() < 0.02


@FEW
@given(st.integers(0, 1 << 20), st.sampled_from(["both", "above", "below", "none"]), st.integers(1, 40))
def test_a_range_that_is_found_in_the_pass(seed: int, side: str, count: int) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(size=(2, count)).astype(np.float32)
    x = {"both": x, "above": np.abs(x) + 1, "below": -np.abs(x), "none": 0 * x}[side]
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"], "it")
    outputs = {
        "y": (TensorProto.UINT8, [None, None]),
        "scale": (TensorProto.FLOAT, []),
        "zero": (TensorProto.UINT8, []),
    }
    values = [helper.make_tensor_value_info(name, *how) for name, how in outputs.items()]
    made = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)], values
    )
    proto = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    y = run_plan(from_proto(proto, "dynamic"), 2, {"x": x})
    expected = dict(zip(("y", "scale", "zero"), ReferenceEvaluator(proto).run(None, {"x": x}), strict=True))
    for name, value in expected.items():
        np.testing.assert_array_equal(y[name], value, name)


def test_the_largest_of_eight_bit_numbers() -> None:
    for dtype in EIGHT:
        x = whole(np.random.default_rng(1), (2, 3, 7, 7), dtype)
        graph = model("MaxPool", {"x": x}, dtype, 4, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
        np.testing.assert_array_equal(run_plan(graph, 2, {"x": x})["y"], run_ort(graph, {"x": x})["y"])


def test_sums_that_32_bits_do_not_hold() -> None:
    """Wrapped where int32 is the answer, as ONNX allows; refused where real numbers are made of them."""
    k = 40_000
    given: dict[str, Any] = {"x": np.full((1, k), 255, np.uint8), "w": np.full((k, 2), 255, np.uint8)}
    y = run_plan(model("MatMulInteger", given, "int32", 2), 1, {"x": given["x"]})["y"]
    np.testing.assert_array_equal(y, np.full((1, 2), k * 255 * 255, np.int64).astype(np.int32))
    one, none = np.float32(1), np.uint8(0)
    order = {
        "x": given["x"],
        "xs": one,
        "xz": none,
        "w": given["w"],
        "ws": one,
        "wz": none,
        "ys": one,
        "yz": none,
    }
    with pytest.raises(UnsupportedError, match="a sum of its 40,000 products may be beyond 32 bits"):
        bare(model("QLinearMatMul", order, "uint8", 2), 1)
    small = {**order, "w": (given["w"] // 100).astype(np.uint8)}
    assert [step.op for step in bare(model("QLinearMatMul", small, "uint8", 2), 1).steps] == ["qgemm"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ys": np.float32([1, 2])}, r"its last scale is float32 of shape \(2,\), and one"),
        ({"wz": np.zeros(3, np.int8)}, r"zero points of shape \(3,\) do not fit 2 channels"),
        (
            {"x": np.zeros((1, 3, 4, 4, 4), np.uint8), "w": np.zeros((2, 3, 1, 1, 1), np.int8)},
            "one or two axes",
        ),
    ],
)
def test_refusals_say_why(change: dict[str, np.ndarray], reason: str) -> None:
    order: dict[str, Any] = {
        "x": np.zeros((1, 3, 4, 4), np.uint8), "xs": np.float32(1), "xz": np.uint8(0),
        "w": np.zeros((2, 3, 1, 1), np.int8), "ws": np.float32(1), "wz": np.int8(0), "ys": np.float32(1),
        "yz": np.uint8(0),
    }  # fmt: skip
    order |= change
    with pytest.raises(UnsupportedError, match=f"^node 'it' .*{reason}"):
        bare(model("QLinearConv", order, "uint8", order["x"].ndim), 1)


def test_the_oracle_says_the_same() -> None:
    """Its operators of whole numbers, which stand beside onnx.reference's own and those it has not."""
    from bench.measure.answers import oracle

    random = np.random.default_rng(5)
    x = whole(random, (2, 3, 5, 5), "uint8")
    order = {"x": x, "xs": np.float32(0.5), "xz": np.uint8(9), "w": whole(random, (4, 3, 3, 3), "int8"),
             "ws": np.float32([0.25, 0.5, 1, 0.125]), "wz": np.zeros(4, np.int8), "ys": np.float32(64),
             "yz": np.uint8(101)}  # fmt: skip
    graph = model("QLinearConv", order, "uint8", 4)
    found = oracle.run(graph, {"x": x}, ["y"])["y"]
    np.testing.assert_array_equal(found, run_plan(graph, 2, {"x": x})["y"])
