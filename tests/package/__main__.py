"""`python -m tests.package`: the package as a newcomer gets it. Exit code 1: something is not well."""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests import sampling
from tests.package import building, installed, steps


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.package", description=__doc__)
    parser.add_argument("--whole", action="store_true", help="also what brings much from the registry")
    parser.add_argument("--only", default="", metavar="TEXT", help="steps whose name has it")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="this one; default: it is built")
    parser.add_argument(
        "--python", default="", metavar="FILE", help="another interpreter for the environment"
    )
    parser.add_argument("--keep", action="store_true", help="leave the environment, and say where it is")
    asked = parser.parse_args()
    sampling.settle()
    # What a path may hold: a space and a letter beyond ASCII.
    folder = Path(tempfile.mkdtemp(prefix="kernelscope für "))
    began = time.monotonic()
    try:
        wheel = asked.wheel.absolute() if asked.wheel else building.build(folder / "dist")[1]
        failed = _told("the wheel", building.wheel_faults(wheel))
        there = installed.made(folder, wheel, python=asked.python)
        took = time.monotonic() - began
        print(f"{took:5.1f} s, {_spent():5.1f} s of CPU  built and installed", flush=True)
        if not there.user:
            print("  note: as the user who runs this, for nobody else can be had here", flush=True)
        for step in (*steps.STEPS, *(steps.WHOLE if asked.whole else ())):
            if asked.only in step.__name__:
                failed |= _tried(step, there)
        return int(failed)
    finally:
        if asked.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _told(what: str, faults: list[str]) -> bool:
    for fault in faults:
        print(f"FAILED  {what}: {fault}", flush=True)
    return bool(faults)


def _tried(step: steps.Step, there: installed.Installed) -> bool:
    """Whether it failed. Whatever the user does, nothing is written beside the program."""
    began, spent, before = time.monotonic(), _spent(), there.files()
    name = step.__name__.replace("_", " ")
    try:
        step(there)
        changed = [path for path, state in there.files().items() if before.get(path) != state]
        if changed and step not in (*steps.WHOLE, steps.a_runtime_that_is_missing_is_mended_as_it_is_said):
            raise installed.BrokenError(f"{changed[0]} was written")
    except installed.BrokenError as error:
        return _told(name, [str(error)])
    print(f"{time.monotonic() - began:5.1f} s, {_spent() - spent:5.1f} s of CPU  {name}", flush=True)
    return False


def _spent() -> float:
    """Seconds of processors that commands have taken so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
