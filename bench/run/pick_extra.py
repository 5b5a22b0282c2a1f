"""Choose the dependency set for this machine: prints `cpu`, `cuda` or `cuda12`, and why on standard error.

Run by make with the system's Python before anything is installed, so it uses the standard library alone. It
asks
the NVIDIA driver itself (libcuda): the CUDA version that the driver speaks decides, and a driver with no
usable
GPU counts as none. KERNELSCOPE_EXTRA overrides the choice.
"""

from __future__ import annotations

import ctypes
import os
import sys

EXTRAS = ("cpu", "cuda", "cuda12")
LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def ask_driver() -> tuple[int | None, str]:
    """(CUDA version the driver speaks × 1000, "") or (None, why there is no usable GPU)."""
    try:
        cuda = ctypes.CDLL(LIBRARY)
    except OSError:
        return None, "no NVIDIA driver answers"
    status = cuda.cuInit(0)
    if status != 0:
        return None, f"the NVIDIA driver does not start (cuInit gives {status})"
    version, count = ctypes.c_int(), ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    cuda.cuDeviceGetCount(ctypes.byref(count))
    if count.value == 0:
        return None, "the NVIDIA driver finds no GPU"
    return version.value, ""


def choose(version: int | None, why_not: str) -> tuple[str, str]:
    """The extra for a driver that speaks CUDA `version` (13000 for 13.0), and the reason in words."""
    if version is None:
        return "cpu", why_not
    words = f"the driver speaks CUDA {version // 1000}.{version % 1000 // 10}"
    if version >= 13000:
        return "cuda", words
    if version >= 12000:
        return "cuda12", f"{words}; driver 580 or newer would allow CUDA 13"
    return "cpu", f"{words}, too old for CUDA 12; driver 580 or newer would help"


def wanted() -> tuple[str, str]:
    """The extra for this machine, and why."""
    wish = os.environ.get("KERNELSCOPE_EXTRA", "")
    if wish and wish not in EXTRAS:
        sys.exit(f"KERNELSCOPE_EXTRA={wish} is not one of {', '.join(EXTRAS)}")
    return (wish, "KERNELSCOPE_EXTRA says so") if wish else choose(*ask_driver())


def main() -> None:
    extra, why = wanted()
    print(f"dependencies: {extra} ({why})", file=sys.stderr)
    print(extra)


if __name__ == "__main__":
    main()
