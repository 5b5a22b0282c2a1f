"""A session that is timed both ways: it runs its passes by itself, and is given them. See both_ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from engine.isolated import slots
from engine.isolated.slots import Copies


class opened:
    """A pass adds `size` products up, `times` times over, beside an input that it copies."""

    def __init__(self, nbytes: int, times: int) -> None:
        self.given = {"x": np.zeros(nbytes // 4, np.float32)}
        self._left = {"y": np.zeros(nbytes // 4, np.float32)}
        self._times, self._own = times, np.zeros(1000, np.float32)
        self.phases: Mapping[str, int] = {}
        self.memory: Mapping[str, int] = {}
        self.facts: Mapping[str, str] = {}

    def answers(self) -> Mapping[str, np.ndarray]:
        return self._left

    def hold(self, given: Mapping[str, np.ndarray], left: Mapping[str, np.ndarray]) -> None:
        self.given, self._left = dict(given), dict(left)

    def run(self) -> None:
        own = self._own
        for _ in range(self._times):
            np.tanh(own, out=own)
        np.copyto(self._left["y"], self.given["x"])

    def each(self, copies: Sequence[Copies]) -> None:
        slots.each((self.run,), copies)

    def passes(self, untimed: int, count: int, done: Callable[[], None]) -> None:
        slots.passes((self.run,), untimed, count, done)

    def close(self) -> None:
        """Nothing is held."""
