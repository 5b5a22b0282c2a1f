"""cuBLAS by NumPy, and `cuda.pathfinder`, which says where it lies."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np

NAME = "stand-in cuBLAS"


def load_nvidia_dynamic_lib(name: str) -> SimpleNamespace:
    if name != "cublas":
        raise RuntimeError(f"the stand-in has no lib{name}")
    return SimpleNamespace(abs_path=NAME)


class FakeCublas:
    """What of cuBLAS is called, column by column as its documentation says, on this machine's memory."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.destroyed = 0

    def __getattr__(self, name: str) -> Any:
        def call(*_: Any) -> int:
            self.calls.append(name)
            return 0

        return call

    def cublasGetStatusString(self, status: int) -> bytes:
        return b"out of patience"

    def cublasDestroy_v2(self, handle: Any) -> int:
        self.destroyed += 1
        return 0

    def cublasSgemmStridedBatched_64(self, handle: Any, trans_a: int, trans_b: int, *rest: Any) -> int:
        self.calls.append("product")
        m, n, k = (value.value for value in rest[:3])
        alpha, beta, count = rest[3]._obj.value, rest[10]._obj.value, rest[14].value
        assert beta == 0
        a = _columns(*rest[4:7], count, *((k, m) if trans_a else (m, k)))
        b = _columns(*rest[7:10], count, *((n, k) if trans_b else (k, n)))
        c = _columns(*rest[11:14], count, m, n)
        left = a.swapaxes(1, 2) if trans_a else a
        c[...] = np.float32(alpha) * np.matmul(left, b.swapaxes(1, 2) if trans_b else b)
        return 0


def _columns(address: Any, lead: Any, stride: Any, count: int, rows: int, columns: int) -> np.ndarray:
    """`count` column-major matrices of rows × columns at an address."""
    assert lead.value >= rows
    size = (count - 1) * stride.value + (columns - 1) * lead.value + rows
    flat = np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (size,))
    steps = (4 * stride.value, 4, 4 * lead.value)
    return np.lib.stride_tricks.as_strided(flat, (count, rows, columns), steps)


class Streamed(FakeCublas):
    """On the stand-in device: a product waits on the stream that the handle was given."""

    class _Words:
        restype: Any = None

        def __call__(self, status: int) -> bytes:
            return b"an error of the stand-in's"

    def __init__(self) -> None:
        super().__init__()
        self._stream = 0
        self.cublasGetStatusString = self._Words()  # type: ignore[assignment]

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:
        self._stream = stream.value or 0
        return 0

    def cublasSgemmStridedBatched_64(self, *arguments: Any) -> int:
        from tests.standin.device import Launched, Work
        from tests.standin.here import device

        m, n, k = (value.value for value in arguments[3:6])
        count = arguments[-1].value
        product = super().cublasSgemmStridedBatched_64

        def do() -> None:
            with np.errstate(all="ignore"):
                product(*arguments)

        launched = Launched("cuBLAS", flops=2 * m * n * k * count)
        told = {"kind": "CONCURRENT_KERNEL", "name": "sgemm", "grid": (1, 1, 1), "block": (128, 1, 1)}
        device().stream(self._stream).put(Work(do, launched=launched, call="cudaLaunchKernel", told=told))
        return 0
