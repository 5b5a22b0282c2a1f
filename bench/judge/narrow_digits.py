"""Does a kernel in fp16 or bf16 round its factors once, to nearest, and add in float32?

The bound of such a precision leaves room for much more: a kernel that cuts bits off, or that keeps its sums
in 16 bits, is within it where sums are short. So a small shape, and the one that is timed, are computed on
inputs of which float64 says what may be lost:

- The sums: factors that the type holds exactly, two products in each sum. Their products have twice the bits,
  and float32 holds them, and their sum but for its last bit. A sum kept in 16 bits is off by 1e-4 in float16
  and 1e-3 in bfloat16.
- The inputs, and the weights: a single product in each sum, one factor a power of two, the other with all 24
  bits of float32. The answer is that factor, off by no more than the rounding to nearest even; who keeps more
  bits of it is off by less. A factor that is cut is off by up to twice that. Half-way numbers, which are
  among them, tell who does not round these to the even one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from bench.judge import digits
from bench.measure.answers import elements
from bench.measure.answers.samples import Sample
from kernels.ops import Params

EXACT = 1e-5  # relative L2 error of sums: float32's is 1e-7, one that is kept in float16 is off by 1e-4
_LAST = 1e-6  # of a number: what float32's own roundings may add
_SIZES = np.exp2(np.arange(-3, 4, dtype=np.float32))
_HALF_WAY = 8  # one number in so many lies between two of the type


@dataclass(frozen=True)
class Probe:
    """which: what is tried, in words; rounds: whether a single number is, or a sum; held: the type."""

    which: str
    sample: Sample
    rounds: bool
    held: str

    def fault(self, got: np.ndarray, random: np.random.Generator) -> str:
        """What an answer to it shows, "" if nothing; told by elements that are drawn now."""
        if not self.rounds:
            off = digits.error(got, self.sample, random)
            return (
                "" if off <= EXACT else f"does not add in float32: sums of two products are off by {off:.0e}"
            )
        places = elements.drawn(got.shape, random)
        right = elements.answer(self.sample.params, self.sample.inputs, places)
        nearest = right.astype(np.float32).astype(self.held).astype(np.float64)
        found = got.reshape(-1)[places].astype(np.float64)
        off, allowed = np.abs(found - right), np.abs(nearest - right)
        wrong = ~(off <= allowed + _LAST * np.abs(right))
        # Of two that are as near it is the even one.
        wrong |= (off >= allowed - _LAST * np.abs(right)) & (np.abs(found - nearest) > _LAST * np.abs(right))
        if not wrong.any():
            return ""
        at = int(wrong.argmax())
        return (
            f"does not round {self.which} to the nearest {self.held}, of two as near to the even one: "
            f"{found[at]:.9g} stands for {right[at]:.9g}, whose nearest is {nearest[at]:.9g}; "
            f"{int(wrong.sum())} of {wrong.size} numbers that were looked at are so"
        )


def probes(p: Params, held: str, random: np.random.Generator) -> Iterator[Probe]:
    """For a kernel whose factors are kept in this type of 16 bits; nothing for operators without products,
    for shapes whose sums have no two terms, and behind an activation that computes."""
    if not digits.plain(p) or getattr(p, "activation", None) not in (None, "relu"):
        return
    shapes = p.input_shapes
    nothing = [np.zeros(shape, np.float32) for shape in shapes[2:]]
    both = digits.terms(p, random, (1, 1))
    if both is None:
        return
    x, weights = (_exact(shape, held, random) for shape in shapes[:2])
    yield Probe("sums", Sample(p, (x, both * weights, *nothing), np.empty(0)), False, held)
    for side, which in enumerate(("the inputs", "the weights")):
        alone = digits.terms(p, random, (1, 0))
        assert alone is not None
        x = np.ones(shapes[0], np.float32)
        if side == 0:
            x = _between(shapes[0], held, random)
        else:
            alone = alone * _between(shapes[1], held, random)
        yield Probe(which, Sample(p, (x, alone, *nothing), np.empty(0)), True, held)


def _drawn(shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Numbers of any size with all bits of float32, none negative: a relu keeps them."""
    return ((1 + random.random(shape)) * random.choice(_SIZES, shape)).astype(np.float32)


def _exact(shape: tuple[int, ...], held: str, random: np.random.Generator) -> np.ndarray:
    return _drawn(shape, random).astype(held).astype(np.float32)


def _between(shape: tuple[int, ...], held: str, random: np.random.Generator) -> np.ndarray:
    """Numbers that the type does not hold, some of them half-way between two that it does."""
    numbers = _drawn(shape, random)
    cut = np.uint32(23 - ml_dtypes.finfo(held).nmant)
    floor = numbers.view(np.uint32) >> cut << cut
    half_way = (floor + (np.uint32(1) << cut - np.uint32(1))).view(np.float32)
    return np.where(random.integers(_HALF_WAY, size=shape) == 0, half_way, numbers)
