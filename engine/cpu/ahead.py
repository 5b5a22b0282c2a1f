"""`python -m engine.cpu.ahead PART`: compile what the compiled kernels of the CPU need into the cache, for
the processes that will want it; nothing where it is there, or cannot be."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine.cpu import joined
from kernels import cpu, jit, registry
from kernels.cpu import compiled
from kernels.errors import KernelscopeError
from kernels.ops import OPS

ROOT = Path(__file__).resolve().parents[2]
PARTS = 4  # processes: each compiles one function after another


def start() -> list[subprocess.Popen[bytes]]:
    """In processes of their own, which nobody waits for."""
    places = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    with contextlib.suppress(OSError):
        return [
            subprocess.Popen(
                [sys.executable, "-P", "-m", "engine.cpu.ahead", str(part)],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for part in range(PARTS)
        ]
    return []


def functions() -> list[compiled.Compiled]:
    """Of our own rungs, and of what joins them."""
    modules: list[dict[str, object]] = [vars(joined)]
    for op in OPS:
        modules += [cpu.load(rung).bind.__globals__ for rung in registry.rungs("cpu", op) if rung.compiled]
    return [it for module in modules for it in module.values() if isinstance(it, compiled.Compiled)]


def main(part: int) -> None:
    if jit.unavailable() is not None:
        return
    todo: list[Callable[[], object]] = [
        compiled.tiles,
        *(partial(getattr, function, "address") for function in functions()),
    ]
    for compile_one in todo[part::PARTS]:
        with contextlib.suppress(KernelscopeError):  # who needs it is told
            compile_one()


if __name__ == "__main__":
    main(int(sys.argv[1]))
