"""Slots all of whose values are written anew before a train: others in each, or the same but for a few.

A kernel that works out anew only what the changes touch is faster where they are few. So that nothing else
can be, every slot is written whole by the same steps whichever it is, and the values are drawn alike (each
for itself among the input's own): what lies in which cache, and what values cost, is the same.
"""

from __future__ import annotations

import secrets

import numpy as np

from engine.apart.slots import Slots
from engine.stirring import CHANGED
from engine.witness import SAME


class Renewed:
    """Of slots that inputs were bound to, whose values are drawn from."""

    def __init__(self, slots: Slots) -> None:
        assert slots.stirring is not None
        self.slots, self._stirring = slots, slots.stirring
        self._same = secrets.randbits(64)

    def fill(self, first: int, count: int, alike: int, train: int) -> None:
        """The first `count` slots, as passes from this number on. alike: see engine.witness.Renewable; train:
        a secret of the train's own."""
        for k in range(count):
            number = first + k
            # Same seed, same values.
            seed = [self._same] if alike == SAME else [train, number // alike]
            drawn = np.random.Generator(np.random.SFC64(seed))
            few = np.random.Generator(np.random.SFC64([train, number, CHANGED]))
            for name, array in self.slots.given.items():
                tensor = self._stirring.inputs[name]
                values, flat = tensor.values, array.reshape(self.slots.rows, -1)[k]
                if not flat.size:
                    continue
                picked = drawn.integers(0, len(values), flat.size, np.uint16)
                np.take(values, picked, out=flat, mode="clip")
                at = self._stirring.places(tensor, number, CHANGED)
                flat[at] = values[few.integers(0, len(values), len(at))]
        self.slots.poison(first, count)
