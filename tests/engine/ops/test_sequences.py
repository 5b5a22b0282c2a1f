"""Recurrent layers against ONNX Runtime and the oracle; transforms, sums by letters, and grids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from bench.measure.answers import oracle
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from kernels.errors import UnsupportedError
from kernels.ops.recurrent import GATES
from tests.engine.harness import agree, bare, make_model, one_node, random, run_plan

few = settings(max_examples=12, deadline=None)


def layer(op_type: str, given: dict[str, np.ndarray | None], steps: int, n: int, **attributes: Any) -> Graph:
    """A recurrent node over sequences x (steps, n, 4); what is given of its other inputs is constant."""
    outputs = ["y", "last", "cell"][: 3 if op_type == "LSTM" else 2]
    names = ["x", *(name if value is not None else "" for name, value in given.items())]
    made = helper.make_node(op_type, names, outputs, "it", **attributes)
    constants = {name: value for name, value in given.items() if value is not None}
    ranks = {"y": 4, "last": 3, "cell": 3}
    return from_proto(make_model([made], {"x": (steps, n, 4)}, outputs, constants, ranks=ranks), "layer")


@few
@given(
    st.sampled_from(["RNN", "GRU", "LSTM"]),
    st.sampled_from(["forward", "reverse", "bidirectional"]),
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(1, 6),
    st.data(),
)
def test_recurrent_layers(op_type: str, direction: str, steps: int, n: int, hidden: int, data: Any) -> None:
    gates, d = GATES[op_type.lower()], 2 if direction == "bidirectional" else 1
    some = data.draw(st.booleans())
    lengths = np.random.default_rng(steps).integers(1, steps + 1, n).astype(np.int32)
    given: dict[str, np.ndarray | None] = {
        "w": random((d, gates * hidden, 4), 1),
        "r": random((d, gates * hidden, hidden), 2),
        "b": random((d, 2 * gates * hidden), 3) if some else None,
        "lengths": lengths if data.draw(st.booleans()) else None,
        "first": random((d, n, hidden), 4) if some else None,
    }
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if op_type == "GRU":
        attributes["linear_before_reset"] = data.draw(st.integers(0, 1))
    if op_type == "LSTM":
        given["before"] = random((d, n, hidden), 5) if some else None
        given["peepholes"] = random((d, 3 * hidden), 6) if data.draw(st.booleans()) else None
    if data.draw(st.booleans()):
        usual = {"RNN": ["Relu"], "GRU": ["HardSigmoid", "Relu"], "LSTM": ["Sigmoid", "Relu", "Tanh"]}[
            op_type
        ]
        attributes["activations"] = usual * d
    while given and list(given.values())[-1] is None:
        given.popitem()
    graph, x = layer(op_type, given, steps, n, **attributes), random((steps, n, 4))
    agree(graph, {"x": x}, steps)
    names = [info.name for info in graph.outputs]
    golden, ours = oracle.run(graph, {"x": x}, names), run_plan(graph, steps, {"x": x})
    for name in names:
        np.testing.assert_allclose(
            ours[name], golden[name], rtol=1e-4, atol=2e-5 * np.abs(golden[name]).max()
        )


def test_the_batch_may_come_first() -> None:
    given: dict[str, np.ndarray | None] = {"w": random((1, 12, 4), 1), "r": random((1, 12, 3), 2)}
    graph, x = (
        layer("LSTM", given, 5, 2, hidden_size=3, layout=1),
        random((5, 2, 4)),
    )  # five sequences of two steps
    golden, ours = oracle.run(graph, {"x": x}, ["y", "last", "cell"]), run_plan(graph, 5, {"x": x})
    assert ours["y"].shape == (5, 2, 1, 3)
    for name, expected in golden.items():
        np.testing.assert_allclose(ours[name], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"activations": ["Softsign", "Tanh", "Tanh"]}, "'softsign' is not among"),
        ({"hidden_size": 4}, "its hidden_size is 4, and its recurrence has 3"),
        ({"direction": "both"}, "its direction is 'both'"),
    ],
)
def test_layers_that_are_refused(attributes: dict[str, Any], reason: str) -> None:
    given: dict[str, np.ndarray | None] = {"w": random((1, 12, 4)), "r": random((1, 12, 3))}
    with pytest.raises(UnsupportedError, match=rf"^node 'it' \(LSTM\): .*{reason}"):
        bare(layer("LSTM", given, 2, 1, **attributes), 2)


LETTERS = (
    *(("ij,jk->ik", 2), ("bij,bjk->bik", 2), ("bhqd,bhkd->bhqk", 2), ("ij->ji", 1), ("ij->", 1)),
    *(("ii->i", 1), ("i,i->", 2), ("i,j->ij", 2), ("...ij,...jk->...ik", 2), ("ab,bc,cd->ad", 3)),
    *(("bij,jk", 2), ("ijk->ik", 1), ("bi,bi->b", 2), ("...i->i...", 1), ("ij,kj->ikj", 2)),
)


@pytest.mark.parametrize(("equation", "count"), LETTERS)
def test_sums_by_letters(equation: str, count: int) -> None:
    sizes = {c: 2 + i % 3 for i, c in enumerate("abcdhijkq")}
    terms = equation.split("->")[0].split(",")
    shapes = [tuple(sizes[c] if c != "." else 3 for c in term.replace("...", ".")) for term in terms]
    feeds = {f"x{i}": random(shape, i) for i, shape in enumerate(shapes)}
    expected = np.einsum(equation, *(array.astype(np.float64) for array in feeds.values()))
    made = helper.make_node("Einsum", list(feeds), ["y"], "it", equation=equation)
    model = make_model([made], {n: a.shape for n, a in feeds.items()}, ["y"], ranks={"y": expected.ndim})
    graph = from_proto(model, "letters")
    ours = run_plan(graph, shapes[0][0], feeds)["y"]
    assert ours.shape == expected.shape
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)
    assert len(terms) == count


@few
@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 2]), st.booleans(), st.booleans())
def test_transforms(places: int, length: int, parts: int, inverse: bool, onesided: bool) -> None:
    assume(not onesided or parts == (2 if inverse else 1))
    if onesided and inverse:
        places, length = length // 2 + 1, max(2, length)
        places = length // 2 + 1
    x = random((2, places, 3, parts))
    made = helper.make_node(
        "DFT", ["x", "length", "axis"], ["y"], "it", inverse=int(inverse), onesided=int(onesided)
    )
    constants = {"length": np.array(length), "axis": np.array(1)}
    graph = from_proto(
        make_model([made], {"x": ("N", places, 3, parts)}, ["y"], constants, 20, {"y": 4}), "dft"
    )
    given = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
    if onesided:
        made_of = np.fft.irfft(given, length, 1) if inverse else np.fft.rfft(given.real, length, 1)
    else:
        made_of = (np.fft.ifft if inverse else np.fft.fft)(given, length, 1)
    expected = made_of[..., None] if onesided and inverse else np.stack([made_of.real, made_of.imag], -1)
    ours = run_plan(graph, 2, {"x": x})["y"]
    assert ours.shape == expected.shape
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("onesided", [0, 1])
def test_transforms_of_frames(onesided: int) -> None:
    window = np.hanning(6).astype(np.float32)
    graph = one_node("STFT", (2, 20, 1), [np.array(4), window], rank=4, onesided=onesided)
    x = random((2, 20, 1))
    (expected,) = ReferenceEvaluator(graph.whole_proto()).run(None, {"x": x})
    np.testing.assert_allclose(run_plan(graph, 2, {"x": x})["y"], expected, rtol=1e-4, atol=1e-5)


@few
@given(
    st.sampled_from(["linear", "nearest", "cubic"]),
    st.sampled_from(["zeros", "border", "reflection"]),
    st.integers(0, 1),
)
def test_images_read_at_a_grid(mode: str, padding: str, corners: int) -> None:
    """The grid is that of a matrix, AffineGrid's, turned and moved; it is made once a pass."""
    theta = np.array([[[0.8, -0.3, 0.1], [0.2, 1.1, -0.37]]], np.float32).repeat(2, 0)
    nodes = [
        helper.make_node("AffineGrid", ["theta", "size"], ["grid"], "grid", align_corners=corners),
        helper.make_node(
            *("GridSample", ["x", "grid"], ["y"], "it"),
            mode=mode,
            padding_mode=padding,
            align_corners=corners,
        ),
    ]
    shapes = {"x": (2, 3, 5, 6), "theta": (2, 2, 3)}
    constants = {"size": np.array([2, 3, 4, 7])}
    graph = from_proto(make_model(nodes, shapes, ["y"], constants, 20, {"y": 4}), "grid")
    agree(graph, {"x": random((2, 3, 5, 6)), "theta": theta}, 2, tolerance=1e-4)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("shape", [(2, 3, 9), (2, 3, 6, 7)])
