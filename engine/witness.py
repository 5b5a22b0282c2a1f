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
