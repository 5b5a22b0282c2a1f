"""CuPy on a stand-in device whose kernels compute nothing and take their time by a clock of the test's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from tests.standin.device import Device, Launched, Work
from tests.standin.modules.cupy import Cupy
from tests.standin.settings import Settings

__all__ = ["FakeCupy", "Launched"]


class FakeCupy(Cupy):
    """cost_us(launches, index): what a launch takes, of all those of a pass. broken: the capture fails.
    Kernels are those of the real compiler, which the stand-in launches and does nothing for."""

    def __init__(
        self, cost_us: Callable[[Sequence[Launched], int], float] = lambda *_: 1.0, broken: str = ""
    ) -> None:
        super().__init__(Device(Settings(), cost_us, broken))

    @property
    def ran(self) -> deque[Launched]:
        return self.device.ran

    @property
    def allocations(self) -> int:
        return self.device.memory.allocations

    def put(self, launched: Launched) -> None:
        """On the current stream."""
        self.device.current.put(Work(lambda: None, launched=launched))
