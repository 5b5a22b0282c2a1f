"""Matrix products by cuBLASLt, called as C: with bias and ReLU on the way out, and the fastest of its
algorithms, chosen by time. Numbers of the API are those of cublasLt.h and library_types.h, CUDA 12 and 13."""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.rivals.cudnn_gpu import Gpu
from engine.rivals.cudnn_library import preload
from kernels.errors import KernelError, UnavailableError

_NAMES = ("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so")
_TYPES = {"float32": 0, "float16": 2, "int8": 3, "int32": 10, "bfloat16": 14}  # cudaDataType
_COMPUTE_32F, _COMPUTE_FAST_TF32, _COMPUTE_32I = 68, 77, 72  # cublasComputeType_t
_TRANSPOSED = 1  # cublasOperation_t
_TRANS_A, _TRANS_B, _EPILOGUE, _BIAS_POINTER = 3, 4, 7, 8  # cublasLtMatmulDescAttributes_t
_BATCH_COUNT, _BATCH_OFFSET = 5, 6  # cublasLtMatrixLayoutAttribute_t
_MAX_WORKSPACE = 1  # cublasLtMatmulPreferenceAttributes_t
_RELU, _BIAS = 2, 4  # cublasLtEpilogue_t; both: 6
WORKSPACE = 32 << 20
MOST_ALGORITHMS = 16


