"""PTX of a language's compiler made the kernel that our launch starts: under the operator's name, and linked
to a cubin by nvJitLink, without a device."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernels.languages.child import Asked


def named(asked: Asked, ptx: str, title: str) -> str:
    """The PTX with its one kernel called as the rung's function is. Raises ValueError where it has none."""
    entry = re.search(r"\.entry\s+([\w$]+)\s*\(", ptx)
    if entry is None:
        raise ValueError(f"{title} made no kernel of it")
    ptx = re.sub(rf"(?<![\w$]){re.escape(entry[1])}(?=\W)", asked.function, ptx)
    return ptx.replace(f"{entry[1]}_param_", f"{asked.function}_param_")


def linked(asked: Asked, ptx: str, arch: str) -> tuple[bytes, str]:
    """The cubin, and what the assembler said. Raises ValueError."""
    from cuda.bindings import nvjitlink as link

    handle = link.create(3, [f"-arch={arch}", "-Xptxas=-v", "-verbose"])
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
