"""Sessions that do nothing: what they take is what starting a pass, and waiting for its end, takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from engine.isolated import slots
from engine.isolated.memory import Spec
from engine.isolated.slots import Copies

_asleep: list[tuple[threading.Thread, threading.Event]] = []


class Empty:
    """Inputs that nobody reads, outputs that nobody writes."""

    def __init__(self, inputs: Mapping[str, Spec], outputs: Mapping[str, Spec]) -> None:
        self.given = {name: np.zeros(spec.shape, spec.dtype) for name, spec in inputs.items()}
        self._left = {name: np.zeros(spec.shape, spec.dtype) for name, spec in outputs.items()}
        self.phases: Mapping[str, int] = {}
        self.memory: Mapping[str, int] = {}
        self.facts: Mapping[str, str] = {}
        self._busy_ns = 0

    def answers(self) -> Mapping[str, np.ndarray]:
        return self._left

    def each(self, copies: Sequence[Copies]) -> None:
        with np.errstate(all="ignore"):
            slots.each((), copies)

    def wait_with(self, threads: int, busy_ns: int) -> None:
        """From now on this process has so many threads, of which all but one sleep, and a pass of this
        session takes so long, by this process's own clock."""
        self._busy_ns = busy_ns
        while len(_asleep) < threads - 1:
            end = threading.Event()
            thread = threading.Thread(target=end.wait, daemon=True)
            thread.start()
            _asleep.append((thread, end))
        while len(_asleep) > threads - 1:
            thread, end = _asleep.pop()
            end.set()
            thread.join()

    def _pass(self) -> None:
        end = time.perf_counter_ns() + self._busy_ns
        while time.perf_counter_ns() < end:
            pass

    def passes(self, untimed: int, count: int, done: Callable[[], None]) -> None:
        """See slots.passes."""
        with np.errstate(all="ignore"):
            slots.passes((self._pass,) if self._busy_ns else (), untimed, count, done)

    def close(self) -> None:
        """Nothing is held."""


opened = Empty
