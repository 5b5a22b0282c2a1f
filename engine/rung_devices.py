"""A session of one rung, on whichever device is the rung's own."""

from __future__ import annotations

from collections.abc import Sequence

from engine.rung_rows import Given
from engine.rung_session import RungSession
from kernels.ops import Params
from kernels.registry import Rung


def prepare(rung: Rung, params: Params, inputs: Sequence[Given], threads: int | None = None) -> RungSession:
    """A session of this rung on its own device, given all inputs in the params' order, which stay as they
    are while it lives.

    threads: on the CPU (None: one a physical core). Raises KernelError (it does not compile, load or bind),
    UnavailableError, OutOfMemoryError.
    """
    if rung.device == "cpu":
        from engine.cpu.rung import CpuRungSession

        return CpuRungSession(rung, params, inputs, threads)
    from engine.cuda.rung import CudaRungSession

    return CudaRungSession(rung, params, inputs)
