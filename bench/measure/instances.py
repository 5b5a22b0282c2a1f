"""Further instances of what is timed: the same session created again, which lies at other addresses, captures
its graph anew and chooses again what a session chooses by itself.

A figure of one session is of that session (docs/trust.md): what its addresses happen to do for a cache, which
algorithm cuDNN's search took, is in every sample of it and in none of its interval. So what is timed takes
its rounds by several (bench.measure.timing). The first is checked as if it was alone; each other one has to
give what the first gives before it is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar, overload

import numpy as np

from bench.measure.answers import accuracy
from bench.measure.outcomes import Incorrect
from bench.results.records import ErrorStats
from engine.machine.host import free_nbytes
from kernels.errors import OutOfMemoryError

# More than are asked for, up to so many, where a contender's others are made in so little time: what three
# leave unclear five mostly tell (docs/trust.md); and of ten on the host two may be off that others disturbed.
MOST, MOST_ON_HOST, QUICK_S = 5, 10, 0.25
HURRY_S = 0.5  # of a budget below this none is made but those that are asked for
# Where what instances differ by is all that a verdict hangs on, there are up to so many times what is asked
# for, one more a round, for as long as making them takes no longer than this.
TIMES, GROWING_S = 3, 2.0
# A further instance takes at most this part of the memory that is free: what it is known to hold is not all
# that it takes once it runs, and the checks after timing want some too.
SHARE = 0.5
# Two answers that are each within a bound of the right one are within twice that of each other.
APART = 2.0


class Closable(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=Closable)
S = TypeVar("S", covariant=True)
NO_MEMORY, NO_TIME = "memory did not suffice", "the budget has no time"


def further(
    count: int, nbytes: int, device: str, room: float, make: Callable[[int], T], quick_s: float = QUICK_S
) -> tuple[list[T], str]:
    """Instances 1 to `count` - 1 (0 is there), as many of them as time and memory suffice for, and why these
    are fewer ("" where they are not); where there are to be several and they are made quickly, up to `most`.
    nbytes: what one is known to take; room: passes that the budget has time for, since an instance without
    a sample is of no use; make: instance of this number, checked; quick_s: what more than `count` may take
    in all. Raises
    what `make` raises but for memory that did not suffice; then none is left open."""
    made: list[T] = []
    short = NO_MEMORY
    began = time.perf_counter()
    try:
        for number in range(1, max(count, most(device)) if count > 1 else 1):
            # As long as the next would take as long as those before.
            if number >= count and (time.perf_counter() - began) * number / (number - 1) > quick_s:
                break
            if number >= room:
                short = NO_TIME
                break
            if nbytes > SHARE * _free_nbytes(device):
                break
            made.append(make(number))
    except (OutOfMemoryError, MemoryError):
        pass
    except BaseException:
        for one in made:
            one.close()
        raise
    return made, "" if len(made) + 1 >= count else short


def most(device: str) -> int:
    """How many there are of a contender on this device, where they are made quickly."""
    return MOST if device == "cuda" else MOST_ON_HOST


class Growing(Sequence[S]):
    """Instances that are all open, and may become more while they are timed."""

    def __init__(
        self,
        first: Any,
        others: list[Any],
        make: Callable[[int], Any],
        most: int,
        seconds: float,
        nbytes: int = 0,
        device: str = "cpu",
        shown: Callable[[Any], S] = lambda made: made,
    ) -> None:
        """others: the further ones, which what is made is added to; make: the instance of this number,
        checked; most: of all; seconds: that making more may take; nbytes, device: what one takes, of what;
        shown: what one is to whoever has these."""
        self._shown = shown
        self._first, self._others, self._make, self._most = first, others, make, most
        self._left_s, self._longest_s = seconds, 0.0
        self._nbytes, self._device = nbytes, device

    def __len__(self) -> int:
        return 1 + len(self._others)

    @overload
    def __getitem__(self, index: int) -> S: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[S]: ...
    def __getitem__(self, index: int | slice) -> S | Sequence[S]:
        held = [self._first, *self._others][index]
        return [self._shown(one) for one in held] if isinstance(index, slice) else self._shown(held)

    def more(self) -> bool:
        """Make another; False where that would be too many, or take too long, or memory does not suffice.
        Raises what making it raises."""
        if len(self) >= self._most or self._longest_s > self._left_s:
            return False
        if self._nbytes > SHARE * _free_nbytes(self._device):
            return False
        began = time.perf_counter()
        try:
            made = self._make(len(self))
        except (OutOfMemoryError, MemoryError):
            return False
        self._others.append(made)
        taken = time.perf_counter() - began
        self._longest_s = max(self._longest_s, taken)
        self._left_s -= taken
        return True


class Succession(Generic[S]):
    """Instances of which memory holds one at a time: each is timed for some rounds in a row before the next
    takes its place. change: closes the one that is open and makes the one of this number."""

    def __init__(self, first: S, count: int, change: Callable[[int], S]) -> None:
        self._session, self._number, self._count, self._change = first, 0, count, change

    def __len__(self) -> int:
        return self._count

    def at(self, turn: int, least: int) -> tuple[int, S]:
        """Whose turn it is, and its number: the first `least` rounds are shared out, the last keeps the
        rest. Raises what making one raises."""
        number = min(turn * self._count // least, self._count - 1)
        if number != self._number:
            self._session, self._number = self._change(number), number
        return number, self._session


def fewer(there: int, count: int, short: str) -> str:
    """Why there are fewer than were asked for, as a sentence; "" where there are not."""
    return f"timed in {told(there)}: {short} for {count}" if short else ""


def told(count: int) -> str:
    """How many, in words."""
    return "1 instance" if count == 1 else f"{count} instances"


def _free_nbytes(device: str) -> int:
    if device != "cuda":
        return free_nbytes()
    from engine.cuda.runtime import import_cupy

    return int(import_cupy().cuda.runtime.memGetInfo()[0])


@contextmanager
def named(number: int) -> Iterator[None]:
    """What is found wrong here is told of instance `number`; of the first as if it was alone."""
    try:
        yield
    except Incorrect as error:
        if number == 0:
            raise
        raise Incorrect(error.error, f"in instance {number + 1}", str(error)) from error


def alike(
    got: Mapping[str, np.ndarray], first: Mapping[str, np.ndarray], precision: str, factor: float = 1.0
) -> ErrorStats:
    """An instance's outputs against those of the first over the same inputs, all of their elements; of
    several outputs the worst. precision, factor: the bound of each."""
    found = [
        accuracy.judged(got[name], first[name].astype(np.float64), precision, APART * factor)
        for name in first
    ]
    return max(found, key=lambda stats: (not stats.ok, stats.rel_l2))
