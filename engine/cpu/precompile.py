"""`python -m engine.cpu.precompile PART PARTS`: compiles the CPU's kernels into the cache, so that later
processes find them there. It does nothing if they are there already, or if Numba cannot be used."""

from __future__ import annotations

import contextlib
import subprocess
import sys

from engine.cpu import program
from engine.machine import host
from kernels import cpu, numba_support, registry
from kernels.cpu import compiled
from kernels.environment import for_children
from kernels.errors import KernelscopeError
from kernels.ops import OPS

PARTS = 8  # processes at the most: each compiles one function after another, and there are hardly more
CORES = 8  # from so many on


_started: list[subprocess.Popen[bytes]] = []


def start() -> None:
    """In processes of their own, which nobody waits for. Not twice, nor where Numba was tried before, since
    what it compiles is kept then, nor where these processes would take the cores of what is measured."""
    if not _started and not numba_support.known() and host.physical_cores() >= CORES:
        _begin(host.physical_cores() // 2)


def finish() -> None:
    """As `start`, whatever cores there are, and wait until all is compiled."""
    if not _started and not numba_support.known():
        _begin(host.physical_cores())
    for process in _started:
        process.wait()


def _begin(parts: int) -> None:
    parts = max(1, min(PARTS, parts))
    with contextlib.suppress(OSError):
        for part in range(parts):
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "engine.cpu.precompile", str(part), str(parts)],
                env=for_children(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            _started.append(process)


def functions() -> list[compiled.Compiled]:
    """Of our own rungs, and of what joins them."""
    modules: list[dict[str, object]] = [vars(program)]
    for op in OPS:
        modules += [cpu.load(rung).bind.__globals__ for rung in registry.rungs("cpu", op) if rung.compiled]
    return [it for module in modules for it in module.values() if isinstance(it, compiled.Compiled)]


def main(part: int, parts: int) -> None:
    if part == 0 and numba_support.unavailable() is not None:
        return
    from kernels.cpu import compiling  # not asked whether it can be: the first part tries that meanwhile

    to_compile = [compiled.Compiled(function.function, compiling.compiled) for function in functions()]
    for function in to_compile[part::parts]:
        with contextlib.suppress(KernelscopeError):  # who needs it is told
            function.address  # noqa: B018 - this compiles it


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
