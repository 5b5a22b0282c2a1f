"""Every CUDA rung once, on a small shape, in one process: what NVIDIA's compute-sanitizer is to look at.

    compute-sanitizer --tool memcheck python -m tests.kernels.sanitize
    python -m tests.kernels.sanitize --under memcheck,racecheck      (`make sanitize`; finds the tool)

A line a rung; exit code 1 where an answer is wrong (or, under a tool, where the tool found something), 2
where what it takes is missing. Nothing is shared between allocations, so that memcheck knows where each one
ends.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np

from engine.backends.engine_cuda import BACKEND
from engine.cuda.runtime import import_cupy
from kernels import registry
from kernels.errors import UnavailableError
from kernels.languages.known import languages
from kernels.ops import OPS, Params
from kernels.registry import Rung
from tests.kernels import cuda_cases

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
OUTPUTS = 256  # at least, where a rung has such a case: a case of one warp tells nothing of a race
# Their kernels are not ours to mend, and racecheck takes minutes over them.
NOT_LIBRARIES = ("racecheck",)


class Launcher(Protocol):
    """What tests.kernels.cuda_device.Device offers."""

    capability: tuple[int, int]

    def run(
        self,
        rung: Rung,
        params: Params,
        inputs: tuple[np.ndarray | None, ...],
        shape: tuple[int, ...],
        dtype: np.dtype,
    ) -> tuple[np.ndarray, str]: ...


@cache
def _cases(op: str) -> tuple[cuda_cases.Case, ...]:
    return tuple(cuda_cases.cases(op))


def small_case(rung: Rung, capability: tuple[int, int] | None = None) -> cuda_cases.Case | None:
    """The case of least work that the rung does not refuse, of those with enough outputs if there are any."""
    by_work = sorted(_cases(rung.op), key=lambda case: case.params.flops + case.params.nbytes)
    first = sorted(by_work, key=lambda case: case.expected.size < OUTPUTS)
    return next((case for case in first if cuda_cases.takes(rung, case.params, capability)), None)


def check(rungs: Sequence[Rung], device: Launcher, say: Callable[[str], None]) -> int:
    """Run each rung and say how it went; how many were wrong."""
    wrong = 0
    for rung in rungs:
        if reason := _too_new(rung, device.capability):
            say(f"{rung.label}: left out, {reason}")
            continue
        case = small_case(rung, device.capability)
        if case is None:
            say(f"{rung.label}: WRONG, it takes none of the cases")
            wrong += 1
            continue
        try:
            got, spilled = device.run(rung, case.params, case.inputs, case.expected.shape, case.dtype)
            problem = spilled or cuda_cases.differs(got, case, rung.precision)
        except UnavailableError as error:  # its language's compiler is there and compiles nothing
            say(f"{rung.label}: left out, {error}")
            continue
        except Exception as error:  # after a kernel's fault every later call fails as well: all are told
            problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        wrong += bool(problem)
        say(f"{rung.label}: {f'WRONG, {problem}' if problem else 'right'} on {case.params.words}")
    return wrong


def _too_new(rung: Rung, capability: tuple[int, int]) -> str:
    alone = rung.needs.get("architecture")
    needed = tuple(alone or rung.needs.get("compute_capability", (0, 0)))
    if capability == needed or (capability > needed and not alone):
        return ""
    least, here = (".".join(map(str, c)) for c in (needed, capability))
    return f"it needs compute capability {least}, and this device has {here}"


def ladder(ops: Sequence[str], libraries: bool = True, folders: Sequence[Path] = ()) -> list[Rung]:
    """Every rung of these operators, those beside the ladder too, and those of the user's folders; of those
    in another language the ones whose compiler is here."""
    found = [rung for op in ops for rung in registry.rungs("cuda", op, folders)]
    found = [rung for rung in found if not (rung.language and languages()[rung.language].unavailable())]
    return [rung for rung in found if libraries or not rung.yardstick]


# ----------------------------------------------------------------------------------------------- under a tool


def sanitizer() -> str | None:
    """NVIDIA's compute-sanitizer, on the path, in a toolkit, or brought by pip."""
    if found := shutil.which("compute-sanitizer"):
        return found
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [Path(home) / "bin" for home in homes if home]
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        places += sorted(path.parent for path in Path(root).glob("**/compute-sanitizer"))
    return next((str(p / "compute-sanitizer") for p in places if (p / "compute-sanitizer").is_file()), None)


def under(tools: Sequence[str], arguments: Sequence[str], say: Callable[[str], None]) -> int:
    """This module under each tool in turn. The exit code."""
    missing = []
    program = sanitizer()
    if program is None:
        missing.append("compute-sanitizer is not there; it comes with NVIDIA's CUDA toolkit")
    if reason := BACKEND.unavailable():
        missing.append(f"the rungs cannot run here: {reason}")
    if missing or program is None:
        for line in missing:
            say(line)
        return 2
    code = 0
    for tool in tools:
        own = [*arguments, "--no-libraries"] if tool in NOT_LIBRARIES else [*arguments]
        command = [program, "--tool", tool, "--error-exitcode", "1", "--report-api-errors", "no"]
        command += [sys.executable, "-m", "tests.kernels.sanitize", *own]
        say(f"== {tool}: {' '.join(command)}")
        failed = subprocess.run(command, check=False).returncode != 0
        say(f"== {tool}: {'something was found' if failed else 'clean'}")
        code |= failed
    return code


def main(arguments: Sequence[str] | None = None, device: Launcher | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--op", action="append", choices=sorted(OPS), help="only this operator")
    parser.add_argument(
        "--kernels", action="append", type=Path, default=[], help="a folder of your own kernels"
    )
    parser.add_argument("--no-libraries", action="store_true", help="leave out rungs that call a library")
    parser.add_argument("--under", metavar="TOOL,…", help=f"run under these tools: {', '.join(TOOLS)}")
    asked = parser.parse_args(arguments)

    def say(line: str) -> None:
        print(line, flush=True)

    if asked.under:
        tools = asked.under.split(",")
        if unknown := [tool for tool in tools if tool not in TOOLS]:
            parser.error(f"no tool {unknown[0]!r}; there are {', '.join(TOOLS)}")
        passed = [part for op in asked.op or () for part in ("--op", op)]
        passed += [part for folder in asked.kernels for part in ("--kernels", str(folder))]
        return under(tools, [*passed, *(["--no-libraries"] if asked.no_libraries else [])], say)
    if device is None:
        if reason := BACKEND.unavailable():
            say(f"the rungs cannot run here: {reason}")
            return 2
        # CuPy's pool would hand out parts of larger allocations, within which memcheck sees no edge.
        import_cupy().cuda.set_allocator(None)
        from tests.kernels.cuda_device import Device

        device = Device()
    rungs = ladder(asked.op or list(OPS), not asked.no_libraries, asked.kernels)
    if asked.no_libraries:
        say("rungs that call a library are left out: its kernels are not ours to mend")
    wrong = check(rungs, device, say)
    say(f"{len(rungs)} rungs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
