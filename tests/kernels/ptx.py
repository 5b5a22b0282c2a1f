"""What NVRTC makes of a rung before an assembler has given it registers: half the time of a cubin."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from kernels import nvrtc
from kernels.header import Define
from kernels.registry import Rung


def ptx(rung: Rung, arch: str, defines: Mapping[str, Define] | None = None) -> str:
    """The same text as the cubin of `arch` ("sm_90") is assembled from, kept beside it. Raises as
    nvrtc.compile_rung does."""
    cubin, options = nvrtc._cubin(rung, arch, defines or {})
    kept = cubin.with_suffix(".ptx")
    if not kept.exists():
        virtual = [option.replace("-arch=sm_", "-arch=compute_") for option in options]
        with _kept(rung, arch, virtual, nvrtc._included(rung), kept):
            pass
    return kept.read_text(encoding="utf-8")


def both(rung: Rung, arch: str, defines: Mapping[str, Define] | None = None) -> tuple[Path, str]:
    """What nvrtc.compile_rung gives and `ptx`, of a rung's text that is read once for the two."""
    kept = nvrtc._cubin(rung, arch, defines or {})[0].with_suffix(".ptx")

    def compiled(rung: Rung, arch: str, options: Sequence[str], included: Mapping[str, str]) -> Any:
        return _kept(rung, arch, options, included, kept)

    with mock.patch.object(nvrtc, "_compiled", compiled):
        cubin = nvrtc.compile_rung(rung, arch, defines)
    return cubin, ptx(rung, arch, defines)


_compiled = nvrtc._compiled


@contextlib.contextmanager
def _kept(
    rung: Rung, arch: str, options: Sequence[str], included: Mapping[str, str], path: Path
) -> Iterator[tuple[Any, Any, str]]:
    """As nvrtc._compiled; the PTX lies at the path."""
    with _compiled(rung, arch, list(options), included) as (bound, program, log):
        text = nvrtc._text(bound.nvrtcGetPTXSize, bound.nvrtcGetPTX, program)
        nvrtc._write(path, text.rstrip(b"\0"))
        yield bound, program, log


def is_settled(text: str) -> bool:
    """Whether an assembler can find nothing to refuse in it: what the compiler writes the architecture has,
    but instructions that a rung writes itself it takes as they are."""
    return "begin inline asm" not in text
