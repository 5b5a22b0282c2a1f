"""What the calls into CUDA are for, by their names: the runtime's and the driver's, of whatever version."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from bench.results.events import ApiCall

Purpose = Literal["launch", "copy", "alloc", "sync", "load", "other"]

# cudaMemcpyAsync_v3020, cuMemAlloc_v2, cudaLaunchKernel_ptsz: one call to whoever wrote the program.
_SUFFIX = re.compile(r"(_v\d+|_ptsz|_ptds|_ptsz_v\d+|_ptds_v\d+)+$")
_LAUNCH = re.compile(
    r"^cu(da)?(LaunchKernel|LaunchCooperative|GraphLaunch|LaunchHostFunc|LaunchGrid|Launch$)"
)
_COPY = re.compile(r"^cu(da)?(Memcpy|Memset)")
_ALLOC = re.compile(
    r"^cu(da)?(Malloc|Free|Mem(Alloc|Free|HostAlloc|HostRegister|HostUnregister|Create|Release|Map|Unmap|Address|"
    r"Pool)|Host(Alloc|Register|Unregister))"
)
_SYNC = re.compile(r"^cu(da)?(Device|Stream|Event|Ctx|Thread)Synchronize")
_LOAD = re.compile(
    r"^cu(da)?(Module|Library|Link|FuncLoad|KernelGetFunction|GetFuncBySymbol|FuncGet|FuncSet|GetExportTable|"
    r"GraphInstantiate|GraphUpload|StreamBeginCapture|StreamEndCapture)"
)
_PURPOSES: tuple[tuple[Purpose, re.Pattern[str]], ...] = (
    ("launch", _LAUNCH),
    ("copy", _COPY),
    ("alloc", _ALLOC),
    ("sync", _SYNC),
    ("load", _LOAD),
)


def bare(name: str) -> str:
    """The call's name without the suffix of its version."""
    return _SUFFIX.sub("", name)


def purpose(name: str) -> Purpose:
    """What a call is for: starting kernels, copying, memory, waiting, loading code, or something else."""
    found = bare(name)
    return next((what for what, pattern in _PURPOSES if pattern.match(found)), "other")


def starts_activity(name: str) -> bool:
    """Whether the device does something that is recorded when this is called."""
    found = bare(name)
    return purpose(found) in ("launch", "copy") and "HostFunc" not in found


def outermost(calls: Iterable[ApiCall]) -> tuple[ApiCall, ...]:
    """The calls that a program made itself: those that lie inside another call of the same thread (the
    runtime's own into the driver) left out, so that no time is counted twice."""
    kept: list[ApiCall] = []
    ends: dict[int, int] = {}
    for call in sorted(calls, key=lambda call: (call.start_ns, -call.end_ns)):
        if call.end_ns <= ends.get(call.thread, -1):
            continue
        kept.append(call)
        ends[call.thread] = max(call.end_ns, ends.get(call.thread, call.end_ns))
    return tuple(kept)


def variants(calls: Iterable[ApiCall], name: str) -> tuple[ApiCall, ...]:
    """All calls of one family, runtime and driver alike: cudaMemcpy's are cudaMemcpyAsync, cuMemcpyHtoD, …
    Of calls inside one another the outer one."""
    wanted = FAMILIES[name]
    return tuple(call for call in outermost(calls) if wanted.match(bare(call.name)))


# The columns of the course report's table; each sums every variant of its call.
FAMILIES = {
    "cudaFreeHost": re.compile(r"^(cudaFreeHost|cuMemFreeHost|cudaHostUnregister|cuMemHostUnregister)$"),
    "cudaMemcpy": re.compile(r"^cu(da)?Memcpy"),
    "cudaDeviceSynchronize": re.compile(r"^(cudaDeviceSynchronize|cudaThreadSynchronize|cuCtxSynchronize)$"),
    "cudaMalloc": re.compile(
        r"^(cudaMalloc(Async|Pitch|3D|Managed|Array|FromPoolAsync)?|cuMemAlloc(Async|Pitch|Managed|FromPoolAsync)?)$"
    ),
}
