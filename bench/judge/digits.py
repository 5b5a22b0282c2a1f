"""Does a kernel that claims to multiply float32 directly use all 24 bits of its factors?

TF32 and float16 keep 11 of them; two such numbers for each factor ("split") keep 22, and a shortened mantissa
keeps fewer. On normal values the error of 17 bits can be as small as the rounding of a long sum. So a small
shape, and the one that is timed, are computed where each sum has only two terms: numbers near 1 that differ
beyond the tenth bit after the point (or near another power of two, which is drawn), one subtracted from the
other. Direct float32 is exact there, in whatever order it adds. Fewer bits show as an error of the
difference: 2e-4 for 22 bits, 2e-2 for 17. A kernel that says `split` must keep 22 bits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.measure.answers import elements
from bench.measure.answers.samples import Sample
from kernels.ops import Params
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.gemm import Gemm

EXACT = 1e-6  # relative L2 error: direct float32 has none
OF_TWO_PARTS = 4e-3  # who splits factors says so, and has 22 bits at least
LAST = np.float32(2.0**-23)  # of numbers from 1 to 2
_SIZES = np.exp2(np.arange(-6, 2, dtype=np.float32))  # as exact as 1
NEAR = 1 << 13  # of these, up to 1 + 2⁻¹⁰


def samples(p: Params, random: np.random.Generator) -> Iterator[tuple[str, Sample]]:
    """(which factor has the bits, inputs without their answer, see `error`); nothing for operators without
    products, and for shapes whose sums have no two terms."""
    if not plain(p):
        return
    shapes = p.input_shapes
    for side, which in enumerate(("the inputs", "the weights")):
        weights = terms(p, random, (1, -1))
        if weights is None:
            return
        x = np.ones(shapes[0], np.float32)
        if side == 0:
            x = _near(shapes[0], random)
        else:
            weights = weights * _near(shapes[1], random)
        # Of any size: a kernel could keep all digits of some sizes alone.
        x, weights = (array * _SIZES[random.integers(len(_SIZES))] for array in (x, weights))
        inputs = (x, weights, *(np.zeros(shape, np.float32) for shape in shapes[2:]))
        yield which, Sample(p, inputs, np.empty(0))


def plain(p: Params) -> bool:
    """Whether it is a product in float32 that is not scaled."""
    if p.dtype != "float32" or not isinstance(p, Gemm | Conv | Conv3d | ConvTranspose):
        return False
    return not isinstance(p, Gemm) or (p.alpha, p.beta) == (1.0, 1.0)


def error(got: np.ndarray, sample: Sample, random: np.random.Generator) -> float:
    """The relative L2 error of an answer to such inputs, by elements that are drawn now."""
    places = elements.drawn(got.shape, random)
    right = elements.answer(sample.params, sample.inputs, places)
    off = float(np.linalg.norm(got.reshape(-1)[places] - right))
    return off / max(float(np.linalg.norm(right)), float(LAST))


def _near(shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Numbers from 1 to 1 + 2⁻¹⁰, every bit behind drawn."""
    return 1 + random.integers(0, NEAR, shape).astype(np.float32) * LAST


def terms(p: Params, random: np.random.Generator, two: tuple[float, float]) -> np.ndarray | None:
    """Weights of which each sum meets these two alone, the rest being 0; None where it has no two terms."""
    weights = np.zeros(p.input_shapes[1], np.float32)
    if isinstance(p, Gemm):
        laid = np.swapaxes(weights, 1, 2) if not p.trans_b else weights  # (…, n, k), a view
    elif isinstance(p, ConvTranspose):  # what two channels add by the same tap
        depth, maps = p.c // p.group, p.m // p.group
        if depth < 2:
            return None
        for first in range(0, p.c, depth):
            for one in range(maps):
                of = first + _two(depth, random)
                weights[of, one, random.integers(p.kh), random.integers(p.kw)] = two
        return weights
    else:
        laid = weights.reshape(weights.shape[0], -1)
    if laid.shape[-1] < 2:
        return None
    for index in np.ndindex(*laid.shape[:-1]):
        if isinstance(p, Conv | Conv3d) and p.c // p.group > 1:  # by the same tap, so that both lie within
            taps = laid.shape[-1] // (p.c // p.group)
            of = _two(p.c // p.group, random) * taps + random.integers(taps)
        else:
            of = _two(laid.shape[-1], random)
        laid[(*index, of)] = two
    return weights


def _two(count: int, random: np.random.Generator) -> np.ndarray:
    """Two different numbers below this one."""
    first = random.integers(count)
    return np.array([first, (first + 1 + random.integers(count - 1)) % count])
