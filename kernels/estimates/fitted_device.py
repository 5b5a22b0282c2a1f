"""The device that the estimates of launch times are fitted to: an NVIDIA H200.

On another device the estimates still rank the choices; what an engine takes is timed there
(engine.planning.choices).
"""

from __future__ import annotations

from kernels.occupancy import MULTIPROCESSORS as _OF_CAPABILITY
from kernels.occupancy import WARP

MULTIPROCESSORS = 132
SCHEDULERS = 4  # of a multiprocessor, each starting an instruction of a warp a clock
RESIDENT = _OF_CAPABILITY[9, 0]  # what a multiprocessor holds at once
THREADS_RESIDENT = RESIDENT.warps * WARP
