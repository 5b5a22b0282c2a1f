"""A timed train: passes that nobody times, then those that the clock is about, over inputs that changed in
between.

A session that no user wrote runs a train by itself, over slots that it has (`Shared`). All others are given
one pass after the other, by us (`Given`): what goes between two passes is ours, and nothing of it is in
their time.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.isolated import empty
from engine.isolated.client import Child
from engine.isolated.memory import Spec
from engine.isolated.slots import Slots, between
from engine.machine import host
from kernels import processes

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Arena:
    """Where a session that is given its passes reads and writes, as it lies in our memory. threads: how many
    a pass takes; told: of how many that it may."""

    given: Arrays
    left: Arrays
    threads: int
    told: int


class Shared:
    """Of session `number` of a child that stays awake. most: passes of a train; one_core: it was told to take
    one thread (Child.passes)."""

    def __init__(
        self,
        child: Child,
        number: int,
        inputs: Mapping[str, Spec],
        outputs: Mapping[str, Spec],
        most: int,
        one_core: bool,
    ) -> None:
        self._child, self._number, self._one_core = child, number, one_core
        self.slots = Slots(inputs, outputs, most, ahead=True)
        assert self.slots.block is not None
        child.call("hold", number, inputs, outputs, self.slots.rows, True, memory=self.slots.block)
        self.slots.close()
        self._inputs, self._outputs = inputs, outputs

    def train_ns(self, first: int, count: int, untimed: int, cold: bool, each: int = 0) -> list[float]:
        """Nanoseconds of passes `first` to `first + count - 1`, of each `each` of them in a row (0: of all),
        their copies included.

        untimed: how many go right before, over a slot of their own, so that the threads do not sleep in
        between. cold: caches are overwritten instead.
        """
        self.slots.stir(first, count)
        if cold:
            self._child.call("cold", self._number)
            host.overwrite_caches()
        return self._child.train(self._number, count, 0 if cold else untimed, self._one_core, each)

    def off(self, count: int, cold: bool, rough: bool) -> empty.Off:
        """What of a train's time is not the passes'."""
        overhead = empty.train_ns(self._inputs, self._outputs, count, self.slots.count, cold, rough)
        return empty.Off(overhead, 0.0)

    def measure_again(self) -> None:
        empty.forget()


class Given:
    """Of any other. The inputs of a pass are made while the child is stopped, and copied to where it reads
    them: it cannot know them before its time begins, and copies nothing."""

    def __init__(
        self,
        child: Child,
        number: int,
        inputs: Mapping[str, Spec],
        outputs: Mapping[str, Spec],
        most: int,
        arena: Arena,
    ) -> None:
        self._child, self._number, self._arena = child, number, arena
        self._inputs, self._outputs = inputs, outputs
        self.slots = Slots(inputs, outputs, most, own=True)
        self._waiting = 1, False  # for how many threads, and whether on one core, in the last train

    def train_ns(
        self, first: int, count: int, untimed: int, cold: bool, each: int = 0, slots: Slots | None = None
    ) -> list[float]:
        """As of Shared, without copies; the untimed go over what lies there. slots: the passes go over what
        lies in these (None: over ours, stirred). Ours are stirred whichever it is: a kernel sees how long it
        waits for a train."""
        self.slots.stir(first, count)
        if cold:
            self._child.call("cold", self._number)
        arena, threads, untimed = self._arena, self._threads(), 0 if cold else untimed
        make_ready, after = between(slots or self.slots, arena.given, arena.left, cold)
        # Who was told of several may have made some by itself.
        one_core = arena.told == 1 or (threads == arena.threads == 1)
        # Nothing is taken off for threads that are there only before a train and after it.
        drawn, meanwhile = secrets.randbelow(count), [threads]

        def before(k: int) -> None:
            if k == drawn:
                meanwhile.append(self._threads())
            make_ready(k)

        times_ns = self._child.passes(self._number, count, untimed, before, after, one_core, arena.told)
        self._waiting = min(*meanwhile, self._threads(), 2 * arena.threads - 1), one_core
        return [float(sum(times_ns[k : k + (each or count)])) for k in range(0, count, each or count)]

    def _threads(self) -> int:
        """How many threads are woken and stopped for each pass. No more are taken off than a kernel of ours
        has, its own and those of NumPy's library."""
        try:
            return processes.threads(self._child.pid) if processes.STOPS_ITSELF else 1
        except OSError:  # it has ended, which the next pass tells
            return 1

    def off(self, count: int, cold: bool, rough: bool) -> empty.Off:
        one = empty.waiting_ns(self._inputs, self._outputs, *self._waiting, cold)
        return empty.Off(count * one.ns, count * one.half_width_ns)

    def measure_again(self) -> None:
        empty.forget()
