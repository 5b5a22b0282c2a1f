"""Inputs and outputs of several passes side by side in shared memory: one trigger runs a pass over each, so
that what triggering takes is shared by many short passes, and no two of them are given the same values.

A child that stays awake has all of them, and runs them by itself (`each`): it sees arrays alone (`views`).
One that runs what a user wrote has none: its only arrays are given the inputs of one slot after the other,
each while it is stopped, and it does no more than wait and run (`passes`).

The parent's `Slots` changes a few values of every input and poisons
some of every output before each train (engine.stirring); `Kept` holds what a pass of each train gave: which
one, and which trains where not all have room, is drawn when they are over.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.isolated.memory import Block, Spec, placed
from engine.stirring import POISON, POISONED, Stirring

Copies = tuple[Sequence[tuple[np.ndarray, np.ndarray]], Sequence[tuple[np.ndarray, np.ndarray]]]
"""What a pass is given and what it leaves, as (to, from)."""


def each(calls: Sequence[Callable[[], object]], copies: Sequence[Copies]) -> None:
    """A pass of these calls over each of these inputs, its answer copied to where it belongs."""
    for inputs, outputs in copies:
        for to, of in inputs:
            np.copyto(to, of)
        for call in calls:
            call()
        for to, of in outputs:
            np.copyto(to, of)


def passes(calls: Sequence[Callable[[], object]], untimed: int, count: int, done: Callable[[], None]) -> None:
    """Passes of these calls that somebody else waits for, and has begin: `done` returns when the next one is
    to begin. untimed: how many go before the first of them."""
    for _ in range(untimed):
        for call in calls:
            call()
    done()
    for _ in range(count):
        for call in calls:
            call()
        done()


MOST = 64
MOST_NBYTES = 32 << 20
# Of passes that are kept to be looked at: so many, of so many bytes in all.
PASSES, PASSES_NBYTES = 64, 64 << 20


def most(specs: Sequence[Spec]) -> int:
    """How many slots of these arrays there may be."""
    a_slot = max(1, sum(spec.nbytes for spec in specs))
    return max(1, min(MOST, MOST_NBYTES // a_slot))


def nbytes(specs: Sequence[Spec], count: int) -> int:
    return placed([count * spec.nbytes for spec in specs])[1]


def views(held: np.ndarray, specs: Mapping[str, Spec], count: int) -> dict[str, np.ndarray]:
    """The arrays in these bytes, by name, each with the slot as its first axis."""
    offsets, _ = placed([count * spec.nbytes for spec in specs.values()])
    found = {}
    for offset, (name, spec) in zip(offsets, specs.items(), strict=True):
        flat = held[offset : offset + count * spec.nbytes].view(spec.dtype)
        found[name] = flat.reshape(count, *spec.shape)
    return found


class Slots:
    """The parent's side. specs: of inputs and outputs; a name may be in both. ahead: whether there is one
    more behind the `count`, for passes that go before the timed ones. own: no child has them (`block` is
    None): it is given one after the other."""

    def __init__(
        self,
        inputs: Mapping[str, Spec],
        outputs: Mapping[str, Spec],
        count: int,
        ahead: bool = False,
        own: bool = False,
    ) -> None:
        self.count = count
        self.rows = count + ahead
        self._inputs, self._outputs = dict(inputs), dict(outputs)
        self.specs = told(inputs, outputs)
        needed = nbytes(list(self.specs.values()), self.rows)
        self.block = None if own else Block(needed)
        held = views(
            np.zeros(needed, np.uint8) if self.block is None else self.block.bytes, self.specs, self.rows
        )
        self.given = {name: held[f"in {name}"] for name in inputs}
        self.left = {name: held[f"out {name}"] for name in outputs}
        self.stirring: Stirring | None = None
        self._bound: dict[str, np.ndarray] = {}
        self._changed: dict[str, np.ndarray] = {}  # flat places by input, (slots, places); -1: none
        self._poisoned: dict[str, np.ndarray] = {}  # flat places by output, (slots, places)

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        """These inputs in every slot, from now on stirred."""
        self._bound = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
        self.stirring = Stirring(
            self._bound, {name: (s.shape, np.dtype(s.dtype)) for name, s in self._outputs.items()}
        )
        self._changed = {}
        for name, array in self._bound.items():
            self.given[name][:] = array

    @property
    def bound(self) -> Mapping[str, np.ndarray]:
        """What was bound."""
        return self._bound

    def stir(self, first: int, count: int) -> None:
        """Make the first `count` slots the passes from this number on."""
        assert self.stirring is not None
        numbers = np.arange(first, first + count, dtype=np.uint64)
        rows = np.arange(count)[:, None]
        for name, bound in self._bound.items():
            flat = self.given[name].reshape(self.rows, -1)
            before = self._changed.get(name)
            if before is None:
                before = self._changed[name] = np.zeros((self.count, 0), np.int64)
            at, values = self.stirring.changes(name, numbers)
            if before.shape[1] != at.shape[1]:
                before = self._changed[name] = np.zeros((self.count, at.shape[1]), np.int64)
            flat[rows, before[:count]] = bound.reshape(-1)[before[:count]]
            flat[rows, at] = values
            before[:count] = at
        self.poison(first, count)

    def poison(self, first: int, count: int) -> None:
        """Some of what the first `count` slots left, as of the passes from this number on."""
        assert self.stirring is not None
        numbers = np.arange(first, first + count, dtype=np.uint64)
        rows = np.arange(count)[:, None]
        for name, left in self.left.items():
            flat = left.reshape(self.rows, -1)
            at = self._poisoned[name] = self.stirring.places(self.stirring.outputs[name], numbers, POISONED)
            flat[rows, at] = _poison(flat.dtype)

    def poisoned(self, name: str) -> np.ndarray:
        """Flat places of an output that are poison, (slots, places)."""
        return self._poisoned[name]

    def close(self) -> None:
        if self.block is not None:
            self.block.close()


def between(
    slots: Slots, given: Mapping[str, np.ndarray], left: Mapping[str, np.ndarray], cold: bool
) -> tuple[Callable[[int], None], Callable[[int], None]]:
    """What goes before a pass over a slot, and after it, where a session reads `given` and writes `left`: the
    slot's inputs, and poison; and what it left. cold: then caches are overwritten."""
    overwrite: Callable[[], None] | None = None
    if cold:  # loaded here: a child that starts has no use for it
        from engine.machine import host

        overwrite = host.overwrite_caches
    ins = [(array, slots.given[name]) for name, array in given.items()]
    outs = [(slots.left[name], array) for name, array in left.items()]
    poisons = [
        (array.reshape(-1), slots.poisoned(name), _poison(array.dtype)) for name, array in left.items()
    ]

    def before(slot: int) -> None:
        for flat, places, poison in poisons:
            flat[places[slot]] = poison
        for to, of in ins:
            np.copyto(to, of[slot, ...])
        if overwrite is not None:
            overwrite()

    def after(slot: int) -> None:
        for to, of in outs:
            np.copyto(to[slot, ...], of)

    return before, after


