"""Timed passes that can be looked at afterwards: the one protocol of all sessions that change their inputs
while they are timed (engine.stirring)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from engine.stirring import Stirring


@dataclass(frozen=True)
class Witness:
    """Of one timed pass. number: its inputs are `stirring.inputs_of(number)`; outputs: by name, flat places
    (int64) and the values that were found there. rough: of a warm-up, whose times nobody keeps."""

    number: int
    outputs: Mapping[str, tuple[np.ndarray, np.ndarray]]
    rough: bool = False


@runtime_checkable
class Witnessed(Protocol):
    """A session whose timed passes are given inputs that change from pass to pass.

    stirring: of what is bound; None before the first timed pass. stirring_ns: what changing inputs, or
    triggering, takes a pass, taken off the times.
    """

    @property
    def stirring(self) -> Stirring | None: ...

    @property
    def stirring_ns(self) -> float: ...

    def witnesses(self) -> tuple[Witness, ...]:
        """Timed passes that were kept: of the last train, or one of each train since this was asked."""


NEW, SAME = 1, 0  # of `alike`


@runtime_checkable
class Renewable(Protocol):
    """A session whose passes can be timed over inputs that are wholly new."""

    def time_renewed(self, count: int, alike: int) -> float:
        """Nanoseconds a pass of about so many in a row, before each of which every value of each input was
        written, without what starting them takes.
        alike: NEW: others in each, of which none lay there before; SAME: as timed passes have them, a few of
        them changed. Nobody who computes the pass can tell a train over SAME from one of `time_runs`."""

    def renewed(self) -> Sequence[tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]]:
        """Inputs and outputs of a pass of each such train since this was asked; of the last of them over new
        inputs alone, where more cannot be had; of none where that would take long."""
