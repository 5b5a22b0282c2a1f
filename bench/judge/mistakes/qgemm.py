"""Mistakes of matrix products of eight-bit numbers: of their numbers, and of how the matrices lie."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake, _quantized
from bench.judge.mistakes.gemm import mistakes as of_matrices
from bench.judge.mistakes.gemm import product
from kernels.ops.qgemm import QGemm

Array = np.ndarray


def mistakes(p: QGemm, *inputs: Array) -> Iterator[Mistake]:
    a, b = (array.reshape(shape) for array, shape in zip(inputs[:2], p.input_shapes[:2], strict=True))
    axis = 1 if p.product.trans_b else 2

    def sums(a: Array, b: Array) -> Array:
        return np.broadcast_to(product(p.product, a, b, None), p.output_shape)

    yield from _quantized.mistakes(p, sums, axis, 2, (a, b, *inputs[2:]))
    behind = [array.astype(np.float64) for array in inputs[4:]]
    zeros = inputs[3].astype(np.float64).reshape((1, -1, 1) if axis == 1 else (1, 1, -1))
    whole = (a - inputs[2].astype(np.float64), b - zeros)
    for fault, words, found in of_matrices(p.product, *whole):
        if fault not in ("zeros_only", "half_precision", "activation"):
            yield fault, words, partial(_answer, p, found, behind)


def _answer(p: QGemm, sums: object, behind: list[Array]) -> Array:
    made = np.broadcast_to(sums(), p.output_shape)  # type: ignore[operator]
    return _quantized.finished(p, made, 2, behind)
