"""A ladder's CUDA rungs compiled side by side, the lowest first, while those that are ready are checked: a
rung waits for its own compiling alone."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from bench.measure.answers.samples import small_shapes
from bench.measure.net_operator import Net
from bench.results.ladder_records import LadderJob, RungCase
from engine.machine import driver as cuda_driver
from engine.machine import host
from engine.planning import tuned_defines
from kernels import launch, nvrtc, registry
from kernels.compilers import InParallel
from kernels.errors import KernelscopeError
from kernels.ops import Params
from kernels.registry import Rung


def begin(job: LadderJob, params: Params | Net, cases: Sequence[RungCase]) -> InParallel:
    """The CUDA rungs of these cases, for every shape that they are tried on and that is not in the cache.
    What does not compile is told of its rung, when its turn comes."""
    gpu = cuda_driver.device() if job.device == "cuda" else None
    if gpu is None or isinstance(params, Net):
        return nvrtc.begin((), "", 1)
    have = gpu.capability
    wanted = []
    for case in cases:
        if case.scope != "rung":
            continue
        with contextlib.suppress(KernelscopeError):
            rung = tuned_defines.tuned(rung_of(job, case), params)
            shapes = [shape.params for shape in small_shapes(rung, params, job.quick)]
            wanted += [
                (rung, launch.launch(p, rung).defines) for p in (*shapes, params) if _fits(rung, p, have)
            ]
    return nvrtc.begin(wanted, f"sm_{have[0]}{have[1]}", host.physical_cores())


def rung_of(job: LadderJob, case: RungCase) -> Rung:
    """The kernel of a case. Another file of the user's that is no rung is no fault of this one. Raises
    KernelscopeError where it is not there, or is none."""
    dirs = [Path(folder) for folder in job.kernel_dirs]
    return registry.find(job.device, job.op, case.rung, dirs, broken=[])


def _fits(rung: Rung, params: Params, have: tuple[int, int]) -> bool:
    return rung.refusal(params, have) is None and launch.refusal(params, rung) is None