@functools.cache
def _poison(dtype: np.dtype) -> Any:
    return np.frombuffer(bytes([POISON]) * dtype.itemsize, dtype)[0]


def told(inputs: Mapping[str, Spec], outputs: Mapping[str, Spec]) -> dict[str, Spec]:
    """Inputs and outputs under names that differ."""
    return {f"in {name}": s for name, s in inputs.items()} | {f"out {name}": s for name, s in outputs.items()}


class Kept:
    """What one pass of each train left, drawn alike among its passes: (pass number, outputs by name) each. If
    there were more trains since `take` than there is room for, some of them, drawn alike."""

    def __init__(self, outputs_nbytes: int) -> None:
        self._most = max(1, min(PASSES, PASSES_NBYTES // max(1, outputs_nbytes)))
        self._trains = 0
        self._held: list[tuple[int, dict[str, np.ndarray]]] = []
        self._random = random.SystemRandom()

    def offer(self, slots: Slots, first: int, count: int) -> None:
        """A train that is over."""
        self._trains += 1
        place = len(self._held) if len(self._held) < self._most else self._random.randrange(self._trains)
        if place < self._most:
            slot = self._random.randrange(count)
            kept = first + slot, {name: left[slot, ...].copy() for name, left in slots.left.items()}
            self._held[place : place + 1] = [kept]

    def forget(self) -> None:
        self._trains, self._held = 0, []

    def take(self) -> list[tuple[int, dict[str, np.ndarray]]]:
        held = self._held
        self.forget()
        return held
