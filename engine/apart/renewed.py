"""Slots all of whose values are written anew before a train: others in each, or those that timed passes have.

A kernel that works out anew only what the changes touch is faster where they are few. So that nothing else
can be, every slot is written whole whichever it is. New values are drawn for each pass from all that lies
between those that were bound (engine.stirring.Cells): none is met twice, and none follows from another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from engine.apart.slots import Slots
from engine.machine import host
from engine.stirring import Cells
from engine.witness import NEW

CHUNK = 1 << 16  # values that are drawn at once: little enough to stay in the caches
SEVERAL = 1 << 21  # values from which on several threads draw them
DRAWING = 8  # threads at most
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Renewed:
    """Of slots that inputs were bound to, whose values are drawn from."""

    def __init__(self, slots: Slots) -> None:
        assert slots.stirring is not None
        self.slots, self._stirring = slots, slots.stirring
        self._bound = slots.bound
        self._cells = {name: slots.stirring.cells(name) for name in slots.given}

    def fill(self, first: int, count: int, alike: int, train: int) -> None:
        """The first `count` slots, as passes from this number on. alike: see engine.witness.Renewable; train:
        a secret of the train's own."""
        for name, array in self.slots.given.items():
            flat = array.reshape(self.slots.rows, -1)[:count]
            if not flat.size:
                continue
            # Whichever it is: what the parent does before a train is no reason for one to be slower.
            _draw(flat, self._cells[name])
            if alike == NEW:
                continue
            flat[:] = self._bound[name].reshape(-1)
            # Passes of numbers that no timed one has.
            numbers = np.arange(first, first + count, dtype=np.uint64) + np.uint64(train >> 1)
            at, values = self._stirring.changes(name, numbers)
            flat[np.arange(count)[:, None], at] = values
        self.slots.poison(first, count)


def _draw(flat: np.ndarray, cells: Cells) -> None:
    """New values for all of these, (slots, values)."""

    def some(part: np.ndarray) -> None:
        random = np.random.Generator(np.random.SFC64(int.from_bytes(os.urandom(16))))
        for start in range(0, part.size, CHUNK):
            piece = part[start : start + CHUNK]
            bits = cells.drawn(random.integers(0, 1 << 64, piece.size, np.uint64))
            piece[:] = bits.astype(_UNSIGNED[part.itemsize]).view(part.dtype)

    if flat.size < SEVERAL:
        for row in flat:
            some(row)
        return
    with ThreadPoolExecutor(min(DRAWING, host.physical_cores())) as pool:
        list(pool.map(some, _parts(flat)))


def _parts(flat: np.ndarray) -> Iterator[np.ndarray]:
    each = max(CHUNK, -(-flat.size // (4 * DRAWING)))
    for row in flat:
        for start in range(0, len(row), each):
            yield row[start : start + each]
