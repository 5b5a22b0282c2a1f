"""Mistakes of products of eight-bit numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.ops._quantized import Quantized
from kernels.ops.qconv import QConv
from tests.bench.judge.planting import answers
from tests.kernels.quantized_cases import sums

Array = np.ndarray


def made(
    p: Quantized, whole: Array, behind: tuple[Array, ...], rounded: Any = np.rint, wraps: bool = False
) -> Array:
    """What p makes of its sums."""
    shape = [1] * 4 if isinstance(p, QConv) else [1] * 3
    shape[1 if isinstance(p, QConv) else 2] = -1
    bias, scale, *shift = (array.reshape(shape) for array in behind)
    real = (whole + bias) * scale + (shift[0] if shift else 0)
    q = rounded(real / np.float32(p.out_scale)) + p.out_zero
    least = np.iinfo(p.to).min
    return (q - least) % 256 + least if wraps else np.clip(q, p.low, p.high)


def _planted(name: str, says: str, wrong: Callable[..., Array]) -> None:
    """In both operators. wrong: (p, x, weight, x_zero, weight_zero, behind) → y."""
    for op in ("qconv", "qgemm"):

        def answer(
            p: Quantized, x: Array, weight: Array, x_zero: Array, weight_zero: Array, *behind: Array
        ) -> Array:
            return wrong(p, x, weight, x_zero, weight_zero, behind)

        answers(op, f"{op}: {name}", answer, *filter(None, (says,)))


_planted(
    "no zero of x",
    "zero point of x is ignored",
    lambda p, x, w, xz, wz, b: made(p, sums(p, x, w, 0 * xz, wz), b),
)
_planted(
    "no zero of the weights",
    "zero point of the weights is ignored",
    lambda p, x, w, xz, wz, b: made(p, sums(p, x, w, xz, 0 * wz), b),
)
_planted("cut", "towards 0", lambda p, x, w, xz, wz, b: made(p, sums(p, x, w, xz, wz), b, rounded=np.trunc))
_planted("wraps", "wraps around", lambda p, x, w, xz, wz, b: made(p, sums(p, x, w, xz, wz), b, wraps=True))
_planted(
    "no bias",
    "bias is missing",
    lambda p, x, w, xz, wz, b: made(p, sums(p, x, w, xz, wz), (0 * b[0], *b[1:])),
)
_planted(
    "one scale",
    "scale serves all",
    lambda p, x, w, xz, wz, b: made(p, sums(p, x, w, xz, wz), (b[0], np.full_like(b[1], b[1][0]), *b[2:])),
)
_planted(
    "sums of 16 bits",
    "16 bits",
    lambda p, x, w, xz, wz, b: made(p, sums(p, x, w, xz, wz).astype(np.int16).astype(np.int64), b),
)
_planted(
    "sums end at 16 bits",
    "between the ends of 16 bits",
    lambda p, x, w, xz, wz, b: made(p, sums(p, x, w, xz, wz).clip(-(2**15), 2**15 - 1), b),
)
_planted(
    "the next scale",
    "next one's scale",
    lambda p, x, w, xz, wz, b: made(p, sums(p, x, w, xz, wz), (b[0], np.roll(b[1], -1), *b[2:])),
)
_planted(
    "halves away from 0",
    "halves are rounded away",
    lambda p, x, w, xz, wz, b: made(
        p, sums(p, x, w, xz, wz), b, rounded=lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v)
    ),
)
_planted(
    "one quantum now and then", "", lambda p, x, w, xz, wz, b: _moved(p, made(p, sums(p, x, w, xz, wz), b))
)


def _moved(p: Quantized, y: Array) -> Array:
    y = y.copy()
    y.reshape(-1)[:: max(1, y.size // 3)] += np.where(y.reshape(-1)[:: max(1, y.size // 3)] < p.high, 1, -1)
    return y


def _raw_padding(p: QConv, x: Array, w: Array, xz: Array, wz: Array, *behind: Array) -> Array:
    """Padding holds 0 before the zero point is taken off."""
    less = w.astype(np.int64) - wz.astype(np.int64).reshape(-1, 1, 1, 1)
    moved = int(xz[0]) * less.sum(axis=(1, 2, 3)).reshape(1, -1, 1, 1)
    return made(p, sums(p, x, w, 0 * xz, wz) - moved, behind)


answers("qconv", "qconv: padding of 0", _raw_padding, "padding is 0, not the zero point")
