"""Matrix products by cuBLAS, only as a yardstick for our own kernels.

The library is called directly, not through CuPy, whose binding cannot be captured into a CUDA graph. A handle
has its own scratch memory, so that no call allocates. The library is loaded only when a launch needs it.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from typing import Any

from engine.cuda.runtime import capability_of
from kernels.errors import UnavailableError
from kernels.launch import Matrix, Product

# What NVIDIA's documentation of cublasSetWorkspace recommends: 32 MiB on Hopper and newer, 4 MiB before.
_SCRATCH_NBYTES = {True: 32 << 20, False: 4 << 20}
_DEFAULT_MATH = 0  # products of float32 with all their bits; TF32 would have to be asked for
_MOST_AT_ONCE = 65535  # products of one call, as many as the last axis of a grid holds
_AS_IT_LIES, _TRANSPOSED = 0, 1  # cublasOperation_t


class CublasError(RuntimeError):
    """A call that failed, in words; the status is cuBLAS's own number."""


class Cublas:
    """A handle on the current device, released with this object.

    Products that share one may not run at the same time: they share its scratch memory.
    Raises UnavailableError where the library is missing, CublasError where it fails.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._library = library = _library()
        self._handle = ctypes.c_void_p()
        _check(library, library.cublasCreate_v2(ctypes.byref(self._handle)), "making a handle")
        # Not at the end of the process, when the driver may be gone.
        weakref.finalize(self, library.cublasDestroy_v2, self._handle).atexit = False
        _check(library, library.cublasSetMathMode(self._handle, _DEFAULT_MATH), "setting the arithmetic")
        newest = capability_of(cupy) >= (9, 0)
        self._scratch = cupy.cuda.Memory(_SCRATCH_NBYTES[newest])

    def product(self, it: Product, addresses: dict[str, int]) -> None:
        """Start a product on the current stream. addresses: of the launch's buffers, by their names.

        Raises CublasError where it is refused.
        """
        library, handle = self._library, self._handle
        self._take_stream()
        # A row-major matrix is, to cuBLAS, a column-major one transposed; so is the product, whose factors
        # then change places.
        alpha, beta = ctypes.c_float(it.alpha), ctypes.c_float(0.0)
        for first in range(0, it.batch, _MOST_AT_ONCE):
            b, lead_b, stride_b = _operand(it.b, addresses, first)
            a, lead_a, stride_a = _operand(it.a, addresses, first)
            c, lead_c, stride_c = _operand(it.c, addresses, first)
            status = library.cublasSgemmStridedBatched_64(
                handle,
                _TRANSPOSED if it.b.transposed else _AS_IT_LIES,
                _TRANSPOSED if it.a.transposed else _AS_IT_LIES,
                *map(ctypes.c_int64, (it.n, it.m, it.k)),
                *(ctypes.byref(alpha), b, lead_b, stride_b, a, lead_a, stride_a),
                *(ctypes.byref(beta), c, lead_c, stride_c),
                ctypes.c_int64(min(_MOST_AT_ONCE, it.batch - first)),
            )
            _check(library, status, f"the product of {it.m} × {it.k} by {it.k} × {it.n}")

    def _take_stream(self) -> None:
        """Work on the current stream, in this handle's scratch memory, which a new stream would set back."""
        library, handle = self._library, self._handle
        stream = ctypes.c_void_p(self._cupy.cuda.get_current_stream().ptr)
        _check(library, library.cublasSetStream_v2(handle, stream), "taking the stream")
        scratch, size = ctypes.c_void_p(self._scratch.ptr), ctypes.c_size_t(self._scratch.size)
        _check(library, library.cublasSetWorkspace_v2(handle, scratch, size), "taking scratch memory")


def _operand(
    matrix: Matrix, addresses: dict[str, int], first: int
) -> tuple[ctypes.c_void_p, ctypes.c_int64, ctypes.c_longlong]:
    """Address, leading dimension and stride of a product's matrix, the first of them being matrix `first`."""
    address = addresses[matrix.buffer] + 4 * (matrix.offset + first * matrix.stride)
    return ctypes.c_void_p(address), ctypes.c_int64(matrix.lead), ctypes.c_longlong(matrix.stride)


@functools.cache
def _library() -> Any:
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        path = load_nvidia_dynamic_lib("cublas").abs_path
        if path is None:
            raise OSError("nobody knows where it lies")
        library = ctypes.CDLL(path)
        library.cublasGetStatusString.restype = ctypes.c_char_p
        return library
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UnavailableError(
            f"cuBLAS, which this yardstick needs, cannot be loaded ({reason}); "
            "the extras cuda and cuda12 bring it"
        ) from error


def _check(library: Any, status: int, doing: str) -> None:
    if status != 0:
        words = (library.cublasGetStatusString(status) or b"unknown").decode(errors="replace")
        raise CublasError(f"cuBLAS failed at {doing}: {words} ({status})")
