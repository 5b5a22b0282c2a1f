"""What NVRTC makes of a rung before an assembler has given it registers: half the time of a cubin."""

from __future__ import annotations

from collections.abc import Mapping

from kernels import nvrtc
from kernels.registry import Rung


def ptx(rung: Rung, arch: str, defines: Mapping[str, nvrtc.Define] | None = None) -> str:
    """The same text as the cubin of `arch` ("sm_90") is assembled from, kept beside it. Raises as
    nvrtc.compile_rung does."""
    cubin, options = nvrtc._cubin(rung, arch, defines or {})
    kept = cubin.with_suffix(".ptx")
    if not kept.exists():
        virtual = [option.replace("-arch=sm_", "-arch=compute_") for option in options]
        with nvrtc._compiled(rung, arch, virtual) as (bound, program, _):
            text = nvrtc._text(bound.nvrtcGetPTXSize, bound.nvrtcGetPTX, program)
        nvrtc._write(kept, text.rstrip(b"\0"))
    return kept.read_text(encoding="utf-8")


def is_settled(text: str) -> bool:
    """Whether an assembler can find nothing to refuse in it: what the compiler writes the architecture has,
    but instructions that a rung writes itself it takes as they are."""
    return "begin inline asm" not in text
