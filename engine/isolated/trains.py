"""Time the passes of a session that runs in an isolated process.

Passes are timed in trains, rows of passes one after the other. Each pass of a train has a slot: a place for
its own inputs and outputs. Before each train the inputs in the slots are stirred: a few of their values are
changed (engine.stirring), so that a kernel cannot answer from memory.
"""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from engine.isolated.client import Child
from engine.isolated.memory import Spec
from engine.isolated.slots import PASSES_NBYTES, Kept, Slots, most
from engine.isolated.timed import Arena, Given, Shared
from engine.machine import host
from engine.rung_rows import Rows
from engine.stirring import LEAST, SAME, Cells, Stirring, Witness
from kernels import processes
from kernels.errors import TooShortError

# Passes before a train that are not timed, so long: what is woken settles on its cores, and threads that wait
# for each other have met. One thread has nobody to meet, and finds what it had in its caches in less. None
# where a pass is longer than that, or the last train ended just before.
WARM_NS, WARM_ALONE_NS, IDLE_NS = 2_000_000, 500_000, 1_000_000
PARTS = 8  # of what is timed at once in one thread, each of which is a sample
Pair = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]
TRIES = 3  # of a train of which nothing is left, with what is taken off measured anew in between


class IsolatedTrains:
    """Times the passes of session `number` of a child.

    inputs, outputs: shape and dtype, by name, of what a pass reads and writes. arena: where a session reads
    and writes whose passes the parent starts, one by one (it may be a user's); None for a session that runs
    whole trains by itself. threads: how many threads the latter was told to take (0: not known).

    After `time`: parts_ns, the nanoseconds of a pass in each part of the timed passes; trigger_ns, the
    nanoseconds a pass that were subtracted for starting it (and for copies); at_once, passes of the last
    train.
    """

    def __init__(
        self,
        child: Child,
        number: int,
        inputs: Mapping[str, Spec],
        outputs: Mapping[str, Spec],
        arena: Arena | None,
        threads: int = 0,
    ) -> None:
        self._child, self._number, self._arena = child, number, arena
        self._inputs, self._outputs = dict(inputs), dict(outputs)
        self._one_core = threads == 1
        self._most = most([*inputs.values(), *outputs.values()])
        self._way: Shared | Given | None = None
        self._bound: dict[str, np.ndarray | Rows] | None = None
        self._stale = True  # the slots lack the bound inputs
        self._next = 1  # number of the next pass: goes up as long as the session lives
        nbytes = sum(spec.nbytes for spec in outputs.values())
        # A warm-up's trains are of other lengths, which a kernel can see: those that are timed have room of
        # their own.
        self._kept = {rough: Kept(nbytes) for rough in (False, True)}
        self.trigger_ns = 0.0  # what triggering (and copying) took a pass, and was taken off
        self._trigger_half_ns = 0.0  # and how far that may be off
        self.at_once = 1  # passes of the last train
        self._pass_ns: float = WARM_NS  # of the last train; of the first nothing is known: one is untimed
        self._ended = 0
        self.parts_ns: Sequence[float] = ()  # a pass's in each part of what was timed last
        self._renewed: Renewed | None = None
        self._renewed_pairs: list[Pair] = []  # of `time_renewed`: inputs and outputs of a pass
        self._alike: int | None = None  # of which kind the next train of `time_renewed` is
        # Inputs of the last pass, if that was one over new inputs.
        self._last: dict[str, np.ndarray] | None = None

    @property
    def facts(self) -> dict[str, str]:
        """For the record, in words: how passes are started and what was subtracted for it; which protection
        against a user's kernel is missing, and what of its process was put back. {} before the first
        train."""
        if not self.trigger_ns:
            return {}
        if self._arena is None:
            passes = "a pass" if self.at_once == 1 else f"{self.at_once} passes"
            return {"trigger": f"{self.trigger_ns:.0f} ns a pass taken off, {passes} a trigger"}
        how = "stopped before and after each" if processes.STOPS_ITSELF else "a message before and after each"
        about = f"{self.trigger_ns:.0f} ± {max(1.0, self._trigger_half_ns):.0f}"
        told = {"trigger": f"{about} ns a pass taken off, {how}"}
        if not processes.STOPS_ITSELF:
            told["not enforced"] = "on this system a kernel's process runs on between its passes"
        elif unkept := self._child.unkept:
            told["not enforced"] = f"a kernel's process could {unkept}, of which some may not be seen"
        if self._child.undone:
            told["undone"] = f"the kernel changed {' and '.join(self._child.undone)} of its own process"
        return told

    def last_inputs(self) -> dict[str, np.ndarray]:
        """The inputs of the last timed pass, by name. Call it after `time` or `time_renewed`."""
        if self._last is not None:
            return self._last
        assert self.stirring is not None
        return self.stirring.inputs_of(self._next - 1)

    @property
    def stirring(self) -> Stirring | None:
        """The changes of the bound inputs; None before they are first timed."""
        return self._way.slots.stirring if self._way is not None and not self._stale else None

    def bind(self, inputs: Mapping[str, np.ndarray | Rows]) -> None:
        """Later passes are timed over these inputs, with a few values changed. They are not copied: nobody
        may change them until others are bound."""
        self._bound = dict(inputs)
        self._stale = True
        self._forget()

    @property
    def bound(self) -> Mapping[str, np.ndarray | Rows]:
        """The bound inputs, unchanged; {} before the first `bind`."""
        return self._bound or {}

    def time(self, count: int, cold: bool = False, rough: bool = False) -> int:
        """Nanoseconds of `count` passes together. The time that starting them takes is subtracted.

        cold: caches are overwritten before. rough: the time is for a warm-up, and nobody keeps it. Raises
        TooShortError where hardly anything is left after the subtraction, several times in a row; a rough
        time is then a small share of what was measured. Sets parts_ns. A session with several threads has
        one part a train, another up to PARTS.
        """
        way, self._last = self._ready(), None
        each, trains = self._trains(way, count)
        taken, parts = 0.0, []
        for now in trains:
            found = self._train(way, now, each, cold, rough)
            self._pass_ns, self._ended = sum(found) / now, time.perf_counter_ns()
            taken += sum(found)
            parts += [ns / passes for ns, passes in zip(found, _part_lengths(now, each), strict=True)]
        self.parts_ns = parts
        return round(taken)

    def _trains(self, way: Shared | Given, count: int) -> tuple[int, list[int]]:
        """How many passes each part has when `count` passes are timed, and how many each train."""
        each = min(math.ceil(count / PARTS) if self._one_core else count, way.slots.count)
        return each, _part_lengths(count, way.slots.count // each * each)

    def _untimed(self, count: int) -> int:
        """How many untimed passes go before a train of `count`."""
        idle = time.perf_counter_ns() - self._ended
        warm_ns = WARM_ALONE_NS if self._one_core and self._child.stays else WARM_NS
        return min(count, int(warm_ns / self._pass_ns)) if idle > IDLE_NS or self._child.stays else 0

    def _train(self, way: Shared | Given, count: int, each: int, cold: bool, rough: bool) -> list[float]:
        """Time one train of `count` passes. Returns nanoseconds of each group of `each` passes in a row."""
        for _ in range(TRIES):
            overhead = None if self._arena is not None else way.off(count, cold, rough)
            parts = way.train_ns(self._next, count, self._untimed(count), cold, each)
            # Also of one that is then run again: a kernel could do nothing in as many.
            self._kept[rough].offer(way.slots, self._next, count)
            overhead = overhead or way.off(count, cold, rough)
            self._next += count
            self.trigger_ns, self._trigger_half_ns = overhead.ns / count, overhead.half_width_ns / count
            self.at_once = count
            whole = sum(parts)
            if whole - overhead.ns > LEAST * whole:
                pairs = zip(parts, _part_lengths(count, each), strict=True)
                return [max(ns - overhead.ns * passes / count, LEAST * ns) for ns, passes in pairs]
            if rough:
                break
            # The machine may have been slower when nothing was run than now.
            way.measure_again()
        else:
            raise TooShortError(
                f"{self._child.what}: a pass is too short beside what starting it takes, "
                f"{self.trigger_ns / 1000:.1f} µs; a larger batch or shape helps"
            )
        return [LEAST * ns for ns in parts]

    def renew(self, count: int, alike: int) -> None:
        """Make the inputs of the next train of `time_renewed`, in memory of their own, where they are not
        there already (see engine.stirring.Renewable). Only for a session that is given its passes."""
        way, self._alike = self._ready(), alike
        if self._renewed is None:
            self._renewed = Renewed(way.slots, Slots(self._inputs, self._outputs, way.slots.count, own=True))
        passes = max(self._trains(way, count)[1])
        if self._renewed.filled < passes:
            # Passes of numbers that no timed one has, and no other such train: by them outputs are poisoned.
            self._renewed.fill(secrets.randbits(63), passes)

    def time_renewed(self, count: int, cold: bool = False) -> float:
        """Nanoseconds of one pass of a train over what `renew` has made (see engine.stirring.Renewable). Over
        SAME that is a timed train as any. A kernel could see how long a train is. So one over NEW is as one
        of `time(count)`, drawn at random."""
        alike = self._alike
        self._alike = None
        if alike is None:
            return 0.0
        if alike == SAME:
            return self.time(count, cold) / count
        way, renewed = self._ready(), self._renewed
        assert isinstance(way, Given)
        each, trains = self._trains(way, count)
        passes = secrets.choice(trains)
        if renewed is None or renewed.filled < passes:
            return 0.0
        slots, renewed.filled = renewed.slots, 0
        whole = sum(way.train_ns(self._next, passes, self._untimed(passes), cold, each, slots))
        self._pass_ns, self._ended = whole / passes, time.perf_counter_ns()
        overhead_ns = way.off(passes, cold, rough=False).ns
        slot = secrets.randbelow(passes)
        given, found = (
            {name: array[slot, ...].copy() for name, array in of.items()} for of in (slots.given, slots.left)
        )
        self._last = {name: array[passes - 1, ...].copy() for name, array in slots.given.items()}
        self._renewed_pairs.append((given, found))
        while len(self._renewed_pairs) > 1 and sum(map(_nbytes, self._renewed_pairs)) > PASSES_NBYTES:
            del self._renewed_pairs[secrets.randbelow(len(self._renewed_pairs))]
        return max(whole - overhead_ns, LEAST * whole) / passes

    def renewed(self) -> tuple[Pair, ...]:
        """(inputs, outputs) by name of one pass of each train of `time_renewed` since the last call; not of
        all where they need too much memory."""
        found, self._renewed_pairs = tuple(self._renewed_pairs), []
        return found

    def witnesses(self) -> tuple[Witness, ...]:
        """The record of one pass of each train since the last call; of fewer trains where memory is short."""
        places = {name: np.arange(math.prod(s.shape), dtype=np.int64) for name, s in self._outputs.items()}
        return tuple(
            Witness(number, {name: (places[name], a.reshape(-1)) for name, a in left.items()}, rough)
            for rough, kept in self._kept.items()
            for number, left in kept.take()
        )

    def _forget(self) -> None:
        for kept in self._kept.values():
            kept.forget()

    def _ready(self) -> Shared | Given:
        """How passes are run; the slots have the bound inputs (zeros where none were bound)."""
        way = self._ready_way()
        if self._bound is None:
            self._bound = {name: np.zeros(s.shape, s.dtype) for name, s in self._inputs.items()}
        if self._stale:
            way.slots.bind({n: np.asarray(a, self._inputs[n].dtype) for n, a in self._bound.items()})
            self._stale = False
        return way

    def _ready_way(self) -> Shared | Given:
        """How passes are run: by the child in whole trains (Shared), or given one by one (Given)."""
        if self._way is None:
            about = self._child, self._number, self._inputs, self._outputs, self._most
            self._way = Shared(*about, self._one_core) if self._arena is None else Given(*about, self._arena)
        return self._way


def _nbytes(pair: Pair) -> int:
    return sum(array.nbytes for of in pair for array in of.values())


def _part_lengths(count: int, each: int) -> list[int]:
    """How many passes the parts of a train have."""
    return [min(each, count - k) for k in range(0, count, each)]


# -------------------------------------------------------------------------------------------------- renewed

# For such a train all values of all slots are written anew, other values in each slot. That is done long
# before: what goes right before such a train is what goes before any.
#
# A kernel that works out anew only what the changes touch is faster where they are few. New values are drawn
# for each pass from all that lies between those that were bound (engine.stirring.Cells): none is met twice,
# and none follows from another.


CHUNK = 1 << 16  # values that are drawn at once: little enough to stay in the caches
SEVERAL = 1 << 21  # values from which on several threads draw them
DRAWING = 8  # threads at most
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Renewed:
    """Writes new values to slots. They have the distribution of what is bound in a session's own slots, `of`,
    when this is made; other samples that are bound later have the same. filled: how many
    slots hold values that no train was run over."""

    def __init__(self, of: Slots, slots: Slots) -> None:
        assert of.stirring is not None
        self.slots, self.filled = slots, 0
        slots.stirring = of.stirring
        self._cells = {name: of.stirring.cells(name) for name in of.given}

    def fill(self, first: int, count: int) -> None:
        """Write the inputs of the first `count` slots, for passes number `first`, `first` + 1, …; and poison
        a few values of each output."""
        for name, array in self.slots.given.items():
            flat = array.reshape(self.slots.rows, -1)[:count]
            if flat.size:
                _draw(flat, self._cells[name])
        self.slots.poison(first, count)
        self.filled = count


def _draw(flat: np.ndarray, cells: Cells) -> None:
    """Write new values to all of `flat`, (slots, values of an input)."""

    def draw_part(part: np.ndarray) -> None:
        random = np.random.Generator(np.random.SFC64(int.from_bytes(os.urandom(16))))
        for start in range(0, part.size, CHUNK):
            piece = part[start : start + CHUNK]
            bits = cells.drawn(random.integers(0, 1 << 64, piece.size, np.uint64))
            piece[:] = bits.astype(_UNSIGNED[part.itemsize]).view(part.dtype)

    if flat.size < SEVERAL:
        for row in flat:
            draw_part(row)
        return
    with ThreadPoolExecutor(min(DRAWING, host.physical_cores())) as pool:
        list(pool.map(draw_part, _ranges(flat)))


def _ranges(flat: np.ndarray) -> Iterator[np.ndarray]:
    """Views that cover `flat`, for the threads to share; none spans two rows."""
    each = max(CHUNK, -(-flat.size // (4 * DRAWING)))
    for row in flat:
        for start in range(0, len(row), each):
            yield row[start : start + each]
