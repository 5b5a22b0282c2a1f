"""Opens the session of one kernel, on the CPU or the GPU as the kernel needs."""

from __future__ import annotations

from collections.abc import Sequence

from engine.rung_rows import Given
from engine.rung_session import RungSession
from kernels.ops import Params
from kernels.registry import Rung


def prepare(
    rung: Rung,
    params: Params,
    inputs: Sequence[Given],
    threads: int | None = None,
    simulated: bool | str = False,
) -> RungSession:
    """A session of this kernel. inputs: all inputs in the order of the params; they must not change while the
    session lives. threads: on the CPU (None: one for each physical core). simulated: a CUDA kernel runs
    without a GPU, compiled for this architecture ("sm_90") or the usual one (True). Raises KernelError (it
    does not compile, load or bind), UnavailableError, OutOfMemoryError; UnsupportedError where it cannot be
    run without a GPU."""
    if rung.device == "cpu":
        from engine.cpu.rung import CpuRungSession

        return CpuRungSession(rung, params, inputs, threads)
    if simulated:
        from engine.cuda.simulated import SimulatedRungSession

        arch = simulated if isinstance(simulated, str) else ""
        return SimulatedRungSession(rung, params, inputs, arch=arch)
    from engine.cuda.rung import CudaRungSession

    return CudaRungSession(rung, params, inputs)
