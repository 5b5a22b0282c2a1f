"""Differences and disturbances that are planted, so that it is known what a comparison has to find."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import overload

from bench.measure.instances import Growing
from bench.measure.timing import Timeable
from engine.backend import in_one_thread, parts_ns, warm_runs

_SPIN = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"


class Slowed:
    """A session whose passes take `factor` times as long: each train is run as often as fits, and for the
    rest of it a core spins, by the clock, for a part of the shortest time that such a train has taken."""

    def __init__(self, session: Timeable, factor: float) -> None:
        self._session, self._factor = session, factor
        self._slowed = 1.0
        self._least: dict[int, int] = {}  # nanoseconds of a train, by its passes

    @property
    def facts(self) -> dict[str, str]:
        return dict(getattr(self._session, "facts", {}))

    @property
    def one_thread(self) -> bool:
        return in_one_thread(self._session)

    @property
    def parts_ns(self) -> Sequence[float]:
        return [self._slowed * ns for ns in parts_ns(self._session)]

    def time_runs(self, count: int, cold: bool = False) -> int:
        whole = int(self._factor)
        taken = self._session.time_runs(whole * count, cold)
        slowed = taken + self._spun(count, taken / whole, self._factor - whole)
        self._slowed = whole * slowed / taken if taken else 1.0  # of a pass: `whole` of them stand for one
        return slowed

    def warm_runs(self, count: int) -> int:
        whole = int(self._factor)
        taken = warm_runs(self._session, whole * count)
        return taken + self._spun(count, taken / whole, self._factor - whole)

    def _spun(self, count: int, taken: float, part: float) -> int:
        least = self._least[count] = min(self._least.get(count, round(taken)), round(taken))
        began = time.perf_counter_ns()
        while (spun := time.perf_counter_ns() - began) < part * least:
            pass
        return spun if part else 0


class SlowedInstances(Growing[Timeable]):
    """The same of all instances of a contender, also of those that it is given later."""

    def __init__(self, instances: Sequence[Timeable], factor: float) -> None:
        self._of, self._factor = instances, factor
        self._slowed: dict[int, Slowed] = {}

    def __len__(self) -> int:
        return len(self._of)

    @overload
    def __getitem__(self, index: int) -> Timeable: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Timeable]: ...
    def __getitem__(self, index: int | slice) -> Timeable | Sequence[Timeable]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        if index not in self._slowed:
            self._slowed[index] = Slowed(self._of[index], self._factor)
        return self._slowed[index]

    def more(self) -> bool:
        return isinstance(self._of, Growing) and self._of.more()


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Beside so many processes that each keep a core busy; they end with this one, however it ends."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            one = stack.enter_context(subprocess.Popen([sys.executable, "-S", "-c", _SPIN]))
            stack.callback(one.kill)
        yield
