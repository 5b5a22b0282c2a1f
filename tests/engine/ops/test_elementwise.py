"""Functions of one element, arithmetic, comparisons, choices and joined tensors, against ONNX Runtime."""

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
from kernels.ops.concat import MOST_PARTS
from tests.engine.harness import agree, bare, make_model, one_node, random, run_ort, run_plan

few = settings(max_examples=16, deadline=None)
BOOL = TensorProto.BOOL
SHAPE = (2, 3, 7)


def number(value: float, dtype: str = "float32") -> np.ndarray:
    return np.array(value, dtype)


def model(
    op_type: str,
    feeds: dict[str, np.ndarray],
    opset: int = 17,
    element: int | None = None,
    constants: dict[str, np.ndarray] | None = None,
    **attributes: Any,
) -> Graph:
    """y = op_type of all of these, fed but for the constants. element: of y, where it is another type."""
    types = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feeds.items()}
    held = constants or {}
    first = next(iter({**feeds, **held}.values()))
    types["y"] = element or helper.np_dtype_to_tensor_dtype(first.dtype)
    node = helper.make_node(op_type, [*feeds, *held], ["y"], "it", **attributes)
    rank = max(array.ndim for array in (*feeds.values(), *held.values()))
    inputs = {name: array.shape for name, array in feeds.items()}
    return from_proto(make_model([node], inputs, ["y"], held, opset, {"y": rank}, types), "one")


def check(graph: Graph, feeds: dict[str, np.ndarray]) -> None:
    agree(graph, feeds, graph.fixed_batch or 1)


