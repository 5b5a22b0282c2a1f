"""A session on a device in an isolated process: passes, clock and stirring are there, beside the device; the
parent knows the seed, and so rebuilds any timed pass.

`OnDevice` is the child's side of one, `IsolatedDeviceSession` the parent's. It is for what no user wrote: the
child's own clock is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
import numpy as np

from engine.backend import Witness
from engine.isolated.session import IsolatedSession
from engine.rung_rows import Given
from engine.stirring import Stirring

Shape = tuple[tuple[int, ...], np.dtype]


class WitnessReply(msgspec.Struct, array_like=True):
    """Of one timed pass: its number, and by output the bytes of places and values, and the type of those."""

    number: int
    outputs: dict[str, tuple[bytes, bytes, str]]


class Held(Protocol):
    """What a session in the child has: see engine.backend.Session, Queued and Witnessed. inputs, outputs: as
    they lie on the device."""

    phases: Mapping[str, int]
    memory: Mapping[str, int]
    facts: Mapping[str, str]

    @property
    def inputs(self) -> Mapping[str, Shape]: ...
    @property
    def outputs(self) -> Mapping[str, Shape]: ...
    def bind(self, inputs: Mapping[str, np.ndarray]) -> None: ...
    def run(self) -> None: ...
    def synchronize(self) -> None: ...
    def fetch(self) -> dict[str, np.ndarray]: ...
    def time_runs(self, count: int, cold: bool = False) -> int: ...
    def time_queued(self, count: int) -> int: ...
    @property
    def stirring(self) -> Stirring | None: ...
    @property
    def stirring_ns(self) -> float: ...
    def witnesses(self) -> tuple[Witness, ...]: ...
    def close(self) -> None: ...


class OnDevice:
    """A session as engine.isolated.child asks it."""

    def __init__(self, session: Held) -> None:
        self._session = session
        self.phases, self.memory, self.facts = session.phases, session.memory, session.facts
        self.bind, self.run, self.close = session.bind, session.run, session.close
        self.synchronize = session.synchronize
        self.time_runs, self.time_queued = session.time_runs, session.time_queued
        # Shapes alone: what is bound goes to the device.
        self.given = {
            name: np.broadcast_to(np.zeros((), dtype), shape)
            for name, (shape, dtype) in session.inputs.items()
        }

    def answers(self) -> dict[str, np.ndarray]:
        outputs = self._session.fetch()
        return {name: outputs[name].astype(dtype) for name, (_, dtype) in self._session.outputs.items()}

    def stirred(self) -> tuple[int, float] | None:
        """The seed of what is bound, and what stirring takes a pass."""
        stirring = self._session.stirring
        return None if stirring is None else (stirring.seed, float(self._session.stirring_ns))

    def witnesses(self) -> tuple[WitnessReply, ...]:
        return tuple(
            WitnessReply(
                witness.number,
                {
                    name: (np.asarray(at, np.int64).tobytes(), values.tobytes(), values.dtype.name)
                    for name, (at, values) in witness.outputs.items()
                },
            )
            for witness in self._session.witnesses()
        )


class IsolatedDeviceSession(IsolatedSession):
    """The parent's side; see engine.backend.Session, Queued and Witnessed."""

    def __init__(self, kind: str, what: str, batch: int, arguments: tuple[Any, ...], precision: str) -> None:
        self._known: tuple[Stirring | None, float] | None = None
        super().__init__(kind, what, batch, arguments)
        self.precision = precision

    def _write(self, inputs: Mapping[str, Given]) -> None:
        self._known = None
        super()._write(inputs)

    def synchronize(self) -> None:
        self._asked("ask", "synchronize")

    def time_runs(self, count: int, cold: bool = False) -> int:
        self._known = None
        return int(self._asked("ask", "time_runs", count, cold, answers=int))

    def warm_runs(self, count: int) -> int:
        """As any: the device's clock knows no trigger."""
        return self.time_runs(count)

    def time_queued(self, count: int) -> int:
        self._known = None
        return int(self._asked("ask", "time_queued", count, answers=int))

    @property
    def stirring(self) -> Stirring | None:
        return self._stirred_by()[0]

    @property
    def stirring_ns(self) -> float:
        return self._stirred_by()[1]

    def witnesses(self) -> tuple[Witness, ...]:
        replies = self._asked("ask", "witnesses", answers=tuple[WitnessReply, ...])
        return tuple(
            Witness(
                it.number,
                {
                    name: (np.frombuffer(at, np.int64), np.frombuffer(values, dtype))
                    for name, (at, values, dtype) in it.outputs.items()
                },
            )
            for it in replies
        )

    def _stirred_by(self) -> tuple[Stirring | None, float]:
        if self._known is None:
            reply = self._asked("ask", "stirred", answers=tuple[int, float] | None)
            if reply is None:
                self._known = None, 0.0
            else:
                # As engine.cuda.stirring has them: what is empty is not stirred.
                inputs = {
                    name: np.asarray(self._trains.bound.get(name, np.zeros(spec.shape)), spec.dtype)
                    for name, spec in self._inputs.items()
                    if spec.nbytes
                }
                outputs = {
                    name: (spec.shape, np.dtype(spec.dtype))
                    for name, spec in self._outputs.items()
                    if spec.nbytes
                }
                self._known = Stirring(inputs, outputs, reply[0]), reply[1]
        return self._known
