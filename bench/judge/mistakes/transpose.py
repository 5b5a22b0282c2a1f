"""Mistakes of transposition."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import permutations

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.transpose import Transpose

_MOST_AXES = 4  # whose orders are all tried


def mistakes(p: Transpose, x: np.ndarray) -> Iterator[Mistake]:
    shape = tuple(p.shape[axis] for axis in p.perm)

    def turned(perm: tuple[int, ...]) -> np.ndarray:
        return x.transpose(perm).reshape(shape)

    inverse = tuple(int(i) for i in np.argsort(p.perm))
    straight = tuple(range(len(p.perm)))
    yield "kind", "the input is given back unchanged", lambda: turned(straight)
    yield "layout", "the axes are permuted the other way: by the inverse", lambda: turned(inverse)
    yield "layout", "the axes are reversed, whatever order was asked for", lambda: turned(straight[::-1])
    if 2 < len(p.perm) <= _MOST_AXES:
        swapped = (*straight[:-2], straight[-1], straight[-2])
        yield "layout", "the last two axes are swapped, whatever order was asked for", lambda: turned(swapped)
        for order in permutations(p.perm):
            if order in (p.perm, inverse, straight, straight[::-1], swapped):
                continue
            words = f"the order of the axes is {_words(order, p.perm)} of those asked for"
            yield "layout", words, partial(turned, order)


def _words(order: tuple[int, ...], perm: tuple[int, ...]) -> str:
    return ", ".join(str(perm.index(axis)) for axis in order)
