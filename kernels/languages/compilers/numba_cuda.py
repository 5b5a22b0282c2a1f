"""Numba-CUDA: a thread at a time, as CUDA C++; NVVM makes PTX of it and nvJitLink a cubin, without a
device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernels.languages.child import linked, named
from kernels.languages.known import Language

if TYPE_CHECKING:
    from kernels.languages.child import Asked, Compiled

LANGUAGE = Language("numba-cuda", "Numba-CUDA", "numba_cuda", '"numba-cuda[cu13]" "numpy<2.5"')
TRIAL = "def trial(x):\n    x[0] = 0\n"


def compiled(asked: Asked) -> Compiled:
    from numba import cuda, types

    from kernels.languages.child import Compiled, loaded

    loaded_function = loaded(asked, globals_too=True)
    function = getattr(loaded_function, "py_func", loaded_function)
    floats = types.CPointer(types.float32)
    kinds = [floats] * asked.pointers + [getattr(types, kind) for _, kind in asked.scalars]
    ptx, _ = cuda.compile(
        function,
        types.void(*kinds),
        device=False,
        abi="numba",
        cc=asked.capability,
        output="ptx",
        lineinfo=True,
    )
    ptx = named(asked, ptx, LANGUAGE.title)
    cubin, log = linked(asked, ptx, asked.arch)
    return Compiled(cubin, ptx, log)
