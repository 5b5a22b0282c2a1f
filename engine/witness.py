"""Timed passes that can be looked at afterwards: the one protocol of all sessions that change their inputs
while they are timed (engine.stirring)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from engine.stirring import Stirring


@dataclass(frozen=True)
class Witness:
    """Of one timed pass. number: its inputs are `stirring.inputs_of(number)`; outputs: by name, flat places
    (int64) and the values that were found there."""

    number: int
    outputs: Mapping[str, tuple[np.ndarray, np.ndarray]]


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
        """Timed passes that were kept: of the last train, or some drawn among all since this was asked."""


SAME = 0  # of `alike`: all passes


@runtime_checkable
class Renewable(Protocol):
    """A session whose passes can be timed over inputs that are wholly new."""

    def time_renewed(self, count: int, alike: int) -> float:
        """Nanoseconds a pass of so many in a row, each over inputs all of whose values were written anew,
        without what starting them takes. alike: how many passes in a row are given
        the same values but for as few as timed passes differ by; 1: each is given others; SAME: all are, and
        those of each such train."""

    def renewed(self) -> tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]] | None:
        """Inputs and outputs of one of the passes of the last train over inputs that were all new; None where
        none was, or that would take long."""
