"""The oracle's mends agree with ONNX Runtime where onnx.reference does not, and its answers are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from bench.measure.answers import accuracy, cross_check, oracle, ties, widened
from bench.measure.answers.cross_check import cross_check as crossed
from bench.measure.answers.operators import mended
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from tests.engine.harness import make_model, one_node, random, run_ort

few = settings(max_examples=30, deadline=None)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(oracle, "_kept", type(oracle._kept)())
    monkeypatch.setattr(cross_check, "_known", type(cross_check._known)())


def agrees(graph: Graph, x: np.ndarray) -> np.ndarray:
    """The oracle's y for x, once ONNX Runtime's is the same within float32."""
    ours = oracle.run(graph, {"x": x}, ["y"])["y"]
    theirs = run_ort(graph, {"x": x})["y"]
    assert ours.dtype == np.float64
    assert ours.shape == theirs.shape
    stats = accuracy.error_stats(theirs, ours, "fp32")
    assert stats.ok, stats.reason
    return ours


@pytest.mark.parametrize("size", [1, 3, 5, 9])
@pytest.mark.parametrize("shape", [(2, 7, 3, 2), (5, 3, 2, 2), (1, 1, 2, 2)])
def test_lrn_sums_over_channels_whatever_the_batch(shape: tuple[int, ...], size: int) -> None:
    graph = one_node("LRN", shape, size=size, alpha=0.5, beta=0.6, bias=1.5)
    agrees(graph, random(shape) * 3)


def test_lrn_of_even_size_reaches_further_up() -> None:
    x = random((2, 5, 2, 2)).astype(np.float64)
    graph = one_node("LRN", x.shape, size=4, alpha=4.0, beta=1.0)
    sums = [np.sum(x[:, max(0, c - 1) : c + 3] ** 2, axis=1) for c in range(5)]  # ONNX Runtime refuses these
    expected = x / (1.0 + np.stack(sums, axis=1))
    np.testing.assert_allclose(oracle.run(graph, {"x": x}, ["y"])["y"], expected)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(
    ("opset", "axis"), [(7, None), (11, 0), (11, 2), (12, 1), (11, -1), (13, None), (13, 1), (17, 0)]
)
def test_softmax_means_what_its_opset_says(op_type: str, opset: int, axis: int | None) -> None:
    attributes = {} if axis is None else {"axis": axis}
    agrees(one_node(op_type, (3, 4, 5), opset=opset, **attributes), random((3, 4, 5)) * 5)


@few
@given(st.data(), st.sampled_from([7, 11, 12, 13, 17]), st.lists(st.integers(1, 4), min_size=2, max_size=4))
def test_hardmax_means_what_its_opset_says(data: st.DataObject, opset: int, sizes: list[int]) -> None:
    axis = data.draw(st.sampled_from([None, *range(-len(sizes) if opset >= 11 else 0, len(sizes))]))
    attributes = {} if axis is None else {"axis": axis}
    graph = one_node("Hardmax", tuple(sizes), opset=opset, **attributes)
    y = agrees(graph, random(tuple(sizes), data.draw(st.integers(0, 9))))
    assert set(np.unique(y)) <= {0.0, 1.0}


@few
@given(st.sampled_from([18, 21]), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.integers(0, 9))
def test_group_normalization_of_both_forms(opset: int, groups: int, each: int, axes: int, seed: int) -> None:
    """A scale a group in opset 18, a channel in 21: by their own texts, for ONNX Runtime has one of them."""
    channels, rows = groups * each, 2
    x = random((rows, channels, 3, 2, 2)[: 2 + axes], seed).astype(np.float64)
    count = groups if opset == 18 else channels
    scale, bias = random((count,), seed + 1), random((count,), seed + 2)
    graph = one_node("GroupNormalization", x.shape, [scale, bias], opset=opset, num_groups=groups)
    rows_of = x.reshape(rows, groups, -1)
    normal = (rows_of - rows_of.mean(2, keepdims=True)) / np.sqrt(rows_of.var(2, keepdims=True) + 1e-5)
    by_channel = normal.reshape(rows, channels, -1)
    of = [c // each if opset == 18 else c for c in range(channels)]
    expected = by_channel * scale[of][None, :, None] + bias[of][None, :, None]
    np.testing.assert_allclose(oracle.run(graph, {"x": x}, ["y"])["y"], expected.reshape(x.shape), atol=1e-12)


def test_log_softmax_of_scores_far_apart_is_finite() -> None:
    answer = agrees(one_node("LogSoftmax", (1, 2)), np.array([[0.0, 2000.0]], np.float32))
    np.testing.assert_array_equal(answer, [[-2000.0, 0.0]])


@pytest.mark.parametrize("opset", [7, 9, 14, 15])
def test_batch_normalization_uses_the_statistics_it_is_given(opset: int) -> None:
    c = 5
    constants = [random((c,), 1), random((c,), 2), random((c,), 3), np.abs(random((c,), 4)) + 0.1]
    agrees(one_node("BatchNormalization", (3, c, 4, 2), constants, opset, epsilon=1e-3), random((3, c, 4, 2)))


@st.composite
def windows(draw: Any) -> tuple[tuple[int, ...], dict[str, Any]]:
    """An input shape and a pool's attributes that both are defined for."""
    rank = draw(st.sampled_from([1, 2, 2, 2, 3]))
    kernel = draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)),
        "auto_pad": draw(st.sampled_from(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])),
    }
    if attributes["auto_pad"] == "NOTSET":
        attributes["ceil_mode"] = draw(st.integers(0, 1))
        attributes["pads"] = [draw(st.integers(0, k - 1)) for k in kernel * 2]
    else:  # ONNX Runtime refuses SAME where the stride steps over the kernel
        attributes["strides"] = [min(s, k) for s, k in zip(attributes["strides"], kernel, strict=True)]
    spatial = [draw(st.integers(k, 9)) for k in kernel]
    return (draw(st.integers(1, 2)), draw(st.integers(1, 3)), *spatial), attributes


