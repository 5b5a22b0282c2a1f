"""The kernels of engine/stirring.cu and renewing.cu by NumPy: the same state, table and places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from engine.cuda.stirring import KEEPING
from engine.stirring import CELL_BITS, CHANGED, LOOKED_AT, POISONED, VALUE, Cells, hashed
from tests.standin.code import Module
from tests.standin.memory import Memory

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_FIELDS = 8  # of a tensor
_TOGETHER = 16  # passes whose hashes are computed at once, which takes hardly longer than those of one


def bind(
    memory: Memory, module: Module, pointers: Sequence[int], scalars: Sequence[float], tensors: int
) -> Callable[[], None]:
    mask, going_on = (int(scalar) for scalar in scalars)

    def do() -> None:
        state = memory.view(pointers[0], (5,), np.uint64)
        seed, number, lies, since = int(state[0]) ^ mask, int(state[1]), bool(state[2]), int(state[4])
        ring = module.define("RING")
        kept = _kept_at(ring, seed, number - 1, since) if lies else ring + 1
        for fields in memory.view(pointers[1], (tensors, _FIELDS), np.uint64).tolist():
            _stir(memory, ring, seed, number, kept, lies, bool(going_on), fields)
        state[1:3] = number + going_on, going_on

    return do


def _kept_at(ring: int, seed: int, number: int, since: int) -> int:
    before = number - since
    if number == 0:
        return ring
    drawn = int(hashed(seed, number, KEEPING, LOOKED_AT, 1)[0]) % (before + 1)
    place = before if before < ring else drawn
    return place if place < ring else ring + 1


def _stir(
    memory: Memory,
    ring: int,
    seed: int,
    number: int,
    kept_at: int,
    lies: bool,
    going_on: bool,
    fields: Sequence[int],
) -> None:
    address, itemsize, size, count, index, values_at, drawn_from, held_at = fields
    if count == 0:  # a row of nothing, in a table that would be empty
        return
    word = _WORDS[itemsize]
    x = memory.view(address, (size,), word)

    def places(of: int, purpose: int) -> np.ndarray:
        return _places(seed, of, index, purpose, size, count)

    if drawn_from == 0:
        if kept_at <= ring:
            kept = memory.view(held_at, (ring + 1, 2, count), word)[kept_at]
            kept[:] = x[places(number - 1, LOOKED_AT)], x[places(number - 1, POISONED)]
        if going_on:
            x[places(number, POISONED)] = np.iinfo(word).max
        return
    held = memory.view(held_at, (count,), word)
    if lies:
        x[places(number - 1, CHANGED)] = held
    if going_on:
        values = memory.view(values_at, (drawn_from,), word)
        at = places(number, CHANGED)
        drawn = _drawn(seed, number // _TOGETHER, index, VALUE, count)[number % _TOGETHER]
        picked = (drawn % np.uint64(drawn_from)).astype(np.int64)
        picked = (picked + (values[picked] == x[at])) % drawn_from
        held[:] = x[at]
        x[at] = values[picked]


def renewing(
    memory: Memory, module: Module, pointers: Sequence[int], scalars: Sequence[float], tensors: int
) -> Callable[[], None]:
    mask, keep = (int(scalar) for scalar in scalars)

    def do() -> None:
        state = memory.view(pointers[0], (4,), np.uint64)
        seed, number = int(state[0]) ^ mask, int(state[1])
        for fields in memory.view(pointers[1], (tensors, _FIELDS), np.uint64).tolist():
            address, itemsize, size, index, base, span, _, _ = fields
            if size and not keep:
                count = (1 << CELL_BITS,)
                cells = Cells(memory.view(base, count, np.uint64), memory.view(span, count, np.uint64))
                drawn = cells.drawn(hashed(seed, number, index, VALUE, size))
                memory.view(address, (size,), _WORDS[itemsize])[:] = drawn
        state[1] = number + 1

    return do


def _places(seed: int, of: int, index: int, purpose: int, size: int, count: int) -> np.ndarray:
    """Those of pass `of`."""
    several, one = divmod(of, _TOGETHER)
    found: np.ndarray = _of_several(seed, several, index, purpose, count, size)[one]
    return found


@lru_cache(maxsize=64)
def _drawn(seed: int, several: int, index: int, purpose: int, count: int) -> np.ndarray:
    """The hashes of some passes, (_TOGETHER, count)."""
    numbers = np.arange(several * _TOGETHER, (several + 1) * _TOGETHER, dtype=np.uint64)
    return hashed(seed, numbers, index, purpose, count)


@lru_cache(maxsize=64)
def _of_several(seed: int, several: int, index: int, purpose: int, count: int, size: int) -> np.ndarray:
    """Where they are in a tensor of that size."""
    edges = np.arange(count + 1, dtype=np.uint64) * np.uint64(size) // np.uint64(count)
    drawn = _drawn(seed, several, index, purpose, count)
    return (edges[:-1] + drawn % np.maximum(np.diff(edges), np.uint64(1))).astype(np.int64)


FILES = {"stirring.cu": bind, "renewing.cu": renewing}
