"""Sessions that do nothing: what they take is what triggering and copying takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.apart import slots
from engine.apart.memory import Spec
from engine.apart.slots import Copies


class Empty:
    """Inputs that nobody reads, outputs that nobody writes."""

    def __init__(self, inputs: Mapping[str, Spec], outputs: Mapping[str, Spec]) -> None:
        self.given = {name: np.zeros(spec.shape, spec.dtype) for name, spec in inputs.items()}
        self._left = {name: np.zeros(spec.shape, spec.dtype) for name, spec in outputs.items()}
        self.phases: Mapping[str, int] = {}
        self.memory: Mapping[str, int] = {}
        self.facts: Mapping[str, str] = {}

    def answers(self) -> Mapping[str, np.ndarray]:
        return self._left

    def each(self, copies: Sequence[Copies]) -> None:
        with np.errstate(all="ignore"):
            slots.each((), copies)

    def close(self) -> None:
        """Nothing is held."""


opened = Empty