@few
@given(windows(), st.booleans())
def test_max_pool(case: Any, dilated: bool) -> None:
    shape, attributes = case
    if dilated and attributes["auto_pad"] == "NOTSET":
        attributes = attributes | {"dilations": [2] * (len(shape) - 2)}
        shape = (*shape[:2], *(2 * size for size in shape[2:]))
    agrees(one_node("MaxPool", shape, **attributes), random(shape))


def test_max_pool_same_lower_with_a_stride_rounds_up() -> None:
    shape = (1, 1, 5, 5)
    graph = one_node("MaxPool", shape, kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_LOWER")
    assert agrees(graph, random(shape)).shape == (1, 1, 3, 3)


@few
@given(windows(), st.integers(0, 1))
def test_average_pool(case: Any, count_include_pad: int) -> None:
    shape, attributes = case
    graph = one_node("AveragePool", shape, opset=19, count_include_pad=count_include_pad, **attributes)
    agrees(graph, random(shape))


@few
@given(st.data())
def test_conv(data: st.DataObject) -> None:
    (n, _c, *spatial), attributes = data.draw(windows())
    attributes.pop("ceil_mode", None)
    group, depth, maps = (data.draw(st.integers(1, 3)) for _ in range(3))
    if attributes["auto_pad"] in ("NOTSET", "VALID"):
        attributes["dilations"] = [2] * len(spatial)
        spatial = [2 * size for size in spatial]
    weight = random((group * maps, depth, *attributes["kernel_shape"]), 1)
    bias = random((group * maps,), 2) if data.draw(st.booleans()) else None
    shape = (n, group * depth, *spatial)
    agrees(one_node("Conv", shape, [weight, bias], group=group, **attributes), random(shape))


@pytest.mark.parametrize("kind", ["Max", "Average", "Lp"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5), (2, 3, 4, 5, 2)])
def test_a_global_pool_takes_any_number_of_axes(kind: str, shape: tuple[int, ...]) -> None:
    agrees(one_node(f"Global{kind}Pool", shape, rank=len(shape)), random(shape))


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_what_is_normalised_is_divided_by_absolute_values(p: int, axis: int) -> None:
    x = random((3, 4, 2))
    x[:, 1] = 0
    agrees(one_node("LpNormalization", (3, 4, 2), rank=3, axis=axis, p=p), x)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_are_gathered_along_any_axis(axis: int) -> None:
    places = np.random.default_rng(0).integers(-3, 3, (3, 2, 3))
    agrees(one_node("GatherElements", (3, 3, 40), [places], rank=3, axis=axis), random((3, 3, 40)))


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(("groups", "shared"), [(1, 1), (2, 1), (1, 2), (2, 4)])
def test_a_deformed_convolution_reads_between_elements(groups: int, shared: int, masked: bool) -> None:
    x, w, out = (2, 4, 7, 6), (6, 4 // groups, 3, 2), (3, 7)
    offset = random((2, shared * 3 * 2 * 2, *out), 1) * 2
    more = [random((6,), 3), random((2, shared * 3 * 2, *out), 4) if masked else None]
    graph = one_node(
        "DeformConv", x, [random(w, 2), offset, *more], opset=19, rank=4,
        group=groups, offset_group=shared, strides=[2, 1], dilations=[1, 2], pads=[1, 1, 0, 2],
    )  # fmt: skip
    agrees(graph, random(x))


def body(nodes: list[onnx.NodeProto], inputs: list[Any], outputs: list[Any], held: float) -> onnx.GraphProto:
    """A graph within a node, with a weight `w` of its own."""
    return helper.make_graph(
        [*nodes], "body", inputs, outputs, [numpy_helper.from_array(np.float32(held), "w")]
    )


@pytest.mark.parametrize("condition", ["", "yes"])
def test_a_loop_with_and_without_a_condition_gives_each_turn_a_row(condition: str) -> None:
    told, carried = (helper.make_tensor_value_info(name, 1, [2, 3]) for name in ("told", "h2"))
    turn = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    goes_on, on = (helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("c", "c2"))
    nodes = [
        helper.make_node("Mul", ["h", "w"], ["h2"]),
        helper.make_node("Identity", ["c"], ["c2"]),
        helper.make_node("Add", ["h2", "x"], ["told"]),  # a tensor around it
    ]
    inner = body(
        nodes, [turn, goes_on, helper.make_tensor_value_info("h", 1, [2, 3])], [on, carried, told], 0.5
    )
    loop = helper.make_node("Loop", ["n", condition, "x"], ["last", "y"], "it", body=inner)
    constants = {"n": np.array(3), "yes": np.array(True)}
    model = make_model([loop], {"x": (2, 3)}, ["last", "y"], constants, ranks={"y": 3})
    assert agrees(from_proto(model, "loop"), random((2, 3))).shape == (3, 2, 3)


@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_scan_goes_along_any_axis_both_ways(axis: int, back: int) -> None:
    one = [helper.make_tensor_value_info(name, 1, [3]) for name in ("h", "e", "h2", "told")]
    nodes = [
        helper.make_node("Add", ["h", "e"], ["sum"]),
        helper.make_node("Mul", ["sum", "w"], ["h2"]),
        helper.make_node("Identity", ["h2"], ["told"]),
    ]
    scan = helper.make_node(
        "Scan",
        ["first", "x"],
        ["last", "y"],
        "it",
        body=body(nodes, one[:2], one[2:], 0.75),
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_input_directions=[back],
        scan_output_axes=[axis],
        scan_output_directions=[back],
    )
    shape = (4, 3) if axis == 0 else (3, 4)
    model = make_model([scan], {"x": shape}, ["last", "y"], {"first": random((3,), 1)}, ranks={"last": 1})
    agrees(from_proto(model, "scan"), random(shape))


def test_what_nodes_make_of_their_own_is_float64_like_the_rest() -> None:
    """Zeros that a recurrent cell begins with; constants in a function that a file or ONNX defines."""
    zeros = make_model(
        [
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
            helper.make_node("Add", ["zeros", "x"], ["y"]),
        ],
        {"x": ("N", 3)},
        ["y"],
    )
    agrees(from_proto(zeros, "zeros"), random((2, 3)))
    shape = (2, 3, 4, 5)
    agrees(one_node("MeanVarianceNormalization", shape, axes=[0, 2, 3], opset=13), random(shape))
    called = make_model([helper.make_node("Twice", ["x"], ["y"], domain="own")], {"x": ("N", 3)}, ["y"])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    half = numpy_helper.from_array(np.float32(0.5), "half")
    once = [helper.make_node("Constant", [], ["h"], value=half), helper.make_node("Mul", ["a", "h"], ["b"])]
    twice = [helper.make_node("Once", [a], [b], domain="own") for a, b in (("a", "b"), ("b", "c"))]
    called.functions.append(helper.make_function("own", "Twice", ["a"], ["c"], twice, opsets))
    called.functions.append(helper.make_function("own", "Once", ["a"], ["b"], once, opsets))
    called.opset_import.append(opsets[1])
    x = random((2, 3))
    np.testing.assert_array_equal(agrees(from_proto(called, "called"), x), x.astype(np.float64) / 4)


def test_a_cast_to_single_keeps_float64() -> None:
    x = np.array([[1.0 + 2.0**-40]])
    graph = one_node("Cast", (1, 1), to=TensorProto.FLOAT)
    assert oracle.run(graph, {"x": x}, ["y"])["y"][0, 0] == 1.0 + 2.0**-40


@pytest.mark.parametrize(("opset", "block"), [(10, 0), (13, 0), (21, 0), (21, 2)])
def test_dequantization_by_tensor_axis_and_block(opset: int, block: int) -> None:
    scale = random((2, 2, 5) if block else (3,), 1) if opset > 10 else np.array(0.3, np.float32)
    zero = (100 * np.abs(random(scale.shape, 2))).astype(np.uint8)
    how = {"axis": 1} if opset > 10 else {}
    node = helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["y"], "it", **how)
    if block:
        node.attribute.append(helper.make_attribute("block_size", block))
    constants, types = {"scale": scale, "zero": zero}, {"x": TensorProto.UINT8}
    proto = make_model([node], {"x": (2, 3, 5)}, ["y"], constants, opset, {"y": 3}, types)
    agrees(from_proto(proto, "back"), np.arange(30, dtype=np.uint8).reshape(2, 3, 5))


