"""Matrix product in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from bench.measure.answers.nodes._common import Nodes, activated, node
from kernels.ops.gemm import Gemm


def nodes(p: Gemm, names: Sequence[str], output: str) -> Nodes:
    """One Gemm node where that says it all; else Transpose, MatMul, Mul and Add."""
    return _one(p, names, output) if p.batch == 1 else _batch(p, names, output)


def _one(p: Gemm, names: Sequence[str], output: str) -> Nodes:
    flat = [f"{name}_flat" for name in names[:2]]
    made = [
        helper.make_node("Reshape", [name, f"{to}_shape"], [to], name=to)
        for name, to in zip(names, flat, strict=False)
    ]
    shapes = p.input_shapes
    extra = {f"{to}_shape": np.array(shapes[i][1:], np.int64) for i, to in enumerate(flat)}
    product = helper.make_node(
        "Gemm",
        [*flat, *names[2:]],
        ["product"],
        name="gemm",
        transA=int(p.trans_a),
        transB=int(p.trans_b),
        alpha=p.alpha,
        beta=p.beta,
    )
    back = helper.make_node("Reshape", ["product", "y_shape"], [output], name="whole")
    return [*made, product, back], extra | {"y_shape": np.array(p.output_shape, np.int64)}


def _batch(p: Gemm, names: Sequence[str], output: str) -> Nodes:
    dtype = np.dtype(p.dtype)
    made, sides = [], []
    for name, transposed in zip(names, (p.trans_a, p.trans_b), strict=False):
        if transposed:
            made.append(node("Transpose", [name], f"{name}_t", perm=[0, 2, 1]))
        sides.append(f"{name}_t" if transposed else name)
    made.append(node("MatMul", sides, "product"))
    made.append(node("Mul", ["product", "alpha"], "scaled"))
    if p.bias:
        made.append(node("Mul", [names[2], "beta"], "shift"))
        made.append(node("Add", ["scaled", "shift"], "sum"))
    made.append(node("Expand", ["sum" if p.bias else "scaled", "shape"], output))
    shape = np.array(p.output_shape, np.int64)
    return made, {"alpha": np.array(p.alpha, dtype), "beta": np.array(p.beta, dtype), "shape": shape}


def drawn(p: Gemm, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Weights are such that outputs are of order 1."""
    return values / np.sqrt(np.float32(p.k)) if place == 1 else values


def elements(p: Gemm, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """See bench.measure.answers.elements."""
    a, b = (array.reshape(shape) for array, shape in zip(inputs, p.input_shapes[:2], strict=False))
    batch, row, column = np.unravel_index(places, p.output_shape)
    of_a, of_b = (batch if len(array) > 1 else np.zeros_like(batch) for array in (a, b))
    left = a[of_a, :, row] if p.trans_a else a[of_a, row]
    right = b[of_b, column] if p.trans_b else b[of_b, :, column]
    found = p.alpha * np.einsum("ij,ij->i", left, right, dtype=np.float64)
    if p.bias:
        bias = inputs[2].reshape(p.input_shapes[2])
        found += p.beta * bias[row if len(bias) > 1 else 0, column if bias.shape[1] > 1 else 0]
    return activated(found, p.activation)
