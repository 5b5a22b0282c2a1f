"""The ladder on the CPU: rungs in NumPy, one file each, and `load`, which turns a rung's file into functions.

A rung's file defines

    bind(p, inputs, output, workspace) -> Callable[[], None]

which builds every view and slice once and returns the function that a forward pass calls: it reads `inputs`,
writes all of `output` in place, and allocates as little as is practical. Arrays are dense, C order, of any
shape with the element count of the docstring of `p`; `workspace` is a flat float32 array. Where they help it
defines

    workspace(p) -> int             bytes of scratch that it needs (contents are lost between steps)
    pack(p, inputs) -> list         called once, with the inputs that are weights (None for the others): what
                                    `bind` is given in their places, such as a matrix laid out for GEMM

A step may be divided among threads: `workspace` and `bind` are then told of a part of the batch (or of the
rows), each part with scratch of its own, while `pack` was told of the whole.

A rung with `compiled = true` in its header has loops that Numba compiles; its bind returns a `Call`
(kernels.cpu.compiled), and what several threads do is the call's to divide.

`bind` must work both with packed weights and with inputs that only exist at run time: it tells the two apart
by the array's shape, or `pack` does not change what the array means. Floating-point warnings are the caller's
to silence (NaN and infinities go through as IEEE says).
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kernels import confine
from kernels.errors import KernelError
from kernels.ops import Params
from kernels.registry import Rung

Array = np.ndarray[Any, np.dtype[Any]]
Bound = Callable[[], None]


@dataclass(frozen=True)
class CpuKernel:
    """The functions of one CPU rung, with the optional ones filled in (no scratch; weights as they
    are). `packs`: it has a pack of its own."""

    bind: Callable[[Params, Sequence[Array], Array, Array], Bound]
    workspace: Callable[[Params], int]
    pack: Callable[[Params, Sequence[Array | None]], list[Array | None]]
    packs: bool = False


@lru_cache(maxsize=256)
def load(rung: Rung) -> CpuKernel:
    """Import the rung's file as the registry read it. Raises KernelError naming file, line and reason."""
    name = f"kernels.cpu.{rung.op}._{rung.path.stem}"
    spec = importlib.util.spec_from_loader(name, loader=None, origin=str(rung.path))
    assert spec is not None  # a spec without a loader is always made
    module = importlib.util.module_from_spec(spec)
    module.__file__ = file = _file(rung)
    module.__dict__["__source__"] = rung.source  # by which a compiled function is found again
    if confine.forbidden():  # where a user's kernels run, Numba finds what it has kept by its module
        sys.modules[name] = module
    try:
        exec(compile(rung.source, file, "exec"), module.__dict__)
    except Exception as error:
        line = getattr(error, "lineno", None) or line_in(rung, error) or 1
        reason = error.msg if isinstance(error, SyntaxError) else error  # its str() repeats file and line
        raise KernelError(f"{rung.path}:{line}: {type(error).__name__}: {reason}") from error
    if not callable(getattr(module, "bind", None)):
        raise KernelError(f"{rung.path}: a CPU rung defines bind(p, inputs, output, workspace)")
    return CpuKernel(
        bind=module.bind,
        workspace=getattr(module, "workspace", lambda p: 0),
        pack=getattr(module, "pack", lambda p, inputs: list(inputs)),
        packs=hasattr(module, "pack"),
    )


def _file(rung: Rung) -> str:
    """The rung's file as this process sees it. Where what strangers handed in is shut in, a copy lies in the
    folder that it may write: Numba keeps nothing (`cache=True`) of a function without a file."""
    if not confine.forbidden() or rung.path.exists():
        return str(rung.path)
    copy = Path(rung.path.name).absolute()
    with contextlib.suppress(OSError):
        copy.write_text(rung.source, encoding="utf-8")
    return str(copy)


def line_in(rung: Rung, error: BaseException) -> int | None:
    """The innermost line of the rung's own file in the error's trace, or None if it isn't in there."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).name == rung.path.name:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