# ------------------------------------------------------------------------------------ keeping, cross-check


def test_golden_tensors_are_kept_by_content_and_survive_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = one_node("Tanh", (3, 4))
    x = random((3, 4))
    first = oracle.golden(graph, {"x": x})
    np.testing.assert_allclose(first.tensors["y"], np.tanh(x.astype(np.float64)))
    oracle._kept.clear()  # as in another process
    monkeypatch.setattr(oracle, "run", lambda *_: pytest.fail("computed again"))
    np.testing.assert_array_equal(oracle.golden(graph, {"x": x}).tensors["y"], first.tensors["y"])
    with pytest.raises(pytest.fail.Exception):
        oracle.golden(graph, {"x": x + 1})


def test_a_broken_cache_file_is_computed_anew(tmp_path: Path) -> None:
    graph, x = one_node("Tanh", (3, 4)), random((3, 4))
    expected = oracle.golden(graph, {"x": x}).tensors["y"]
    (file,) = (tmp_path / "oracle").glob("*.npz")
    file.write_bytes(file.read_bytes()[:100])
    oracle._kept.clear()
    np.testing.assert_array_equal(oracle.golden(graph, {"x": x}).tensors["y"], expected)


def test_the_cache_does_not_grow_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "_DISK_NBYTES", 20_000)
    monkeypatch.setattr(oracle, "_MEMORY_NBYTES", 20_000)
    graph = one_node("Tanh", (3, 400))
    for seed in range(6):
        oracle.golden(graph, {"x": random((3, 400), seed)})
    assert sum(file.stat().st_size for file in (tmp_path / "oracle").iterdir()) <= 20_000
    assert sum(array.nbytes for kept in oracle._kept.values() for array in kept.values()) <= 20_000


