"""Attention and what stands around it in today's nets, drawn, against ONNX's evaluator and ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from bench.measure.answers.operators import transformers
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from kernels.errors import UnsupportedError
from tests.engine.harness import agree, bare, make_model, one_node, random, run_plan

few = settings(max_examples=12, deadline=None)
sizes = st.integers(1, 6)
DOMAIN = "com.microsoft"


def attention(
    fed: dict[str, np.ndarray], fixed: dict[str, np.ndarray], outputs: int = 1, opset: int = 24, **told: Any
) -> Graph:
    """fed: by the name of the input, what comes with each image; fixed: constants."""
    names = ["q", "k", "v", "mask", "past_key", "past_value", "valid"]
    given = [name if name in fed | fixed else "" for name in names]
    while not given[-1]:
        given.pop()
    made = ["y", "keys", "values", "scores"][:outputs]
    node = helper.make_node("Attention", given, made, "it", **told)
    of = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in fed.items()}
    ranks = {"y": fed["q"].ndim, **dict.fromkeys(("keys", "values", "scores"), 4)}
    inputs = {name: ("N", *array.shape[1:]) for name, array in fed.items()}
    proto = make_model([node], inputs, made, fixed, opset, ranks, of)
    proto.ir_version = 10
    return from_proto(proto, "attention")


def right(graph: Graph, fed: dict[str, np.ndarray]) -> None:
    """As ONNX's evaluator answers, in float64, where it keeps to the text."""
    ours = run_plan(graph, len(fed["q"]), fed)
    proto = graph.whole_proto()
    wide = {name: a.astype(np.float64) if a.dtype.kind == "f" else a for name, a in fed.items()}
    for tensor in proto.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            values = np.frombuffer(tensor.raw_data, np.float32).astype(np.float64)
            tensor.CopyFrom(helper.make_tensor(tensor.name, TensorProto.DOUBLE, tensor.dims, values))
    expected = ReferenceEvaluator(proto, new_ops=[*transformers.OPERATORS]).run(None, wide)
    for (name, one), other in zip(ours.items(), expected, strict=True):
        assert one.shape == other.shape, name
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-5, err_msg=name)


@st.composite
def drawn(draw: Any) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], int, dict[str, Any]]:
    batch, kv_heads, queries, keys = (
        draw(st.integers(1, 3)),
        draw(st.integers(1, 2)),
        draw(sizes),
        draw(sizes),
    )
    heads, depth, depth_v = kv_heads * draw(st.integers(1, 2)), draw(sizes), draw(sizes)
    flat, told = draw(st.booleans()), {"is_causal": int(draw(st.booleans()))}
    if draw(st.booleans()):
        told |= {"scale": 0.3, "softcap": 2.0}
    shapes = {
        "q": (batch, heads, queries, depth),
        "k": (batch, kv_heads, keys, depth),
        "v": (batch, kv_heads, keys, depth_v),
    }
    fed, fixed = {}, {}
    for number, (name, (n, h, s, d)) in enumerate(shapes.items()):
        fed[name] = random((n, s, h * d) if flat else (n, h, s, d), number)
    if flat:
        told |= {"q_num_heads": heads, "kv_num_heads": kv_heads}
    before = draw(st.sampled_from([0, 0, 2]))
    if before:
        fed["past_key"] = random((batch, kv_heads, before, depth), 4)
        fed["past_value"] = random((batch, kv_heads, before, depth_v), 5)
    outputs = draw(st.sampled_from([1, 3, 4]))
    if outputs == 4:
        told["qk_matmul_output_mode"] = draw(st.integers(0, 3))
    if draw(st.booleans()):
        rank = draw(st.integers(2, 4))
        whole = (batch, heads, queries, before + keys)[-rank:]
        shape = tuple(size if draw(st.booleans()) else 1 for size in whole[:-1])
        shape = (*shape, draw(st.integers(1, whole[-1])))
        mask = random(shape, 6)
        mask[mask > 1] = -np.inf
        if draw(st.booleans()):
            mask = mask > -0.5  # some see nothing
        if rank == 4 and shape[0] == batch and draw(st.booleans()):
            fed["mask"] = mask
        else:
            fixed["mask"] = mask
    if not before and draw(st.integers(0, 3)) == 0:
        valid = np.random.default_rng(7).integers(1, keys + 1, batch)
        (fed if draw(st.booleans()) else fixed)["valid"] = valid
    return fed, fixed, outputs, told


@few
@given(drawn())
def test_attention(case: tuple[dict[str, np.ndarray], dict[str, np.ndarray], int, dict[str, Any]]) -> None:
    fed, fixed, outputs, told = case
    right(attention(fed, fixed, outputs, **told), fed)


@few
@given(st.integers(-1, 3), st.integers(-1, 3), st.booleans(), st.sampled_from(["", "fed", "fixed"]))
def test_windows(left: int, right_: int, causal: bool, counted: str) -> None:
    fed = {name: random((2, 2, 5, 4), number) for number, name in enumerate("qkv")}
    fixed: dict[str, np.ndarray] = {}
    if counted:
        (fed if counted == "fed" else fixed)["valid"] = np.array([5, 3])
    told = {"left_window_size": left, "right_window_size": right_, "is_causal": int(causal)}
    right(attention(fed, fixed, opset=25, **told), fed)


def test_attention_agrees_with_onnx_runtime() -> None:
    fed = {name: random((2, 3, 70, 16), number) for number, name in enumerate("qkv")}
    mask = random((70, 70), 9)
    agree(attention(fed, {"mask": mask}, opset=23, is_causal=1), fed, 2)


