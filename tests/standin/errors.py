"""CUDA's errors as CuPy raises them: a RuntimeError with CUDA's number."""

from __future__ import annotations

NAMES = {
    1: ("INVALID_VALUE", "invalid argument"),
    2: ("OUT_OF_MEMORY", "out of memory"),
    209: ("NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"),
    400: ("INVALID_HANDLE", "invalid resource handle"),
    500: ("NOT_FOUND", "named symbol not found"),
    600: ("NOT_READY", "device not ready"),
    700: ("ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    900: ("STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"),
}
INVALID, NO_BINARY, BAD_HANDLE, NOT_FOUND, NOT_READY, ILLEGAL, CAPTURING = 1, 209, 400, 500, 600, 700, 900


class CudaError(RuntimeError):
    """As CuPy's CUDADriverError and CUDARuntimeError; detail: for whoever reads the test's output."""

    def __init__(self, status: int, detail: str = "") -> None:
        name, words = NAMES[status]
        super().__init__(f"CUDA_ERROR_{name}: {words}" + (f" ({detail})" if detail else ""))
        self.status = status


class OutOfMemoryError(MemoryError):
    """As CuPy's."""
