"""What ONNX Runtime's optimisers make of several nodes: the engine and float64 answer as it does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from bench.measure.answers import accuracy, oracle
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from kernels.errors import UnsupportedError
from tests.engine.harness import agree, bare, make_model, random, run_ort

MICROSOFT = "com.microsoft"
Shapes = dict[str, tuple[int, ...]]


def fused(
    op_type: str,
    inputs: list[str],
    shapes: Shapes,
    constants: dict[str, np.ndarray] | None = None,
    rank: int = 3,
    types: dict[str, int] | None = None,
    outputs: tuple[str, ...] = ("y",),
    **attributes: Any,
) -> Graph:
    node = helper.make_node(op_type, inputs, outputs, "it", domain=MICROSOFT, **attributes)
    ranks = {"y": rank, "counts": 1}
    proto = make_model([node], shapes, outputs, constants, ranks=ranks, types=types)
    proto.opset_import.append(onnx.helper.make_opsetid(MICROSOFT, 1))
    return from_proto(proto, "fused")


def all_agree(graph: Graph, feeds: dict[str, np.ndarray], batch: int) -> None:
    agree(graph, feeds, batch)
    names = [info.name for info in graph.outputs]
    right, theirs = oracle.run(graph, feeds, names), run_ort(graph, feeds)
    for name in names:
        stats = accuracy.error_stats(theirs[name], right[name], "fp32")
        assert stats.ok, stats.reason


@pytest.mark.parametrize(
    ("activation", "told"),
    [("", []), ("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.1]), ("Clip", [-0.2, 0.4]),
     ("HardSigmoid", [0.3, 0.6])],
)  # fmt: skip
def test_products_with_an_activation(activation: str, told: list[float]) -> None:
    weights = {"w": random((4, 3, 3, 3), 1), "b": random((4,), 2)}
    more = {"activation_params": told} if told else {}
    if activation:
        conv = fused(
            "FusedConv", ["x", "w", "b"], {"x": (2, 3, 6, 6)}, weights, 4,
            activation=activation, pads=[1, 1, 1, 1], kernel_shape=[3, 3], **more,
        )  # fmt: skip
        all_agree(conv, {"x": random((2, 3, 6, 6))}, 2)
    if activation in ("", "Clip", "HardSigmoid"):
        return
    gemm = fused(
        "FusedGemm", ["x", "w", "b"], {"x": ("N", 5)}, {"w": random((4, 5), 1), "b": random((4,), 2)}, 2,
        transB=1, activation=activation, **({"activation_alpha": told[0]} if told else {}),
    )  # fmt: skip
    all_agree(gemm, {"x": random((3, 5))}, 3)


def test_a_convolution_with_what_is_added_before_its_activation() -> None:
    weights = {"w": random((4, 4, 1, 1), 1), "b": random((4,), 2)}
    shape = (2, 4, 5, 5)
    graph = fused(
        "FusedConv", ["x", "w", "b", "z"], {"x": shape, "z": shape}, weights, 4,
        activation="Relu", kernel_shape=[1, 1],
    )  # fmt: skip
    all_agree(graph, {"x": random(shape), "z": random(shape, 3)}, 2)


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_products_of_what_is_transposed(trans_a: int, trans_b: int) -> None:
    a = (2, 5, 3) if trans_a else (2, 3, 5)
    b = (2, 4, 5) if trans_b else (2, 5, 4)
    graph = fused("FusedMatMul", ["x", "z"], {"x": a, "z": b}, transA=trans_a, transB=trans_b, alpha=0.5)
    all_agree(graph, {"x": random(a), "z": random(b, 1)}, 2)
    with pytest.raises(UnsupportedError, match="its batch is transposed"):
        bare(fused("FusedMatMul", ["x", "z"], {"x": a, "z": b}, transBatchA=1), 2)


MASKS: dict[str, np.ndarray | None] = {
    "none": None,
    "keys": np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1]], np.int32),
    "counts": np.array([2, 5], np.int32),
}


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", MASKS)
def test_attention_of_weights_side_by_side(mask: str, causal: int) -> None:
    held = MASKS[mask]
    weights = {"w": random((8, 24), 1), "b": random((24,), 2)}
    names = ["x", "w", "b", *(["mask"] if held is not None else [])]
    shapes: Shapes = {"x": (2, 5, 8), **({"mask": held.shape} if held is not None else {})}
    types = {"mask": TensorProto.INT32}
    graph = fused("Attention", names, shapes, weights, types=types, num_heads=2, unidirectional=causal)
    feeds = {"x": random((2, 5, 8)), **({"mask": held} if held is not None else {})}
    all_agree(graph, feeds, 2)


@pytest.mark.parametrize("mask", MASKS)
def test_attention_of_queries_keys_and_values(mask: str) -> None:
    held = MASKS[mask]
    shapes: Shapes = {"q": (2, 3, 8), "k": (2, 5, 8), "v": (2, 5, 8)}
    feeds = {name: random(shape, seed) for seed, (name, shape) in enumerate(shapes.items())}
    names = ["q", "k", "v", "b", "mask" if held is not None else "", "more"]
    if held is not None:
        shapes["mask"], feeds["mask"] = held.shape, held
    constants = {"b": random((24,), 4), "more": random((1, 2, 3, 5), 5)}
    types = {"mask": TensorProto.INT32}
    graph = fused("MultiHeadAttention", names, shapes, constants, types=types, num_heads=2, scale=0.3)
    all_agree(graph, feeds, 2)


@pytest.mark.parametrize("segments", [True, False])
def test_embeddings_of_words_places_and_segments(segments: bool) -> None:
    tables = {"words": random((20, 8)), "places": random((6, 8), 1), "segments": random((2, 8), 2)}
    tables |= {"scale": random((8,), 3), "bias": random((8,), 4)}
    shapes: Shapes = {"x": (2, 5), **({"kinds": (2, 5)} if segments else {}), "mask": (2, 5)}
    names = ["x", "kinds" if segments else "", "words", "places", "segments" if segments else ""]
    by = np.random.default_rng(0)
    feeds = {name: by.integers(0, 2, (2, 5)).astype(np.int32) for name in shapes}
    feeds["x"] = by.integers(0, 20, (2, 5)).astype(np.int32)
    types = dict.fromkeys((*shapes, "counts"), TensorProto.INT32)
    graph = fused(
        "EmbedLayerNormalization", [*names, "scale", "bias", "mask"], shapes, tables,
        types=types, outputs=("y", "counts"),
    )  # fmt: skip
    all_agree(graph, feeds, 2)


@pytest.mark.parametrize("zeros", ["", "packed", "float"])
@pytest.mark.parametrize(("bits", "inner"), [(4, 64), (4, 50), (8, 48)])
def test_products_with_weights_of_few_bits(bits: int, inner: int, zeros: str) -> None:
    if bits == 8 and zeros == "float":
        pytest.skip("ONNX Runtime has no kernel for it")
    by, columns, block = np.random.default_rng(0), 5, 16
    blocks = -(-inner // block)
    constants = {
        "w": by.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8),
        "s": by.random((columns * blocks), np.float32),
        "z": by.integers(0, 256, (columns, -(-blocks * bits // 8))).astype(np.uint8),
    }
    if zeros == "float":
        constants["z"] = by.random((columns, blocks), np.float32) * 8
    names = ["x", "w", "s", *(["z"] if zeros else [])]
    graph = fused(
        "MatMulNBits", names, {"x": (2, 3, inner)}, constants,
        bits=bits, block_size=block, K=inner, N=columns,
    )  # fmt: skip
    all_agree(graph, {"x": random((2, 3, inner))}, 2)
