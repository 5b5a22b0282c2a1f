"""What a kernel that a stranger wrote may take of a GPU's memory.

Its code on the host is ours, so it allocates nothing by itself. What it takes is its variables outside of
functions, the stacks of its threads, the workspace that its header asks for, the heap of `malloc` in a
kernel, and the buffer of `printf`. The first three are known before it is loaded; the others have a fixed
size, which only the host can change. It starts no kernels: what that takes is not linked. How long it may run
is limited by who watches its judge: a process that is killed takes its kernels with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path
from typing import Any

from engine.machine import driver
from kernels import confine, cubin
from kernels.errors import OutOfMemoryError
from kernels.registry import Rung

_PRINTF, _HEAP = 0x01, 0x02  # CUlimit
_NBYTES = {_PRINTF: 64 << 10, _HEAP: 8 << 20}  # what is printed is read by nobody; the heap is CUDA's usual


def admit(cupy: Any, rung: Rung, path: Path, workspace_nbytes: int = 0) -> None:
    """To be called before the compiled file of a rung is loaded. Where this process judges what a stranger
    handed in (confine.WALLED_MIB), such a rung may take so much. Raises OutOfMemoryError with what it takes;
    KernelError where the file cannot be read."""
    mib = int(os.environ.get(confine.WALLED_MIB) or 0)
    if not (mib and rung.user):
        return
    asked = cubin.asked(path.read_bytes())
    of_device = cupy.cuda.Device().attributes
    threads = of_device["MultiProcessorCount"] * of_device["MaxThreadsPerMultiProcessor"]
    taken = {
        "variables outside of functions": asked.static_nbytes,
        f"stacks of {threads:,} threads, {asked.stack_nbytes:,} bytes each": asked.stack_nbytes * threads,
        "workspace": workspace_nbytes,
    }
    if sum(taken.values()) > mib << 20:
        words = ", ".join(
            f"{nbytes / (1 << 20):,.0f} MiB of {what}" for what, nbytes in taken.items() if nbytes
        )
        raise OutOfMemoryError(
            f"{rung.label} takes more of the GPU's memory than the {mib:,} MiB that it may: {words}"
        )
    if (library := driver.library()) is not None:
        for limit, nbytes in _NBYTES.items():
            with contextlib.suppress(AttributeError):  # a driver that does not know it
                library.cuCtxSetLimit(limit, ctypes.c_size_t(nbytes))
