"""Whether this machine has an NVIDIA driver and a GPU: asked without starting a device.

cuDriverGetVersion and cuDeviceGetCount create no context, so that `doctor` and every start-up may ask.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import sys
from dataclasses import dataclass

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
# CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR, and _MULTIPROCESSOR_COUNT.
_ATTRIBUTES = (75, 76, 16)


@dataclass(frozen=True)
class CudaDevice:
    """The GPU that CUDA takes first: its name, its compute capability, how many multiprocessors it has (0
    where that is not known)."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int = 0


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


@functools.cache
def library() -> ctypes.CDLL | None:
    """libcuda; None where there is none."""
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError:
        return None


@functools.cache
def device() -> CudaDevice | None:
    """The GPU that CUDA takes first; None where the driver names none."""
    if unavailable() is not None:
        return None
    try:
        driver = ctypes.CDLL(_LIBRARY)
        handle, name = ctypes.c_int(0), ctypes.create_string_buffer(256)
        error = driver.cuDeviceGet(ctypes.byref(handle), 0) or driver.cuDeviceGetName(name, 256, handle)
        numbers = []
        for attribute in _ATTRIBUTES:
            number = ctypes.c_int(0)
            error = error or driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, handle)
            numbers.append(number.value)
    except (OSError, AttributeError):
        return None
    if error:
        return None
    return CudaDevice(name.value.decode(errors="replace"), (numbers[0], numbers[1]), numbers[2])


def count() -> int:
    """How many GPUs CUDA shows."""
    if unavailable() is not None:
        return 0
    number = ctypes.c_int(0)
    return 0 if ctypes.CDLL(_LIBRARY).cuDeviceGetCount(ctypes.byref(number)) else number.value


@functools.cache
def driver_version() -> str:
    """The driver's own version ("580.95.05"), else the CUDA it speaks, "" without a driver."""
    with contextlib.suppress(Exception):  # not installed, or whatever NVML raises
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        return str(nvml.nvmlSystemGetDriverVersion())
    spoken = cuda_version()
    return "" if spoken is None else f"CUDA {spoken // 1000}.{spoken % 1000 // 10}"
