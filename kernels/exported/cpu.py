"""A compiled CPU rung as an operator: its arguments at each size, and its machine code.

`bind` is Python of whoever wrote the rung, so it runs in a process of its own (`child`), which is given
weights and sizes, and gives numbers and bytes back.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import msgspec
import numpy as np

from kernels import numba_support, processes
from kernels.compilers import pickled
from kernels.environment import for_children
from kernels.errors import KernelError, UnavailableError, UnsupportedError
from kernels.exported.operator import BoundCall, Operator, Place, Size, gathered
from kernels.ops import Params
from kernels.registry import Rung

Shapes = Sequence[tuple[Sequence[tuple[int, ...]], tuple[int, ...]]]
WAIT_S = 300.0
# What a processor may lack that machine code uses, as C's compilers call it.
FEATURES = ("avx", "avx2", "fma", "f16c", "bmi", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl")


class Array(msgspec.Struct, frozen=True, array_like=True):
    """An array between processes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, array: np.ndarray) -> Array:
        return cls(array.dtype.name, array.shape, np.ascontiguousarray(array).tobytes())

    def array(self) -> np.ndarray:
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)


class Called(msgspec.Struct, frozen=True, array_like=True):
    """A size as its process says it. places: (word, buffer, offset), buffers by the rung's places."""

    words: tuple[int, ...]
    places: tuple[tuple[int, int, int], ...]
    parts: int
    scratch_nbytes: int
    packed: tuple[Array | None, ...]


class Bound(msgspec.Struct, frozen=True, array_like=True):
    """All that the process says. features: of this processor; error: why it cannot be exported."""

    sizes: tuple[Called, ...] = ()
    code: tuple[bytes, ...] = ()
    tables: bytes = b""
    features: tuple[str, ...] = ()
    error: str = ""


def operator(
    name: str,
    words: str,
    rung: Rung,
    sizes: Sequence[Params],
    shapes: Shapes,
    weights: Sequence[np.ndarray | None],
) -> Operator:
    """The operator of a compiled CPU rung; arguments as kernels.exported.cuda.operator. Raises KernelError,
    UnavailableError without Numba, UnsupportedError for a rung that is not all machine code."""
    if not rung.compiled:
        raise UnsupportedError(
            f"{rung.label} is Python that calls NumPy, which cannot leave Python; export a rung that Numba "
            "compiles (`compiled = true` in its header), or a CUDA rung"
        )
    if reason := numba_support.unavailable():
        raise UnavailableError(f"{rung.label} cannot be compiled: {reason}")
    bound = _asked(rung, sizes, weights)
    if bound.error:
        raise UnsupportedError(f"{rung.label} cannot be exported: {bound.error}")
    packed = [[None if it is None else it.array() for it in called.packed] for called in bound.sizes]
    inputs, numbers = gathered(weights, sizes[0].input_dtypes, packed)
    made = []
    for called, of, params, (given, output) in zip(bound.sizes, numbers, sizes, shapes, strict=True):
        places = tuple(
            (at, Place(of[buffer] if buffer >= 0 else buffer, offset)) for at, buffer, offset in called.places
        )
        step = BoundCall(
            called.words, places, called.parts, _tasks(params, called.parts), called.scratch_nbytes
        )
        made.append(Size(tuple(given), output, step))
    return Operator(
        name,
        words,
        rung,
        inputs,
        sizes[0].out_dtype,
        tuple(made),
        code=bound.code,
        tables=bound.tables,
        features=bound.features,
    )


# A step is worth one more piece for each of these, by a rough guess of its time.
WORTH_DIVIDING_S = 50e-6
FLOPS_A_SECOND, BYTES_A_SECOND = 60e9, 10e9


def _tasks(params: Params, parts: int) -> int:
    guess_s = params.flops / FLOPS_A_SECOND + params.nbytes / BYTES_A_SECOND
    return max(1, min(parts, int(guess_s / WORTH_DIVIDING_S)))


def _asked(rung: Rung, sizes: Sequence[Params], weights: Sequence[np.ndarray | None]) -> Bound:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "kernels.exported.child", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=for_children(),
    )
    processes.OURS.add(process.pid)
    try:
        told, said = process.communicate(pickled((rung, tuple(sizes), tuple(weights))), timeout=WAIT_S)
        return msgspec.msgpack.decode(told, type=Bound)
    except subprocess.TimeoutExpired:
        raise KernelError(f"{rung.label}: its bind took longer than {WAIT_S:g} s") from None
    except msgspec.DecodeError:
        why = processes.last_line(said.decode(errors="replace")) or processes.exit_words(process.returncode)
        raise KernelError(f"{rung.label}: the process that binds it has ended: {why}") from None
    finally:
        process.kill()
        process.wait()
        processes.OURS.discard(process.pid)
