"""Whether this machine has an NVIDIA driver and a GPU: asked without starting a device.

cuDriverGetVersion and NVML's count need no context, so that `doctor` and every start-up may ask.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys


@functools.cache
def cuda_version() -> int | None:
    """The newest CUDA that the driver speaks, as 1000 · major + 10 · minor; None without a driver."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        version = ctypes.c_int(0)
        if driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return version.value or None


def unavailable() -> str | None:
    """Why no NVIDIA GPU can be used here and what would help, in a sentence; None if one can."""
    if cuda_version() is None:
        return "no NVIDIA driver is installed: it takes an NVIDIA GPU and driver 525 or newer"
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None and hidden.strip() in ("", "-1"):
        return (
            f"CUDA_VISIBLE_DEVICES={hidden.strip()!r} hides every GPU: unset it, or set it to a GPU's number"
        )
    try:
        import pynvml
    except ImportError:
        return None  # without NVML nobody can tell but the device itself
    try:
        pynvml.nvmlInit()
        try:
            count = pynvml.nvmlDeviceGetCount()
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return f"the NVIDIA driver does not answer ({error}): nvidia-smi should say more"
    return None if count else "the NVIDIA driver finds no GPU in this machine"
