"""How a step is divided among threads: into parts along an axis whose elements are independent of each other.

A part is the same operator on less data: it has params of its own and says where its inputs and output lie in
the whole arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from kernels.ops import Params

PARTS_A_THREAD = 2  # more than one, so that a thread that is held up leaves work to the others

Range = tuple[int, int]
"""First element and the one after the last, counted in the dense array."""


@dataclass(frozen=True)
class Part:
    """params: those of this part; inputs: the range of each input that it reads (None: all of it); output:
    the range that it writes, which no other part writes. columns: the output range is one of columns of every
    row of a matrix product, and so not contiguous."""

    params: Params
    inputs: tuple[Range | None, ...]
    output: Range
    columns: bool = False


def parts(p: Params, threads: int) -> tuple[Part, ...]:
    """Parts of about the same size for so many threads, which together do what `p` says. A single part is `p`
    itself."""
    axis = p.division
    wanted = threads if axis.repeats or threads == 1 else PARTS_A_THREAD * threads
    count = max(1, min(wanted, axis.length))
    if count == 1:
        return (whole(p),)
    divided = []
    bounds = [axis.length * i // count for i in range(count + 1)]
    for low, high in itertools.pairwise(bounds):
        ranges = tuple((low * unit, high * unit) if unit else None for unit in axis.inputs)
        output = (low * axis.output, high * axis.output)
        divided.append(Part(axis.cut(high - low), ranges, output, axis.columns))
    return tuple(divided)


def whole(p: Params) -> Part:
    """All of `p` as one part."""
    axis = p.division
    return Part(p, (None,) * len(axis.inputs), (0, axis.length * axis.output))


def ranged(arrays: Sequence[object], part: Part) -> bool:
    """Whether the part reads only a range of any of the arrays that are not None."""
    pairs = zip(arrays, part.inputs, strict=True)
    return any(array is not None and span is not None for array, span in pairs)
