"""One rung launched on the GPU, with sentinels round its output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from engine.cuda_runtime import import_cupy
from kernels import nvrtc
from kernels.launch import POINTERS, launch
from kernels.params import Params
from kernels.registry import Rung

_GUARD = 4096  # bytes in front of and behind an output
_SENTINEL, _POISON = 0xA5, 0xFF  # four poisoned bytes are a NaN


class Device:
    """The current GPU and the modules loaded on it."""

    def __init__(self) -> None:
        self._cupy = cupy = import_cupy()
        self._modules: dict[str, object] = {}
        digits = str(cupy.cuda.Device().compute_capability)
        self.capability = (int(digits[:-1]), int(digits[-1]))
        self.arch = f"sm_{digits}"

    def run(
        self,
        rung: Rung,
        params: Params,
        inputs: tuple[np.ndarray | None, ...],
        shape: tuple[int, ...],
        dtype: np.dtype,
        defines: Mapping[str, int] | None = None,
    ) -> tuple[np.ndarray, str]:
        """The output, and what was written outside it in words ("": nothing)."""
        cupy = self._cupy
        how = launch(params, rung)
        how = replace(how, defines={**how.defines, **(defines or {})})
        path = str(nvrtc.compile_rung(rung, self.arch, how.defines))
        if path not in self._modules:
            self._modules[path] = cupy.RawModule(path=path)
        kernel = self._modules[path].get_function(rung.op)
        held = [None if array is None else cupy.asarray(array.reshape(-1)) for array in inputs]
        pointers = [np.uint64(0 if array is None else array.data.ptr) for array in held]
        pointers += [np.uint64(0)] * (POINTERS[rung.op] - len(pointers))
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        room = cupy.full(nbytes + 2 * _GUARD, _SENTINEL, np.uint8)
        room[_GUARD : _GUARD + nbytes] = _POISON
        out = np.uint64(room.data.ptr + _GUARD)
        kernel(how.grid, how.block, (*pointers, out, *how.scalars), shared_mem=how.shared_nbytes)
        back = cupy.asnumpy(room)
        around = np.concatenate([back[:_GUARD], back[_GUARD + nbytes :]])
        spilled = int((around != _SENTINEL).sum())
        result = back[_GUARD : _GUARD + nbytes].view(dtype).reshape(shape)
        return result, f"{spilled} bytes written outside the output" if spilled else ""
