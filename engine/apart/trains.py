"""The timed passes of a session apart: trains over slots whose inputs changed since the train before."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping

import numpy as np

from engine.apart import empty, timed
from engine.apart.client import Child
from engine.apart.memory import Spec
from engine.apart.renewed import Renewed
from engine.apart.slots import Kept, Slots, most
from engine.stirring import LEAST, Stirring
from engine.witness import NEW, Witness

# Passes before a train that are not timed, so long: what is woken settles on its cores, and threads that wait
# for each other have met. None where a pass is longer than that, or the last train ended just before.
WARM_NS, IDLE_NS = 2_000_000, 1_000_000


class ApartTrains:
    """Of session `number` of a child. inputs, outputs: what a pass is given, and leaves."""

    def __init__(
        self, child: Child, number: int, inputs: Mapping[str, Spec], outputs: Mapping[str, Spec]
    ) -> None:
        self._child, self._number = child, number
        self._inputs, self._outputs = dict(inputs), dict(outputs)
        self._most = most([*inputs.values(), *outputs.values()])
        self._slots: Slots | None = None
        self._bound: dict[str, np.ndarray] | None = None
        self._stale = True
        self._next = 1  # number of the next pass: goes up as long as the session lives
        self._kept = Kept(sum(spec.nbytes for spec in outputs.values()))
        self.trigger_ns = 0.0  # what triggering and copying took a pass, and was taken off
        self.at_once = 1  # passes of the last train
        self._pass_ns: float = WARM_NS  # of the last train; of the first nothing is known: one is untimed
        self._ended = 0
        self._renewed: Renewed | None = None
        self._last: tuple[dict[str, np.ndarray], dict[str, np.ndarray]] | None = None

    @property
    def facts(self) -> dict[str, str]:
        """How the passes were started, in words, once some were."""
        if not self.trigger_ns:
            return {}
        passes = "a pass" if self.at_once == 1 else f"{self.at_once} passes"
        return {"trigger": f"{self.trigger_ns:.0f} ns a pass taken off, {passes} a trigger"}

    def last_inputs(self) -> dict[str, np.ndarray]:
        """What the last timed pass was given."""
        assert self.stirring is not None
        return self.stirring.inputs_of(self._next - 1)

    @property
    def stirring(self) -> Stirring | None:
        return self._slots.stirring if self._slots is not None and not self._stale else None

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        """These are what is stirred from now on; kept as they are."""
        self._bound = {name: np.array(array, self._inputs[name].dtype) for name, array in inputs.items()}
        self._stale = True
        self._kept.forget()
        self._renewed = self._last = None

    def time(self, count: int, cold: bool = False, rough: bool = False) -> int:
        """Nanoseconds of `count` passes without what triggering and copying takes. rough: as empty's."""
        slots = self._ready()
        left, taken = count, 0.0
        while left > 0:
            now = min(left, slots.count)
            overhead = empty.train_ns(
                self._inputs, self._outputs, now, slots.count, cold, self._child.stays, rough
            )
            idle = time.perf_counter_ns() - self._ended
            untimed = min(now, int(WARM_NS / self._pass_ns)) if idle > IDLE_NS or self._child.stays else 0
            whole = timed.train_ns(
                self._child, self._number, slots, self._next, now, untimed=untimed, cold=cold
            )
            # Where the machine was busier while nothing was run than while something was, little is left.
            passes_ns = max(whole - overhead, LEAST * whole)
            taken += passes_ns
            self._kept.offer(slots, self._next, now)
            self.trigger_ns, self.at_once = overhead / now, now
            self._pass_ns, self._ended = passes_ns / now, time.perf_counter_ns()
            self._next += now
            left -= now
        return round(taken)

    def time_renewed(self, count: int, alike: int) -> float:
        """See engine.witness.Renewable."""
        if self._renewed is None:
            self._renewed = Renewed(self._ready())
        slots, self._stale = self._renewed.slots, True
        self._kept.forget()
        train = secrets.randbits(64)
        taken, done = 0.0, 0
        # Before each train a pass of its kind: one over the same inputs then finds them there, and whoever is
        # woken has been so for both.
        for settling, passes in (True, 1), (False, count):
            left = passes
            while left > 0:
                now = min(left, slots.count)
                self._renewed.fill(done, now, alike, train)
                overhead = empty.train_ns(
                    self._inputs, self._outputs, now, slots.count, False, self._child.stays, False
                )
                whole = self._child.train(self._number, now)
                taken += 0 if settling else max(whole - overhead, LEAST * whole)
                left, done = left - now, done + now
        if alike == NEW:
            slot = secrets.randbelow(now)
            given, found = (
                {name: array[slot, ...].copy() for name, array in of.items()}
                for of in (slots.given, slots.left)
            )
            self._last = given, found
        return taken / count

    def renewed(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]] | None:
        return self._last

    def witnesses(self) -> tuple[Witness, ...]:
        """A few passes, drawn among all since the last time that this was asked."""
        return tuple(
            Witness(
                number, {name: (np.arange(a.size, dtype=np.int64), a.reshape(-1)) for name, a in left.items()}
            )
            for number, left in self._kept.take()
        )

    def _ready(self) -> Slots:
        if self._bound is None:
            self._bound = {name: np.zeros(s.shape, s.dtype) for name, s in self._inputs.items()}
        if self._slots is None:
            self._slots = timed.held(self._child, self._number, self._inputs, self._outputs, self._most)
        if self._stale:
            self._slots.bind(self._bound)
            self._stale = False
        return self._slots