def test_an_output_that_is_a_weight_is_answered() -> None:
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": ("N", 3)}, ["y"], {"w": random((3,))})
    model.graph.output.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3]))
    found = oracle.golden(from_proto(model, "kept"), {"x": random((2, 3))})
    np.testing.assert_array_equal(found.tensors["w"], random((3,)).astype(np.float64))


def test_only_eight_images_are_asked_of_the_oracle() -> None:
    answers = oracle.golden(one_node("Tanh", (3, 4)), {"x": random((20, 4))})
    assert answers.images == oracle.MAX_IMAGES
    assert answers.tensors["y"].shape == answers.tensors["x"].shape == (oracle.MAX_IMAGES, 4)


def test_a_wrong_oracle_is_caught_before_anybody_is_judged_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = (2, 3, 4, 4)
    graph = one_node("LRN", shape, size=3, alpha=1.0)
    assert crossed(graph, oracle.golden(graph, {"x": random(shape)})) == cross_check.Crossed()
    cross_check._known.clear()
    monkeypatch.setattr(mended, "OPERATORS", ())  # onnx.reference as it comes sums over the wrong axis
    oracle._kept.clear()
    monkeypatch.setattr(oracle, "VERSION", -1)
    reason = crossed(graph, oracle.golden(graph, {"x": random(shape)})).doubt
    assert "node it (LRN)" in reason
    assert "differs from ONNX Runtime" in reason


