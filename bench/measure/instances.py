"""Further instances of a contender. An instance is the same session, created again: it has other memory
addresses, captures its CUDA graph again, and repeats the choices that a session makes during its creation.

The times of one session hold for that session only (docs/trust.md). Its addresses may suit a cache by chance,
or cuDNN's search may have found a slow algorithm. That affects every sample of the session, so its confidence
interval does not show it. So the rounds of a contender are spread over several instances
(bench.measure.timing). The first one is checked as if it was alone. Each other one must give the same answers
as the first before it is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar, overload

import numpy as np

from bench.measure.answers import accuracy
from bench.measure.outcomes import Incorrect
from bench.results import doubt
from bench.results.records import ErrorStats
from engine.machine.host import free_nbytes
from kernels.errors import OutOfMemoryError

# More instances than asked for are created, up to MOST on a GPU and MOST_ON_HOST on the host, if all of them
# take at most QUICK_S seconds. What three leave unclear, five mostly show (docs/trust.md); on the host other
# programs may disturb two of ten.
MOST, MOST_ON_HOST, QUICK_S = 5, 10, 0.25
HURRY_S = 0.5  # with a budget of fewer seconds, only the instances that are asked for are created
# If only the difference between instances makes a verdict unclear, one more is created after a round: up to
# TIMES as many as asked for, and for at most GROWING_S seconds in all.
TIMES, GROWING_S = 3, 2.0
# A further instance may take at most this part of the free memory: when it runs it takes more than it says,
# and the checks after timing need memory, too.
SHARE = 0.5
# If two answers are each within a bound of the right one, they are within twice that bound of each other.
APART = 2.0


class Closable(Protocol):
    """What has to be closed after use."""

    def close(self) -> None:
        """Free what it holds."""


T = TypeVar("T", bound=Closable)
S = TypeVar("S", covariant=True)
# Reasons that `create_more` returns.
NO_MEMORY, NO_TIME = "memory did not suffice", doubt.NO_TIME


def create_more(
    count: int, nbytes: int, device: str, room: float, make: Callable[[int], T], quick_s: float = QUICK_S
) -> tuple[list[T], str]:
    """Create the instances 1, 2, … of a contender; number 0 exists already. Returns the new instances, and
    why there are fewer than asked for: NO_MEMORY, NO_TIME, or "" if there are enough.

    count: how many are asked for, number 0 among them. If count > 1, more are created, up to `most(device)`
    with number 0, while all of them are expected to take at most quick_s seconds. nbytes: bytes that one
    instance is known to take. device: "cpu" or "cuda". room: how many passes the budget has time for; there
    are no more instances than that. make(number): creates and checks an instance. Raises what `make` raises,
    after closing all new instances; but if `make` raises OutOfMemoryError or MemoryError, the instances so
    far are returned.
    """
    made: list[T] = []
    short = NO_MEMORY
    began = time.perf_counter()
    try:
        for number in range(1, max(count, most(device)) if count > 1 else 1):
            # Assumes that the next one takes as long as those before.
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
    """How many instances a contender on this device ("cpu" or "cuda") has at most, if they are created
    quickly."""
    return MOST if device == "cuda" else MOST_ON_HOST


class Growing(Sequence[S]):
    """A sequence of open instances, to which `more` can add one while they are timed."""

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
        """first: instance 0. others: the list of the further ones; `more` appends to this same list.
        make(number): creates and checks an instance. most: how many instances there may be in all. seconds:
        how long all calls of `more` together may take. nbytes: bytes that one instance takes on `device`
        ("cpu" or "cuda"). shown: turns an instance into the object that indexing returns."""
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
        """Create one more instance. Returns False, and creates none, if there would be too many, or it would
        take too long, or there is not enough memory. Raises any other error that `make` raises."""
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
    """Instances of which only one is open at a time, because there is not enough memory for more. Each is
    timed for some rounds in a row; then the next one replaces it. first: instance 0, open. count: how many
    instances there are in all. change(number): closes the open instance, and creates this one."""

    def __init__(self, first: S, count: int, change: Callable[[int], S]) -> None:
        self._session, self._number, self._count, self._change = first, 0, count, change

    def __len__(self) -> int:
        return self._count

    def at(self, turn: int, least: int) -> tuple[int, S]:
        """Returns (number of the instance to be timed in round `turn`, that instance); replaces the open one
        if needed. turn: from 0. The first `least` rounds are divided among the instances; all later rounds
        belong to the last one. Raises what `change` raises."""
        number = min(turn * self._count // least, self._count - 1)
        if number != self._number:
            self._session, self._number = self._change(number), number
        return number, self._session


def fewer(there: int, count: int, short: str) -> str:
    """A sentence for the user: there are only `there` instances instead of `count`, and why. short: the
    reason; if it is "", the sentence is "", too."""
    return f"timed in {told(there)}: {short} for {count}" if short else ""


def told(count: int) -> str:
    """A number of instances in words, such as "3 instances"."""
    return "1 instance" if count == 1 else f"{count} instances"


def _free_nbytes(device: str) -> int:
    if device != "cuda":
        return free_nbytes()
    from engine.cuda.runtime import import_cupy

    return int(import_cupy().cuda.runtime.memGetInfo()[0])


@contextmanager
def named(number: int) -> Iterator[None]:
    """Context manager: if Incorrect is raised inside, it is raised again with "in instance N", N = number +
    1. For number 0 it stays as it is."""
    try:
        yield
    except Incorrect as error:
        if number == 0:
            raise
        raise Incorrect(error.error, f"in instance {number + 1}", str(error)) from error


def error_against_first(
    got: Mapping[str, np.ndarray], first: Mapping[str, np.ndarray], precision: str, factor: float = 1.0
) -> ErrorStats:
    """Compare all elements of an instance's outputs with those of the first instance, over the same inputs.
    got, first: outputs by name. Returns the errors of the worst output; `ok` says whether they are within the
    bound. The bound is twice that of one answer against the right one: the precision's ("fp32", …) times
    factor."""
    found = [
        accuracy.judged(got[name], first[name].astype(np.float64), precision, APART * factor)
        for name in first
    ]
    return max(found, key=lambda stats: (not stats.ok, stats.rel_l2))
