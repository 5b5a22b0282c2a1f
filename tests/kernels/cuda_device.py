"""One rung launched on the GPU, with sentinels round its output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from engine.cuda.runtime import import_cupy
from engine.cuda.stages import CublasLibrary, kernel_calls
from kernels import nvrtc
from kernels.errors import UnavailableError
from kernels.languages.compiling import settled
from kernels.launch import launch
from kernels.ops import Params
from kernels.registry import Rung

_GUARD = 4096  # bytes in front of and behind an output
_SENTINEL, _POISON = 0xA5, 0xFF  # four poisoned bytes are a NaN


class Device:
    """The current GPU and the modules loaded on it."""

    def __init__(self) -> None:
        self._cupy = cupy = import_cupy()
        self._modules: dict[str, Any] = {}
        self._library = CublasLibrary(cupy)
        digits = str(cupy.cuda.Device().compute_capability)
        self.capability = (int(digits[:-1]), int(digits[-1]))
        self.arch = f"sm_{digits}"

    def compiles(self, rung: Rung, params: Params) -> bool:
        """False where the package of a rung's language is here and compiles nothing, as beside a NumPy that
        is too new for it."""
        try:
            if rung.language:
                nvrtc.compile_rung(rung, self.arch, launch(params, rung).defines)
        except UnavailableError:
            return False
        return True

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
        path = str(cubin := nvrtc.compile_rung(rung, self.arch, how.defines))
        how = settled(how, rung, cubin)
        if path not in self._modules:
            self._modules[path] = cupy.RawModule(path=path)
        packed = [
            how.packed[i](array) if i in how.packed and array is not None else array
            for i, array in enumerate(inputs)
        ]
        # As bytes: CuPy knows no bfloat16 and nothing narrower.
        held = [
            None if array is None else cupy.asarray(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
            for array in packed
        ]
        pointers = [0 if array is None else array.data.ptr for array in held]
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        room = self._poisoned(nbytes)
        scratch = self._poisoned(how.workspace_nbytes or 0)
        output, workspace = room.data.ptr + _GUARD, scratch.data.ptr + _GUARD
        module = self._modules[path]
        for start in kernel_calls(cupy, module, rung, how, pointers, output, workspace, self._library):
            start()
        back = cupy.asnumpy(room)
        beside = cupy.asnumpy(scratch)
        around = np.concatenate([back[:_GUARD], back[-_GUARD:], beside[:_GUARD], beside[-_GUARD:]])
        spilled = int((around != _SENTINEL).sum())
        result = back[_GUARD : _GUARD + nbytes].view(dtype).reshape(shape)
        return result, f"{spilled} bytes written outside the output and the scratch memory" if spilled else ""

    def _poisoned(self, nbytes: int) -> Any:
        """Device memory full of NaNs, _GUARD bytes of sentinels in front of it and behind."""
        room = self._cupy.full(nbytes + 2 * _GUARD, _SENTINEL, np.uint8)
        room[_GUARD : _GUARD + nbytes] = _POISON
        return room
