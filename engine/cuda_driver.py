"""Whether this machine has an NVIDIA driver and a GPU: asked without starting a device.

cuDriverGetVersion and cuDeviceGetCount create no context, so that `doctor` and every start-up may ask.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


@functools.cache
def cuda_version() -> int | None:
    """The newest CUDA that the driver speaks, as 1000 · major + 10 · minor; None without a driver."""
    try:
        driver = ctypes.CDLL(_LIBRARY)
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
        driver = ctypes.CDLL(_LIBRARY)
        count = ctypes.c_int(0)
        error = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError) as fault:
        return f"the NVIDIA driver cannot be loaded: {fault}"
    if error == _NO_DEVICE or (not error and not count.value):
        return "the NVIDIA driver finds no GPU in this machine"
    if error:
        return f"the NVIDIA driver does not start (CUDA error {error}): nvidia-smi should say more"
    return None
