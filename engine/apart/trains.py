"""The timed passes of a session apart: trains over slots whose inputs changed since the train before."""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from engine.apart.client import Child
from engine.apart.memory import Spec
from engine.apart.slots import PASSES_NBYTES, Kept, Slots, most
from engine.apart.timed import Arena, Given, Shared
from engine.machine import host
from engine.stirring import LEAST, Cells, Stirring
from engine.witness import NEW, Witness
from kernels import ends
from kernels.errors import TooShortError

# Passes before a train that are not timed, so long: what is woken settles on its cores, and threads that wait
# for each other have met. One thread has nobody to meet, and finds what it had in its caches in less. None
# where a pass is longer than that, or the last train ended just before.
WARM_NS, WARM_ALONE_NS, IDLE_NS = 2_000_000, 500_000, 1_000_000
PARTS = 8  # of what is timed at once in one thread, each of which is a sample
Pair = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]
TRIES = 3  # of a train of which nothing is left, with what is taken off measured anew in between


class ApartTrains:
    """Of session `number` of a child. inputs, outputs: what a pass is given, and leaves; arena: of one that
    is given its passes; threads: how many another was told to take (0: not known)."""

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
        self._bound: dict[str, np.ndarray] | None = None
        self._stale = True
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
        self._over_new: list[Pair] = []  # of trains over such slots: what a pass was given and left
        self._trains: list[tuple[int, int]] = []  # of the last passes that were timed: timed and untimed ones

    @property
    def facts(self) -> dict[str, str]:
        """How the passes were started, in words, once some were."""
        if not self.trigger_ns:
            return {}
        if self._arena is None:
            passes = "a pass" if self.at_once == 1 else f"{self.at_once} passes"
            return {"trigger": f"{self.trigger_ns:.0f} ns a pass taken off, {passes} a trigger"}
        how = "stopped before and after each" if ends.STOPS_ITSELF else "a message before and after each"
        about = f"{self.trigger_ns:.0f} ± {max(1.0, self._trigger_half_ns):.0f}"
        told = {"trigger": f"{about} ns a pass taken off, {how}"}
        if not ends.STOPS_ITSELF:
            told["not enforced"] = "on this system a kernel's process runs on between its passes"
        elif unkept := self._child.unkept:
            told["not enforced"] = f"a kernel's process could {unkept}, of which some may not be seen"
        if self._child.undone:
            told["undone"] = f"the kernel changed {' and '.join(self._child.undone)} of its own process"
        return told

    def last_inputs(self) -> dict[str, np.ndarray]:
        """What the last timed pass was given."""
        assert self.stirring is not None
        return self.stirring.inputs_of(self._next - 1)

    @property
    def stirring(self) -> Stirring | None:
        return self._way.slots.stirring if self._way is not None and not self._stale else None

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        """These are what is stirred from now on; kept as they are."""
        self._bound = {name: np.array(array, self._inputs[name].dtype) for name, array in inputs.items()}
        self._stale = True
        self._forget()
        self._renewed = None

    @property
    def bound(self) -> Mapping[str, np.ndarray]:
        """What was bound, as it was."""
        return self._bound or {}

    def time(self, count: int, cold: bool = False, rough: bool = False) -> int:
        """Nanoseconds of `count` passes without what starting them takes; parts_ns are then a pass's in each
        part of them (where it takes several threads, there is one part a train). rough: as empty's. Raises
        TooShortError where what is left is no more than an error of what was taken off."""
        way = self._ready()
        each = min(math.ceil(count / PARTS) if self._one_core else count, way.slots.count)
        most = way.slots.count // each * each
        left, taken, parts = count, 0.0, []
        self._trains.clear()
        while left > 0:
            now = min(left, most)
            found = self._train(way, now, each, cold, rough)
            self._pass_ns, self._ended = sum(found) / now, time.perf_counter_ns()
            taken += sum(found)
            parts += [ns / passes for ns, passes in zip(found, _parts(now, each), strict=True)]
            left -= now
        self.parts_ns = parts
        return round(taken)

    def _train(self, way: Shared | Given, count: int, each: int, cold: bool, rough: bool) -> list[float]:
        """Nanoseconds of so many passes, of each `each` of them in a row."""
        for _ in range(TRIES):
            idle = time.perf_counter_ns() - self._ended
            warm_ns = WARM_ALONE_NS if self._one_core and self._child.stays else WARM_NS
            untimed = min(count, int(warm_ns / self._pass_ns)) if idle > IDLE_NS or self._child.stays else 0
            off = None if self._arena is not None else way.off(count, cold, rough)
            parts = way.train_ns(self._next, count, untimed, cold, each)
            self._trains.append((count, untimed))
            # Also of one that is then run again: a kernel could do nothing in as many.
            self._kept[rough].offer(way.slots, self._next, count)
            off = off or way.off(count, cold, rough)
            self._next += count
            self.trigger_ns, self._trigger_half_ns = off.ns / count, off.half_width_ns / count
            self.at_once = count
            whole = sum(parts)
            if whole - off.ns > LEAST * whole:
                pairs = zip(parts, _parts(count, each), strict=True)
                return [max(ns - off.ns * passes / count, LEAST * ns) for ns, passes in pairs]
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

    def time_renewed(self, count: int, alike: int) -> float:
        """See engine.witness.Renewable. A kernel could see how many passes a train has: it has as many as one
        of those that were timed last, drawn among these."""
        if self._renewed is None:
            self._renewed = Renewed(self._ready().slots)
        way, slots, self._stale = self._ready_way(), self._renewed.slots, True
        self._forget()
        passes, untimed = secrets.choice(self._trains or [(min(count, slots.count), 0)])
        # Passes of numbers that no timed one has, and no other such train: outputs are poisoned by them, too.
        self._renewed.fill(secrets.randbits(63), passes, alike)
        whole = sum(way.filled_ns(passes, untimed))
        off = way.off(passes, cold=False, rough=False).ns
        self._ended = time.perf_counter_ns()
        slot = secrets.randbelow(passes)
        given, found = (
            {name: array[slot, ...].copy() for name, array in of.items()} for of in (slots.given, slots.left)
        )
        self._over_new.append((given, found))
        while len(self._over_new) > 1 and sum(map(_nbytes, self._over_new)) > PASSES_NBYTES:
            del self._over_new[secrets.randbelow(len(self._over_new))]
        return max(whole - off, LEAST * whole) / passes

    def renewed(self) -> tuple[Pair, ...]:
        """See engine.witness.Renewable."""
        found, self._over_new = tuple(self._over_new), []
        return found

    def witnesses(self) -> tuple[Witness, ...]:
        """A pass of each train since this was asked, or of as many as there is room for."""
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
        """With slots that are as was bound, but for what is stirred."""
        way = self._ready_way()
        if self._bound is None:
            self._bound = {name: np.zeros(s.shape, s.dtype) for name, s in self._inputs.items()}
        if self._stale:
            way.slots.bind(self._bound)
            self._stale = False
        return way

    def _ready_way(self) -> Shared | Given:
        if self._way is None:
            about = self._child, self._number, self._inputs, self._outputs, self._most
            self._way = Shared(*about, self._one_core) if self._arena is None else Given(*about, self._arena)
        return self._way


