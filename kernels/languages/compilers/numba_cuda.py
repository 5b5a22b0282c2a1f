"""Numba-CUDA: a thread at a time, as CUDA C++; NVVM makes PTX of it and nvJitLink a cubin, without a
device."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kernels.languages.known import Language

if TYPE_CHECKING:
    from kernels.languages.child import Asked, Compiled

LANGUAGE = Language("numba-cuda", "Numba-CUDA", "numba_cuda", '"numba-cuda[cu13]"')
TRIAL = "def trial(x):\n    x[0] = 0\n"


def compiled(asked: Asked) -> Compiled:
    from numba import cuda, types

    from kernels.languages.child import Compiled, loaded

    found = loaded(asked, globals_too=True)
    function = getattr(found, "py_func", found)
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
    entry = re.search(r"\.entry\s+([\w$]+)\s*\(", ptx)
    if entry is None:
        raise ValueError("Numba made no kernel of it")
    ptx = re.sub(rf"(?<![\w$]){re.escape(entry[1])}(?=\W)", asked.function, ptx)
    ptx = ptx.replace(f"{entry[1]}_param_", f"{asked.function}_param_")
    cubin, log = _linked(asked, ptx)
    return Compiled(cubin, ptx, log)


def _linked(asked: Asked, ptx: str) -> tuple[bytes, str]:
    from cuda.bindings import nvjitlink as link

    handle = link.create(3, [f"-arch={asked.arch}", "-Xptxas=-v", "-verbose"])
    text = ptx.encode()

    def said(size: Any, get: Any) -> str:
        log = bytearray(size(handle))
        get(handle, log)
        return bytes(log).decode(errors="replace").rstrip("\0")

    try:
        link.add_data(handle, link.InputType.PTX, text, len(text), asked.function)
        link.complete(handle)
    except link.nvJitLinkError as error:
        raise ValueError(said(link.get_error_log_size, link.get_error_log) or str(error)) from None
    cubin = bytearray(link.get_linked_cubin_size(handle))
    link.get_linked_cubin(handle, cubin)
    log = said(link.get_info_log_size, link.get_info_log)
    link.destroy(handle)
    return bytes(cubin), log
