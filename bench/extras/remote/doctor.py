"""`python -m bench.extras.remote.doctor [--compile]`, run at a place: its doctor's report, for who asked.
--compile: before, the CPU's kernels are compiled, for which else the first run there would have to wait."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from bench.commands import checks
from bench.extras.remote import there
from kernels import numba_support

COMPILE = "--compile"


def main(words: Sequence[str]) -> None:
    if COMPILE in words:  # first: the doctor tries Numba, after which nothing is compiled ahead
        from engine.cpu import precompile

        if not numba_support.known():
            print("compiling the CPU's kernels, once", file=sys.stderr, flush=True)
        precompile.finish()
    found = [check for check in checks.checks() if check.topic != "window"]  # nobody opens one there
    print(f"\n{there.MARK}{msgspec.json.encode(found).decode()}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
