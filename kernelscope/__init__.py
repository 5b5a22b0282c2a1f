"""Kernelscope for Python programs: is my kernel right, how fast is it beside the reference, and what holds it
back?

    import kernelscope as ks

    judgement = ks.judge("my_kernels/90_mine.cu")
    comparison = ks.compare("net.onnx", batch=[1, 64])
    comparison.frame()

This package is a client. The program itself runs in processes of its own (`kernelscope.program` says how they
are started); nothing of it is imported here. docs/python.md shows all of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelscope.judging import Judge, Judgement, judge
    from kernelscope.program import version
    from kernelscope.results import Comparison, Ladder, Profile, compare, ladder, open, profile
    from kernelscope.running import KernelscopeError

__all__ = [
    "Comparison",
    "Judge",
    "Judgement",
    "KernelscopeError",
    "Ladder",
    "Profile",
    "compare",
    "judge",
    "ladder",
    "open",
    "profile",
    "version",
]

# Each is loaded when it is wanted: this package is imported by every pytest of whoever has installed it.
_IN = {
    "judging": ("Judge", "Judgement", "judge"),
    "program": ("version",),
    "results": ("Comparison", "Ladder", "Profile", "compare", "ladder", "open", "profile"),
    "running": ("KernelscopeError",),
}


def __getattr__(name: str) -> Any:
    for module, names in _IN.items():
        if name in names:
            return getattr(importlib.import_module(f"kernelscope.{module}"), name)
    raise AttributeError(f"module 'kernelscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
