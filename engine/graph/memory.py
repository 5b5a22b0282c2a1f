"""Which bytes of the arena hold which tensor, and from when to when.

A tensor lives from the step that writes it to the last step that reads it. Tensors are placed from the
largest to the smallest at the lowest offset free during their life ("greedy by size", Pisarchyk and Lee,
"Efficient Memory Management for Deep Neural Net Inference", 2020).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.graph.plan import ArenaSlot

ALIGNMENT = 256
# Of what a kernel may read as a texture: CUDA's textureAlignment, 512 on every device there is.
TEXTURE_ALIGNMENT = 512


@dataclass(frozen=True)
class Life:
    """Steps during which a tensor's bytes must not change, both ends included; step −1 is `bind`."""

    nbytes: int
    first: int
    last: int


def lives(
    steps: Sequence[tuple[Iterable[str], str]],
    nbytes: Mapping[str, int],
    inputs: Iterable[str],
    outputs: Iterable[str],
) -> dict[str, Life]:
    """Life of every tensor that needs a place, from (tensors read, tensor written) of each step.

    Names are those of the tensors that hold the bytes; names not in `nbytes` (weights) are left out. Graph
    inputs live throughout, so that a second run reads what the first did; outputs until after the last step.
    """
    first = dict.fromkeys(inputs, -1)
    last: dict[str, int] = {}
    for index, (reads, written) in enumerate(steps):
        first.setdefault(written, index)
        last[written] = max(index, last.get(written, index))
        for name in reads:
            if name in nbytes:
                last[name] = index
    for name in (*inputs, *outputs):
        last[name] = len(steps)
    return {name: Life(nbytes[name], first[name], last[name]) for name in first}


def place(tensors: Mapping[str, Life], alignment: int = ALIGNMENT) -> tuple[dict[str, ArenaSlot], int]:
    """A placement for each tensor at a multiple of `alignment` bytes, and the bytes of the whole arena."""
    slots: dict[str, ArenaSlot] = {}
    order = sorted(tensors.items(), key=lambda item: (-item[1].nbytes, item[1].first, item[0]))
    first = np.array([life.first for _, life in order], np.int64)
    last = np.array([life.last for _, life in order], np.int64)
    spans: list[tuple[int, int]] = []
    for count, (name, life) in enumerate(order):
        size = -(-life.nbytes // alignment) * alignment
        # Every pair of tensors is looked at: by NumPy, for a net of thousands of nodes.
        together = np.flatnonzero((first[:count] <= life.last) & (last[:count] >= life.first))
        occupied = sorted(spans[other] for other in together)
        offset = 0
        for start, length in occupied:
            if offset + size <= start:
                break
            offset = max(offset, start + length)
        slots[name] = ArenaSlot(offset, life.nbytes)
        spans.append((offset, size))
    arena = max((-(-(p.offset + p.nbytes) // alignment) * alignment for p in slots.values()), default=0)
    return slots, arena