def test_large_weights_are_widened_once_and_let_go_with_the_model() -> None:
    weights = np.ones((600, 600), np.float32)
    wide = widened.widened_weights(weights)
    assert wide.dtype == np.float64
    assert not wide.flags.writeable
    assert widened.widened_weights(weights) is wide
    assert widened.widened_weights(weights.copy()) is not wide
    key = id(weights)
    del weights
    assert key not in widened._wide


def test_what_quantises_within_rounds_ties_the_other_way_too() -> None:
    """Of an operator of whole numbers the ties are its own, and nothing else moves."""
    q, zero = {name: np.array(value, np.float32) for name, value in (("s", 0.5), ("t", 1.0))}, np.uint8(0)
    node = helper.make_node("QLinearAdd", ["x", "s", "z", "x", "s", "z", "t", "z"], ["y"], "add")
    node.domain = "com.microsoft"
    half = helper.make_node("QLinearAdd", ["x", "s", "z", "o", "s", "z", "t", "z"], ["w"], "half")
    half.domain = "com.microsoft"
    types = dict.fromkeys("xyw", TensorProto.UINT8)
    constants = {**q, "z": zero, "o": np.zeros((), np.uint8)}
    proto = make_model([node, half], {"x": ("N", 4)}, ["y", "w"], constants, types=types)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    graph = from_proto(proto, "ties")
    x = {"x": np.array([[0, 1, 2, 3]], np.uint8)}
    right = oracle.run(graph, x, ["y", "w"])
    np.testing.assert_array_equal(right["y"], x["x"])
    np.testing.assert_array_equal(right["w"], [[0, 0, 1, 2]])
    moved = oracle.run(graph, x, ["y", "w"], other_way=ties.NEAR)
    np.testing.assert_array_equal(moved["y"], x["x"], "no tie")
    np.testing.assert_array_equal(moved["w"], [[0, 1, 1, 1]])
    assert ties.quantizes(graph)