@pytest.mark.parametrize(
    ("shapes", "told", "words"),
    [
        (((1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 3, 4)), {}, "do not fit together"),
        (((1, 3, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)), {}, "do not divide among 2"),
        (((1, 3, 5), (1, 3, 4), (1, 3, 4)), {"q_num_heads": 2, "kv_num_heads": 2}, "into 2 heads"),
    ],
)
def test_what_does_not_fit_is_refused(shapes: Any, told: dict[str, int], words: str) -> None:
    fed = {name: random(shape) for name, shape in zip("qkv", shapes, strict=True)}
    with pytest.raises(UnsupportedError, match=words):
        bare(attention(fed, {}, **told), 1)


# --- the operators around it ---


@few
@given(st.integers(1, 3), st.integers(1, 3), sizes, st.data())
def test_rotary_embedding(batch: int, heads: int, along: int, data: Any) -> None:
    depth = 2 * data.draw(st.integers(1, 4))
    turned = data.draw(st.sampled_from([0, 2, depth]))
    flat, placed, known = (data.draw(st.booleans()) for _ in range(3))
    shape = (batch, along, heads * depth) if flat else (batch, heads, along, depth)
    told = {"interleaved": int(data.draw(st.booleans())), "rotary_embedding_dim": turned}
    if flat or turned:
        told["num_heads"] = heads
    half = (turned or depth) // 2
    angles = random((9, half) if placed else (batch, along, half), 1)
    arrays = {"cos": np.cos(angles), "sin": np.sin(angles)}
    if placed:
        arrays["places"] = np.random.default_rng(2).integers(0, 9, (batch, along))
    node = helper.make_node("RotaryEmbedding", ["x", *arrays], ["y"], "it", **told)
    fed = {"x": random(shape)}
    if not known:
        fed |= {name: arrays.pop(name) for name in list(arrays)}
    of = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in fed.items()}
    proto = make_model(
        [node], {name: a.shape for name, a in fed.items()}, ["y"], arrays, 23, {"y": len(shape)}, of
    )
    proto.ir_version = 10
    graph = from_proto(proto, "rotary")
    (ours,) = run_plan(graph, batch, fed).values()
    (expected,) = ReferenceEvaluator(graph.whole_proto()).run(None, fed)
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def contrib(
    op_type: str, names: list[str], arrays: dict[str, np.ndarray], outputs: list[str], **told: Any
) -> Graph:
    node = helper.make_node(op_type, names, outputs, "it", domain=DOMAIN, **told)
    ranks = dict.fromkeys(filter(None, outputs), 3)
    kept = [name for name in outputs if name]
    proto = make_model([node], {"x": ("N", 5, 8)}, kept, arrays, 17, ranks)
    proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return from_proto(proto, op_type)


VECTORS = {name: random((8,), number) for number, name in enumerate(("scale", "bias", "more"), start=1)}
SKIP = {"skip": random((1, 5, 8), 9)}
CASES = {
    "Gelu": (["x"], [], ["y"], {}),
    "BiasGelu": (["x", "bias"], ["bias"], ["y"], {}),
    "FastGelu": (["x"], [], ["y"], {}),
    "FastGelu, with a bias": (["x", "bias"], ["bias"], ["y"], {}),
    "QuickGelu": (["x"], [], ["y"], {"alpha": 1.5}),
    "SkipLayerNormalization": (["x", "x", "scale", "bias"], ["scale", "bias"], ["y"], {"epsilon": 0.01}),
    "SkipLayerNormalization, its sum": (
        *(["x", "x", "scale", "", "more"], ["scale", "more"], ["y", "", "", "sum"]),
        {},
    ),
    "SkipSimplifiedLayerNormalization": (
        *(["x", "x", "scale", "more"], ["scale", "more"], ["y", "", "", "sum"]),
        {"epsilon": 0.1},
    ),
    "RotaryEmbedding": (["x", "place", "cos", "sin"], ["place", "cos", "sin"], ["y"], {"num_heads": 2}),
    "RotaryEmbedding, by places": (
        ["x", "places", "cos", "sin"],
        ["places", "cos", "sin"],
        ["y"],
        {"num_heads": 2},
    ),
}
ANGLES = random((20, 2), 3)
KNOWN = VECTORS | {
    "cos": np.cos(ANGLES),
    "sin": np.sin(ANGLES),
    "place": np.array([3]),
    "places": np.array([[0, 4, 2, 19, 1]] * 2),
}


@pytest.mark.parametrize("name", list(CASES))
def test_operators_of_onnx_runtimes_own(name: str) -> None:
    """Ours and the oracle's are those of ONNX Runtime."""
    names, arrays, outputs, told = CASES[name]
    graph = contrib(name.split(",")[0], names, {key: KNOWN[key] for key in arrays}, outputs, **told)
    fed = {"x": random((2, 5, 8))}
    agree(graph, fed, 2)
    evaluator = ReferenceEvaluator(graph.whole_proto(), new_ops=[*transformers.OPERATORS])
    for one, other in zip(run_plan(graph, 2, fed).values(), evaluator.run(None, fed), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_gelu_by_tanh() -> None:
    graph = one_node("Gelu", (2, 7), opset=20, approximate="tanh")
    assert [step.params.kind for step in bare(graph, 2).steps] == ["gelu_tanh"]  # type: ignore[attr-defined]
    (ours,) = run_plan(graph, 2, {"x": random((2, 7))}).values()
    (expected,) = ReferenceEvaluator(graph.whole_proto()).run(None, {"x": random((2, 7))})
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-6)
