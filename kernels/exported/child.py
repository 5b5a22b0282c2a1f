"""The process that binds a compiled CPU rung for an export: it is asked on standard input, once, and answers
with a kernels.exported.cpu.Bound on standard output."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence

import msgspec
import numpy as np

from kernels import confine, processes
from kernels.cpu import CpuKernel, load
from kernels.cpu import compiled as compiling
from kernels.cpu.compiled import Call, word
from kernels.errors import KernelscopeError, UnsupportedError
from kernels.exported.cpu import FEATURES, Array, Bound, Called
from kernels.exported.operator import OUTPUT, TABLES, TILES
from kernels.ops import Params
from kernels.registry import Rung

ALIGNMENT = 64  # bytes, of the tables; a cache line
_ADDRESS = 1 << 32  # no number of a kernel's is as large, and every address is


def main() -> int:
    processes.die_with_parent(int(sys.argv[1]))
    answers = os.dup(1)
    os.dup2(2, 1)  # what a kernel prints is no answer
    rung, sizes, weights = pickle.load(sys.stdin.buffer)
    confine.forbid_background_work()
    try:
        with np.errstate(all="ignore"):
            found = bound(rung, sizes, weights)
    except KernelscopeError as error:
        found = Bound(error=str(error))
    except Exception as error:
        found = Bound(error=f"its bind fails: {type(error).__name__}: {error}")
    with os.fdopen(answers, "wb") as stream:
        stream.write(msgspec.msgpack.encode(found))
    return 0


def bound(rung: Rung, sizes: Sequence[Params], weights: Sequence[np.ndarray | None]) -> Bound:
    """The rung at all sizes. Raises UnsupportedError where it is not all machine code."""
    kernel = load(rung)
    tables = Tables()
    calls, called = [], []
    for params in sizes:
        call, packed, places = _call(kernel, params, weights, tables)
        calls.append(call)
        called.append(
            Called(
                words=tuple(word(of) if not isinstance(of, np.ndarray) else 0 for of in call.arguments),
                places=tuple(places),
                parts=call.parts,
                scratch_nbytes=kernel.workspace(params),
                packed=packed,
            )
        )
    if any(call.step is not calls[0].step for call in calls):
        raise UnsupportedError(
            "it takes another compiled function at another size; export one size at a time"
        )
    code = [calls[0].step.code()]
    if any(buffer == TILES for it in called for _, buffer, _ in it.places):
        code.append(compiling.tiles_code())
    return Bound(tuple(called), tuple(code), tables.content, _features())


class Tables:
    """Constant arrays that arguments point to, one behind the other."""

    def __init__(self) -> None:
        self.content = b""
        self._starts: dict[bytes, int] = {}

    def place(self, array: np.ndarray) -> int:
        """Where it lies, in bytes from the start; what several sizes share lies there once."""
        data = array.tobytes()
        if data not in self._starts:
            start = self._starts[data] = -(-len(self.content) // ALIGNMENT) * ALIGNMENT
            self.content = self.content.ljust(start, b"\0") + data
        return self._starts[data]


def _call(
    kernel: CpuKernel, params: Params, weights: Sequence[np.ndarray | None], tables: Tables
) -> tuple[Call, tuple[Array | None, ...], list[tuple[int, int, int]]]:
    """The bound call, its weights as it takes them, and which of its words are pointers."""
    random = np.random.default_rng(1)
    packed = kernel.pack(params, list(weights))
    given = [
        _drawn(random, shape, dtype) if array is None else np.ascontiguousarray(array)
        for array, shape, dtype in zip(packed, params.input_shapes, params.input_dtypes, strict=True)
    ]
    output = np.zeros(params.output_shape, params.out_dtype)
    scratch = np.zeros(-(-kernel.workspace(params) // 4), np.float32)
    call = kernel.bind(params, given, output, scratch)
    if not isinstance(call, Call):
        raise UnsupportedError(
            f"at {params} a part of its pass is Python (its bind returns {type(call).__name__}, no Call)"
        )
    buffers = [*enumerate(given), (OUTPUT, output)]
    places: list[tuple[int, int, int]] = []
    constants: list[tuple[np.ndarray, bytes]] = []
    for at, of in enumerate(call.arguments):
        if isinstance(of, np.ndarray):
            inside = [(n, of.ctypes.data - array.ctypes.data) for n, array in buffers if _within(of, array)]
            if _within(of, scratch) and scratch.size:
                raise UnsupportedError(
                    "an argument points into its workspace, which each thread has for itself"
                )
            if inside:
                places.append((at, *inside[0]))
            else:
                constants.append((of, of.tobytes()))
                places.append((at, TABLES, tables.place(of)))
        elif not isinstance(of, float | np.floating) and abs(int(of)) >= _ADDRESS:
            if int(of) != compiling.tiles():
                raise UnsupportedError(
                    f"argument {at + 1}, {int(of)}, is an address that only this process knows"
                )
            places.append((at, TILES, 0))
    before = [array.tobytes() for array in given]
    call()
    if any(array.tobytes() != data for array, data in constants):
        raise UnsupportedError(
            "it writes into an array that its bind made; scratch memory is what `workspace(p)` asks for"
        )
    if any(array.tobytes() != data for array, data in zip(given, before, strict=True)):
        raise UnsupportedError("it writes into its inputs, which are only to be read")
    told = tuple(None if array is None else Array.of(array) for array in packed)
    return call, told, places


def _drawn(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if np.dtype(dtype).kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)


def _within(of: np.ndarray, array: np.ndarray) -> bool:
    start = array.ctypes.data
    return array.nbytes > 0 and start <= of.ctypes.data < start + array.nbytes


def _features() -> tuple[str, ...]:
    """What the machine code may use of this processor and another may lack."""
    import llvmlite.binding as llvm

    there = llvm.get_host_cpu_features()
    return tuple(name for name in FEATURES if there.get(name))


if __name__ == "__main__":
    sys.exit(main())