# Each with its parameters given and as they are where they are not.
FUNCTIONS: list[tuple[str, int, dict[str, Any]]] = [
    *(
        (name, 17, {})
        for name in (
            *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp"),
            *("Floor", "HardSwish", "Log", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin"),
            *("Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh"),
        )
    ),
    ("Mish", 18, {}),
    ("Gelu", 20, {}),
    ("Gelu", 20, {"approximate": "tanh"}),
    *(("Celu", 12, attributes) for attributes in ({}, {"alpha": 0.5})),
    *(("Elu", 7, attributes) for attributes in ({}, {"alpha": 1.5})),
    *(("HardSigmoid", 7, attributes) for attributes in ({}, {"alpha": 0.3, "beta": 0.1})),
    *(("LeakyRelu", 7, attributes) for attributes in ({}, {"alpha": 0.2}, {"alpha": -0.5})),
    *(("Selu", 7, attributes) for attributes in ({}, {"alpha": 0.5, "gamma": 2.0})),
    *(("Shrink", 9, attributes) for attributes in ({}, {"lambd": 0.25, "bias": 0.5})),
    *(("ThresholdedRelu", 10, attributes) for attributes in ({}, {"alpha": -0.5})),
]


@pytest.mark.parametrize(("op_type", "opset", "attributes"), FUNCTIONS)
def test_a_function_of_one_element(op_type: str, opset: int, attributes: dict[str, Any]) -> None:
    x = random(SHAPE)
    x.flat[:6] = (0.0, 0.5, 1.5, -2.5, 3.0, -20.0)
    if op_type in ("Acos", "Asin", "Atanh"):
        x = np.tanh(x / 4)
    elif op_type in ("Acosh", "Log", "Sqrt"):
        x = np.abs(x) + np.float32(1)
    elif op_type == "Reciprocal":
        x[x == 0] = 1
    agree(one_node(op_type, SHAPE, opset=opset, **attributes), {"x": x}, 2)


@pytest.mark.parametrize("alpha", [1.0, 1.702])
def test_swish(alpha: float) -> None:
    """ONNX Runtime has none yet: what it means, in its own operators."""
    x = random(SHAPE) * 30
    graph = one_node("Swish", SHAPE, opset=24, alpha=alpha)
    wide = x.astype(np.float64)
    with np.errstate(over="ignore"):
        expected = wide / (1 + np.exp(-np.float32(alpha) * wide))
    np.testing.assert_allclose(run_plan(graph, 2, {"x": x})["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "op_type", ["Exp", "Tanh", "Elu", "Softplus", "HardSwish", "LeakyRelu", "Mish", "Clip"]
)
def test_a_nan_stays_one_and_ends_are_what_they_are(op_type: str) -> None:
    x = np.array([[np.nan, np.inf, -np.inf, 100.0, -100.0, 0.0]], np.float32)
    constants = [number(-1), number(1)] if op_type == "Clip" else []
    graph = one_node(op_type, x.shape, constants, opset=18)
    ours, theirs = run_plan(graph, 1, {"x": x})["y"], run_ort(graph, {"x": x})["y"]
    if op_type == "HardSwish":
        theirs[0, 2] = np.nan  # -inf · 0; there it is 0
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-30)


BOUNDS: list[tuple[float | None, float | None, list[str]]] = [
    (0, 6, ["unary"]),
    (-1, 0.5, ["unary"]),
    (0.5, -0.5, ["unary"]),
    (0, None, ["unary"]),
    (-0.25, None, ["binary"]),
    (None, 0.25, ["binary"]),
    (None, None, ["unary"]),
]


@pytest.mark.parametrize(("low", "high", "ops"), BOUNDS)
def test_clip(low: float | None, high: float | None, ops: list[str]) -> None:
    x = random(SHAPE) * 3
    given = [None if bound is None else number(bound) for bound in (low, high)]
    graph = one_node("Clip", SHAPE, given)
    assert [step.op for step in bare(graph, 2).steps] == ops
    agree(graph, {"x": x}, 2)
    named = {name: float(bound) for name, bound in (("min", low), ("max", high)) if bound is not None}
    if (low, high) != (0.5, -0.5):  # which ONNX Runtime takes from opset 11 on
        agree(one_node("Clip", SHAPE, opset=7, **named), {"x": x}, 2)


def test_clip_from_zero_on_is_a_relu_and_no_other_is() -> None:
    zero, six = number(0), number(6)
    kinds = {
        tuple(step.params.kind for step in bare(one_node("Clip", (2, 5), given), 2).steps)
        for given in ([zero], [zero, number(np.finfo(np.float32).max)])
    }
    assert kinds == {("relu",)}
    assert [step.params.kind for step in bare(one_node("Clip", (2, 5), [zero, six]), 2).steps] == ["clip"]


def test_clip_of_whole_numbers_is_exact_and_bounds_may_be_computed() -> None:
    x = np.array([-(2**40), -3, 0, 5, 2**53 + 1, 2**60], np.int64)
    given = {"low": np.array(-(2**40) + 1), "high": np.array(2**53 + 1)}
    assert run_plan(model("Clip", {"x": x}, constants=given), 6, {"x": x})["y"].tolist() == [
        *(-(2**40) + 1, -3, 0, 5),
        *(2**53 + 1, 2**53 + 1),
    ]
    feeds = {"x": random((6, 2)), "low": number(-0.5), "high": number(0.5)}
    check(model("Clip", feeds), feeds)
    with pytest.raises(UnsupportedError, match=r"node 'it' \(Clip\): its min is float32 of shape \(2,\)"):
        bare(one_node("Clip", (3, 2), [random((2,))]), 3)


@st.composite
def operands(draw: Any, count: int) -> list[tuple[int, ...]]:
    """Shapes that broadcast to one another."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)))
    found = []
    for _ in range(count):
        keep = draw(st.integers(0, len(shape)))
        found.append(tuple(draw(st.sampled_from([1, size])) for size in shape[len(shape) - keep :]))
    return found


@few
@given(st.sampled_from(["Max", "Min", "Pow", "Mod"]), operands(2), st.booleans())
def test_arithmetic_broadcasts(op_type: str, shapes: list[tuple[int, ...]], constant: bool) -> None:
    a, b = random(shapes[0]), random(shapes[1], 1)
    if op_type == "Pow":
        a = np.asarray(np.abs(a) + np.float32(0.1))
    attributes = {"fmod": 1} if op_type == "Mod" else {}
    fed, held = ({"a": a}, {"b": b}) if constant else ({"a": a, "b": b}, {})
    check(model(op_type, fed, constants=held, **attributes), fed)


@few
@given(st.sampled_from(["Max", "Min"]), operands(3))
def test_the_largest_of_several(op_type: str, shapes: list[tuple[int, ...]]) -> None:
    feeds = {f"x{i}": random(shape, i) for i, shape in enumerate(shapes)}
    check(model(op_type, feeds), feeds)


def test_a_nan_goes_through_the_largest_of_two() -> None:
    feeds = {"a": np.float32([np.nan, 1, 2]), "b": np.float32([1, np.nan, 3])}
    for op_type in ("Max", "Min"):
        assert np.isnan(run_plan(model(op_type, feeds), 3, feeds)["y"]).tolist() == [True, True, False]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders_of_whole_numbers(dtype: str, fmod: int) -> None:
    feeds = {"a": np.arange(-6, 6).astype(dtype), "b": np.array([-4, 3, 5, -7] * 3, dtype)}
    check(model("Mod", feeds, fmod=fmod), feeds)


@pytest.mark.parametrize("exponent", [1, 2, 3, -1, 0.5, 2.5])
def test_a_power_that_is_known(exponent: float) -> None:
    x = np.abs(random(SHAPE)) + np.float32(0.1)
    graph = one_node("Pow", SHAPE, [number(exponent)])
    agree(graph, {"x": x}, 2)
    expected = {1: "identity", 2: "mul", -1: "reciprocal"}.get(exponent, "pow")
    assert [step.params.kind for step in bare(graph, 2).steps] == [expected]


def test_powers_of_other_types() -> None:
    whole = np.array([-3, 2, 7, 10], np.int32)
    exponents = np.array([3, 10, 2, 9], np.int32)
    for a, b in (
        (whole, exponents),
        (whole.astype(np.int64), exponents),
        (whole.astype(np.float32), exponents),
    ):
        feeds = {"a": a, "b": b}
        check(model("Pow", feeds), feeds)


@few
@given(operands(1), st.booleans())
def test_slopes(shapes: list[tuple[int, ...]], constant: bool) -> None:
    shape = (2, *shapes[0])
    slopes = np.asarray(random(shapes[0], 1))
    fed, held = ({"x": random(shape)}, {"s": slopes}) if constant else ({"x": random(shape), "s": slopes}, {})
    check(model("PRelu", fed, constants=held), fed)


def test_slopes_that_are_more_than_the_input_are_refused() -> None:
    graph = one_node("PRelu", (1, 3), [random((2, 3))])
    with pytest.raises(
        UnsupportedError, match=r"slopes of shape \(2, 3\) do not broadcast to the shape \(1, 3\)"
    ):
        bare(graph, 1)


@few
@given(
    st.sampled_from(["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]),
    operands(2),
    st.sampled_from(["float32", "int32", "int64"]),
)
def test_comparisons(op_type: str, shapes: list[tuple[int, ...]], dtype: str) -> None:
    feeds = {
        name: np.asarray(np.rint(random(s, i))).astype(dtype)
        for i, (name, s) in enumerate(zip("ab", shapes, strict=True))
    }
    check(model(op_type, feeds, element=BOOL), feeds)


def test_comparisons_are_exact_where_floats_would_not_be() -> None:
    feeds = {"a": np.array([2**53, 2**53 + 1, -1]), "b": np.array([2**53 + 1, 2**53 + 1, 2**40])}
    answers = [run_plan(model(op, feeds, element=BOOL), 3, feeds)["y"].tolist() for op in ("Equal", "Less")]
    assert answers == [[False, True, False], [True, False, True]]


@few
@given(st.sampled_from(["And", "Or", "Xor"]), operands(2))
def test_logic(op_type: str, shapes: list[tuple[int, ...]]) -> None:
    feeds = {name: np.asarray(random(s, i) > 0) for i, (name, s) in enumerate(zip("ab", shapes, strict=True))}
    check(model(op_type, feeds), feeds)


def test_not_nan_and_infinity() -> None:
    x = np.float32([[np.nan, np.inf, -np.inf, 0, 1]])
    check(model("IsNaN", {"x": x}, element=BOOL), {"x": x})
    for attributes in ({}, {"detect_negative": 0}, {"detect_positive": 0}):
        check(model("IsInf", {"x": x}, element=BOOL, **attributes), {"x": x})
    none = model("IsInf", {"x": x}, element=BOOL, detect_negative=0, detect_positive=0)
    assert not run_plan(none, 1, {"x": x})["y"].any()
    check(model("Not", {"x": x > 0}), {"x": x > 0})


@few
@given(operands(3), st.sampled_from(["float32", "int64", "uint8"]))
def test_where(shapes: list[tuple[int, ...]], dtype: str) -> None:
    feeds = {"c": np.asarray(random(shapes[0]) > 0)}
    feeds |= {
        name: np.asarray(random(s, i) * 4).astype(dtype)
        for i, (name, s) in enumerate(zip("ab", shapes[1:], strict=True))
    }
    check(model("Where", feeds, element=helper.np_dtype_to_tensor_dtype(np.dtype(dtype))), feeds)


JOINED = st.tuples(
    st.lists(st.integers(1, 5), min_size=1, max_size=5),
    st.integers(0, 2),
    st.lists(st.integers(1, 3), min_size=2, max_size=2),
    st.sampled_from(["float32", "int64", "bool"]),
)


@few
@given(JOINED, st.booleans())
def test_concat(joined: Any, from_behind: bool) -> None:
    sizes, axis, others, dtype = joined
    feeds = {
        f"x{i}": np.asarray(random((*others[:axis], size, *others[axis:]), i) * 4).astype(dtype)
        for i, size in enumerate(sizes)
    }
    graph = model("Concat", feeds, axis=axis - 3 if from_behind else axis)
    if len(sizes) > 1:
        assert [step.op for step in bare(graph, feeds["x0"].shape[0]).steps] == ["concat"]
    check(graph, feeds)


@pytest.mark.parametrize("count", [MOST_PARTS, MOST_PARTS + 1, 2 * MOST_PARTS + 5])
def test_more_tensors_are_joined_than_a_kernel_takes(count: int) -> None:
    feeds = {f"x{i}": random((2, 1 + i % 3), i) for i in range(count)}
    graph = model("Concat", feeds, axis=1)
    assert len(bare(graph, 2).steps) == (1 if count <= MOST_PARTS else 2 if count < 2 * MOST_PARTS else 3)
    check(graph, feeds)


def test_one_tensor_twice_and_constants_are_joined() -> None:
    node = helper.make_node("Concat", ["x", "c", "x"], ["y"], "it", axis=1)
    graph = from_proto(
        make_model([node], {"x": ("N", 2, 3)}, ["y"], {"c": random((2, 4, 3), 5)}, ranks={"y": 3})
    )
    agree(graph, {"x": random((2, 2, 3))}, 2)
