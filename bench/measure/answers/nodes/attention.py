"""Attention in ONNX's nodes, as exporters write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.measure.answers.nodes._common import LARGE, Nodes, node
from kernels.ops.attention import Attention

_SWAPPED = [0, 2, 1, 3]


def nodes(p: Attention, names: Sequence[str], output: str) -> Nodes:
    """MatMul, Mul, Add, Softmax and MatMul, with Transpose, Gather, Tanh and Where around them where they are
    needed."""
    dtype = np.dtype(p.dtype)
    extra: dict[str, np.ndarray] = {"scale": np.array(p.scale, dtype)}
    made: list[Any] = []
    q, k, v = names[:3]
    if p.swapped[0]:
        made.append(node("Transpose", [q], "q_heads", perm=_SWAPPED))
        q = "q_heads"
    k, v = (_own(p, made, extra, name, to) for name, to in ((k, 1), (v, 2)))
    made.append(node("Transpose", [k], "k_columns", perm=[0, 1, 3, 2]))
    steps: list[tuple[str, str]] = [("Mul", "scale")]
    if p.softcap:
        extra["cap"] = np.array(p.softcap, dtype)
        steps += [("Div", "cap"), ("Tanh", ""), ("Mul", "cap")]
    if p.mask:
        steps.append(("Add", names[3]))
    away = np.arange(p.keys) - np.arange(p.queries)[:, None]
    hidden = (away < p.earliest) | (away > p.latest)
    if hidden.any():
        extra["hidden"] = np.where(hidden, -np.inf, 0).astype(dtype)
        steps.append(("Add", "hidden"))
    made.append(node("MatMul", [q, "k_columns"], "product"))
    before = "product"
    for number, (kind, other) in enumerate(steps):
        made.append(node(kind, [before, other] if other else [before], f"score{number}"))
        before = f"score{number}"
    made.append(node("Softmax", [before], "weights", axis=-1))
    weights = "weights"
    if p.guarded:
        extra["zero"] = np.zeros((), dtype)
        made.append(node("IsNaN", ["weights"], "nothing"))
        made.append(node("Where", ["nothing", "zero", "weights"], "guarded"))
        weights = "guarded"
    made.append(node("MatMul", [weights, v], "heads" if p.swapped[3] else output))
    if p.swapped[3]:
        made.append(node("Transpose", ["heads"], output, perm=_SWAPPED))
    return made, extra


def _own(p: Attention, made: list[Any], extra: dict[str, np.ndarray], name: str, place: int) -> str:
    """Keys or values by head, each of the queries' heads with its own."""
    if p.swapped[place]:
        made.append(node("Transpose", [name], f"{name}_heads", perm=_SWAPPED))
        name = f"{name}_heads"
    if p.heads != p.kv_heads:
        extra["sharing"] = np.repeat(np.arange(p.kv_heads), p.heads // p.kv_heads)
        made.append(node("Gather", [name, "sharing"], f"{name}_each", axis=1))
        name = f"{name}_each"
    return name


def drawn(p: Attention, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Scores of which a few have most of the weight; by the mask those of some queries are so large that an
    exponential overflows for whoever does not see to it."""
    if place == 0:
        return values * np.float32(3 / (max(abs(p.scale), 1e-6) * np.sqrt(p.depth)))
    if place == 3:
        return values + LARGE * (random.random((*p.mask[:3], 1)) < 0.3).astype(np.float32)
    return values


def elements(p: Attention, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """See bench.measure.answers.elements."""
    q, k, v = (
        array.reshape(shape).swapaxes(1, 2) if way else array.reshape(shape)
        for array, shape, way in zip(inputs[:3], p.input_shapes, p.swapped, strict=False)
    )
    image, second, third, element = np.unravel_index(places, p.output_shape)
    head, query = (third, second) if p.swapped[3] else (second, third)
    of = head // (p.heads // p.kv_heads)
    scores = p.scale * np.einsum("ie,ije->ij", q[image, head, query], k[image, of], dtype=np.float64)
    if p.softcap:
        scores = p.softcap * np.tanh(scores / p.softcap)
    if p.mask:
        mask = np.broadcast_to(inputs[3].reshape(p.mask), (p.batch, p.heads, p.queries, p.keys))
        scores = scores + mask[image, head, query]
    away = np.arange(p.keys) - query[:, None]
    scores = np.where((away < p.earliest) | (away > p.latest), -np.inf, scores)
    most = scores.max(axis=1, keepdims=True)
    powers = np.exp(scores - np.where(np.isneginf(most), 0, most))
    weights = powers.sum(axis=1)
    if p.guarded:
        weights = np.where(weights == 0, 1, weights)
    with np.errstate(invalid="ignore"):
        found = np.einsum("ij,ij->i", powers, v[image, of, :, element], dtype=np.float64) / weights
    return np.asarray(found)