class _Result(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


@dataclass(frozen=True)
class Matrix:
    """Of a product's operand, as it lies, rows one after the other: (rows, columns), transposed or not; step:
    elements from one of a batch to the next, 0 where all have the same."""

    rows: int
    columns: int
    transposed: bool = False
    step: int = 0


@dataclass(frozen=True)
class Product:
    """y (batch, m, n) = relu(alpha · op(a) · op(b) + bias (n,)). held: the type of all, but that sums of int8
    are int32; tf32: whether float32 may be rounded to TF32."""

    a: Matrix
    b: Matrix
    m: int
    n: int
    batch: int
    alpha: float
    bias: bool
    relu: bool
    held: str
    tf32: bool


def loaded() -> Any:
    """The library. Raises UnavailableError."""
    preload()
    for name in _NAMES:
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    raise UnavailableError(f"cuBLASLt cannot be loaded: there is no {_NAMES[0]}")


class Products:
    """cuBLASLt on one stream."""

    def __init__(self, library: Any, gpu: Gpu) -> None:
        self._lt, self._gpu = library, gpu
        self._handle = ctypes.c_void_p()
        self._call("cublasLtCreate", ctypes.byref(self._handle))
        self._workspace = gpu.new(WORKSPACE)
        self._made: list[tuple[str, ctypes.c_void_p]] = []
        self._chosen: dict[Product, tuple[_Result, int]] = {}
        self.tried = 0

    @property
    def version(self) -> str:
        self._lt.cublasLtGetVersion.restype = ctypes.c_size_t
        return str(int(self._lt.cublasLtGetVersion()))

    def close(self) -> None:
        for destroy, made in self._made:
            self._call(destroy, made)
        self._made.clear()
        self._chosen.clear()
        if self._handle:
            self._call("cublasLtDestroy", self._handle)
            self._handle = ctypes.c_void_p()

    def _call(self, name: str, *arguments: Any) -> None:
        status = int(getattr(self._lt, name)(*arguments))
        if status:
            raise KernelError(f"cuBLASLt's {name} failed with status {status}")

    def _new(self, create: str, destroy: str, *arguments: Any) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._call(create, ctypes.byref(made), *arguments)
        self._made.append((destroy, made))
        return made

    def _set(self, function: str, of: ctypes.c_void_p, attribute: int, value: Any) -> None:
        size = ctypes.c_size_t(ctypes.sizeof(value))
        self._call(function, of, ctypes.c_int(attribute), ctypes.byref(value), size)

    def _layout(self, matrix: Matrix, held: str, batch: int) -> ctypes.c_void_p:
        """Rows of ours are columns of BLAS."""
        sizes = ctypes.c_uint64(matrix.columns), ctypes.c_uint64(matrix.rows), ctypes.c_int64(matrix.columns)
        layout = self._new(
            "cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutDestroy", ctypes.c_int(_TYPES[held]), *sizes
        )
        if batch > 1:
            set_ = "cublasLtMatrixLayoutSetAttribute"
            self._set(set_, layout, _BATCH_COUNT, ctypes.c_int32(batch))
            self._set(set_, layout, _BATCH_OFFSET, ctypes.c_int64(matrix.step))
        return layout

    def run(self, p: Product, a: int, b: int, bias: int, y: int) -> tuple[Callable[[], None], str]:
        """What puts the product on the stream, by the fastest algorithm; and which that is, in words.

        BLAS has columns where we have rows, so that it is asked for yᵀ = op(b)ᵀ · op(a)ᵀ. Raises
        KernelError."""
        c_int, ref = ctypes.c_int, ctypes.byref
        whole = p.held == "int8"
        compute = _COMPUTE_32I if whole else _COMPUTE_FAST_TF32 if p.tf32 else _COMPUTE_32F
        scale = c_int(_TYPES["int32" if whole else "float32"])
        product = self._new("cublasLtMatmulDescCreate", "cublasLtMatmulDescDestroy", c_int(compute), scale)
        set_ = "cublasLtMatmulDescSetAttribute"
        for attribute, matrix in ((_TRANS_A, p.b), (_TRANS_B, p.a)):
            if matrix.transposed:
                self._set(set_, product, attribute, ctypes.c_int32(_TRANSPOSED))
        if epilogue := _RELU * p.relu + _BIAS * p.bias:
            self._set(set_, product, _EPILOGUE, ctypes.c_int32(epilogue))
        if p.bias:
            self._set(set_, product, _BIAS_POINTER, ctypes.c_void_p(bias))
        first, second = (self._layout(matrix, p.held, p.batch) for matrix in (p.b, p.a))
        third = self._layout(Matrix(p.m, p.n, step=p.m * p.n), "int32" if whole else p.held, p.batch)
        alpha: Any = ctypes.c_int32(int(p.alpha)) if whole else ctypes.c_float(p.alpha)
        beta = type(alpha)(0)
        pointer = ctypes.c_void_p

        def by(result: _Result) -> Callable[[], None]:
            given = (
                self._handle, product, ref(alpha), pointer(b), first, pointer(a), second, ref(beta),
                pointer(y), third, pointer(y), third, ref(result.algorithm), pointer(self._workspace),
                ctypes.c_size_t(WORKSPACE),
            )  # fmt: skip
            return lambda: self._call("cublasLtMatmul", *given, pointer(self._gpu.stream.ptr))

        if p not in self._chosen:
            results = self._heuristics(product, first, second, third)
            self._chosen[p] = self._fastest(p, [(by(result), result) for result in results])
        result, count = self._chosen[p]
        return by(result), f"cuBLASLt algorithm {result.algorithm[0] & 0xFFFFFFFF}, the fastest of {count}"

    def _heuristics(self, product: Any, first: Any, second: Any, third: Any) -> list[_Result]:
        """The algorithms that cuBLASLt proposes, its best one first."""
        preference = self._new("cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceDestroy")
        self._set(
            "cublasLtMatmulPreferenceSetAttribute", preference, _MAX_WORKSPACE, ctypes.c_uint64(WORKSPACE)
        )
        results, count = (_Result * MOST_ALGORITHMS)(), ctypes.c_int(0)
        self._call(
            "cublasLtMatmulAlgoGetHeuristic", self._handle, product, first, second, third, third, preference,
            ctypes.c_int(MOST_ALGORITHMS), results, ctypes.byref(count),
        )  # fmt: skip
        return [results[i] for i in range(count.value) if results[i].state == 0]

    def _fastest(self, p: Product, ways: Sequence[tuple[Callable[[], None], _Result]]) -> tuple[_Result, int]:
        best, least, count, said = None, math.inf, 0, ""
        for work, result in ways:
            try:
                self._gpu.put(work)
                self._gpu.synchronize()
                elapsed = min(self._gpu.time_ns(work) for _ in range(2))
            except KernelError as error:  # one that was proposed may not run all the same
                said = str(error)
                continue
            count += 1
            if elapsed < least:
                best, least = result, elapsed
        if best is None:
            raise KernelError(f"cuBLASLt has no algorithm for {p.m}×{p.n} in {p.held}{said and ': ' + said}")
        self.tried += count
        return best, count