def _nbytes(pair: Pair) -> int:
    return sum(array.nbytes for of in pair for array in of.values())


def _parts(count: int, each: int) -> list[int]:
    """How many passes the parts of a train have."""
    return [min(each, count - k) for k in range(0, count, each)]


# -------------------------------------------------------------------------------------------------- renewed

# Slots all of whose values are written anew before a train: others in each, or those that timed passes have.
#
# A kernel that works out anew only what the changes touch is faster where they are few. So that nothing else
# can be, every slot is written whole whichever it is. New values are drawn for each pass from all that lies
# between those that were bound (engine.stirring.Cells): none is met twice, and none follows from another.


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

    def fill(self, first: int, count: int, alike: int) -> None:
        """The first `count` slots, as passes from this number on. alike: see engine.witness.Renewable."""
        for name, array in self.slots.given.items():
            flat = array.reshape(self.slots.rows, -1)[:count]
            if not flat.size:
                continue
            # Whichever it is: what the parent does before a train is no reason for one to be slower.
            _draw(flat, self._cells[name])
            if alike == NEW:
                continue
            flat[:] = self._bound[name].reshape(-1)
            numbers = np.arange(first, first + count, dtype=np.uint64)
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
        list(pool.map(some, _ranges(flat)))


def _ranges(flat: np.ndarray) -> Iterator[np.ndarray]:
    each = max(CHUNK, -(-flat.size // (4 * DRAWING)))
    for row in flat:
        for start in range(0, len(row), each):
            yield row[start : start + each]
