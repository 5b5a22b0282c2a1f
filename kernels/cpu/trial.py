"""Numba tried out, before anything depends on it: another version of it, or of LLVM, may be imported and yet
not compile what our rungs are made of."""

from __future__ import annotations

import numpy as np

from kernels.cpu import compiled, compiling, simd
from kernels.cpu.compiled import Compiled
from kernels.cpu.loops import exp


@compiled.compiled
def step(a, low, high, scratch):
    """y = exp(x)."""
    x, y = simd.floats(a[1]), simd.floats(a[2])
    for i in range(low, high):
        y[i] = exp(x[i])


def run() -> None:
    """Raises what compiling, loading or running raises, or says that the answer is wrong. Keeps the tiles,
    which others want; asks nobody whether Numba is there, since that is asked of this."""
    compiled.tiles()
    x = np.linspace(-3, 3, 37, dtype=np.float32)
    y = np.full_like(x, np.nan)
    words = np.array([0, x.ctypes.data, y.ctypes.data], np.int64)
    call = Compiled(step.function, compiling.compiled)
    call(words.ctypes.data, 0, x.size)
    if not np.allclose(y, np.exp(x), rtol=1e-6):
        raise RuntimeError("what it compiles gives wrong answers")
