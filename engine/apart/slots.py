"""Inputs and outputs of several passes side by side in shared memory: one trigger runs a pass over each, so
that what triggering takes is shared by many short passes, and no two of them are given the same values.

The child sees arrays alone (`views`). The parent's `Slots` changes a few values of every input and poisons
some of every output before each train (engine.stirring), while the child is stopped; `Kept` holds what a few
passes gave, drawn among all since it was last asked: which will be looked at is known to nobody before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from engine.apart.memory import Block, Spec, placed
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


MOST = 64
MOST_NBYTES = 32 << 20
# Of passes that are kept to be looked at: so many, of so many bytes in all.
PASSES, PASSES_NBYTES = 4, 64 << 20


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
    more behind the `count`, for passes that go before the timed ones."""

    def __init__(
        self, inputs: Mapping[str, Spec], outputs: Mapping[str, Spec], count: int, ahead: bool = False
    ) -> None:
        self.count = count
        self.rows = count + ahead
        self._inputs, self._outputs = dict(inputs), dict(outputs)
        self.specs = told(inputs, outputs)
        self.block = Block(nbytes(list(self.specs.values()), self.rows))
        held = views(self.block.bytes, self.specs, self.rows)
        self.given = {name: held[f"in {name}"] for name in inputs}
        self.left = {name: held[f"out {name}"] for name in outputs}
        self.stirring: Stirring | None = None
        self._bound: dict[str, np.ndarray] = {}
        self._changed: dict[str, np.ndarray] = {}  # flat places by input, (slots, places); -1: none
        self._numbers = np.zeros(count, np.uint64)

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
        self._numbers[:count] = numbers
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
            at = self.stirring.places(self.stirring.outputs[name], numbers, POISONED)
            flat[rows, at] = np.frombuffer(bytes([POISON]) * flat.itemsize, flat.dtype)[0]

    def close(self) -> None:
        self.block.close()


def told(inputs: Mapping[str, Spec], outputs: Mapping[str, Spec]) -> dict[str, Spec]:
    """Inputs and outputs under names that differ."""
    return {f"in {name}": s for name, s in inputs.items()} | {f"out {name}": s for name, s in outputs.items()}


class Kept:
    """What some passes left, drawn alike among all since `take`: (pass number, outputs by name) each."""

    def __init__(self, outputs_nbytes: int) -> None:
        self._most = max(1, min(PASSES, PASSES_NBYTES // max(1, outputs_nbytes)))
        self._trains = 0
        self._held: list[tuple[int, dict[str, np.ndarray]]] = []
        self._random = random.SystemRandom()

    def offer(self, slots: Slots, first: int, count: int) -> None:
        """One pass of this train, taken where the lot falls on it."""
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
