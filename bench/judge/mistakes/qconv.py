"""Mistakes of convolutions of eight-bit numbers: of their numbers, and of their windows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake, _quantized
from bench.judge.mistakes.conv import convolution
from bench.judge.mistakes.conv import mistakes as of_windows
from kernels.ops.qconv import QConv

Array = np.ndarray


def mistakes(p: QConv, *inputs: Array) -> Iterator[Mistake]:
    x, weight = (array.reshape(shape) for array, shape in zip(inputs[:2], p.input_shapes[:2], strict=True))
    given = (x, weight, *inputs[2:])
    yield from _quantized.mistakes(p, partial(convolution, p.product), 0, 1, given)
    behind = [array.astype(np.float64) for array in inputs[4:]]
    whole = (x - inputs[2].astype(np.float64), weight - inputs[3].astype(np.float64).reshape(-1, 1, 1, 1))
    for fault, words, sums in of_windows(p.product, *whole):
        if fault not in ("zeros_only", "half_precision", "activation"):
            yield fault, words, partial(_answer, p, sums, behind)
    raw = p.product
    if raw.pad_top or raw.pad_left or raw.pad_bottom or raw.pad_right:
        yield "pad", "the padding is 0, not the zero point of x", partial(_unshifted, p, given, behind)


def _answer(p: QConv, sums: object, behind: list[Array]) -> Array:
    return _quantized.finished(p, sums(), 1, behind)  # type: ignore[operator]


def _unshifted(p: QConv, inputs: tuple[Array, ...], behind: list[Array]) -> Array:
    """What lies outside the image is 0 before its zero point is taken off."""
    x, weight, x_zero, weight_zero = (array.astype(np.float64) for array in inputs[:4])
    less = weight - weight_zero.reshape(-1, 1, 1, 1)
    inside = convolution(p.product, x, less)
    everywhere = less.sum(axis=(1, 2, 3)).reshape(1, -1, 1, 1) * x_zero.reshape(())
    return _quantized.finished(p, inside - everywhere, 1, behind)