def test_pools_of_powers(p: int, shape: tuple[int, ...]) -> None:
    rank = len(shape) - 2
    attributes = {"kernel_shape": [3] * rank, "strides": [2] * rank, "pads": [1] * 2 * rank}
    agree(one_node("LpPool", shape, opset=18, p=p, **attributes), {"x": random(shape)}, 2)
    agree(one_node("GlobalLpPool", shape, opset=18, p=p), {"x": random(shape)}, 2)


@pytest.mark.parametrize(
    "attributes", [{}, {"strides": [2, 1]}, {"pads": [1, 0, 1, 1]}, {"dilations": [1, 2]}]
)
def test_columns_become_images(attributes: dict[str, Any]) -> None:
    image, window = (6, 7), (2, 3)
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    pads = attributes.get("pads", [0] * 4)
    along = [
        (image[i] + pads[i] + pads[2 + i] - (window[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(2)
    ]
    shape = (2, 3 * 6, along[0] * along[1])
    constants = [np.array(image), np.array(window)]
    agree(one_node("Col2Im", shape, constants, 18, rank=4, **attributes), {"x": random(shape)}, 2)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 1, 3]},
        {"pads": [1, 0, 1, 0, 1, 1]},
        {"dilations": [1, 2, 1], "group": 2},
        {"strides": [2, 2, 2], "output_padding": [1, 0, 1], "pads": [1] * 6},
        {"pads": [2] * 6},
    ],
)
def test_volumes_are_enlarged(attributes: dict[str, Any]) -> None:
    group = attributes.get("group", 1)
    constants = [random((4, 3, 2, 3, 2), 1), random((3 * group,), 2)]
    shape = (2, 4, 3, 4, 3) if attributes.get("pads") != [2] * 6 else (2, 4, 5, 6, 5)
    agree(one_node("ConvTranspose", shape, constants, **attributes), {"x": random(shape)}, 2)
