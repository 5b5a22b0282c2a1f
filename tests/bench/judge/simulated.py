"""Kernels of the corpus that cheat on a GPU, judged on the CPU:

    python -m tests.bench.judge.simulated

Without a GPU no time is shown, so that a cheat which gains time alone gains nothing there. What is told is
what becomes of each: it is found wrong, it cannot be run there, or it is called right. The last may only be
of one whose answers may be right (`expected` has "ok"); the exit code is 1 where another is."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from bench.measure.ladder import compiled, simulated
from bench.results.ladder_records import RungMeasurement
from kernels.errors import KernelscopeError
from kernels.ops.conv import Conv
from tests.bench.judge import corpus
from tests.bench.judge.corpus import Cheat

IMAGES = 2  # of a batch of a convolution
CAUGHT, NOT_RUN, RIGHT, THROUGH = "caught", "not run here", "rightly called right", "let through"


def judged(cheat: Cheat) -> RungMeasurement:
    params = cheat.params
    if isinstance(params, Conv):
        params = replace(params, n=min(params.n, IMAGES))
    made = compiled.compiled(cheat.rung, params, "sm_80")
    return simulated.judged(cheat.rung, params, made, quick=True)


def became(cheat: Cheat, measured: RungMeasurement) -> str:
    """What became of one, as one of CAUGHT, NOT_RUN, RIGHT, THROUGH."""
    if measured.disposition in ("incorrect", "failed"):
        return CAUGHT
    if measured.disposition != "ok" or not measured.counted:
        return NOT_RUN
    return RIGHT if "ok" in cheat.expected else THROUGH


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.judge.simulated", description=__doc__)
    parser.add_argument("--only", default="", help="names, with commas between")
    asked = parser.parse_args(arguments)
    wanted = set(filter(None, asked.only.split(",")))
    counts: Counter[str] = Counter()
    for cheat in corpus.planted("cuda"):
        if wanted and cheat.name not in wanted:
            continue
        try:
            measured = judged(cheat)
        except KernelscopeError as error:
            print(f"{cheat.name}: {NOT_RUN} ({error})", flush=True)
            counts[NOT_RUN] += 1
            continue
        what = became(cheat, measured)
        counts[what] += 1
        why = measured.reason or "; ".join(measured.notes)
        print(f"{cheat.name} ({cheat.family}): {what}{f' ({why[:160]})' if why else ''}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.items()), f"of {counts.total()}")
    return 1 if counts[THROUGH] else 0


if __name__ == "__main__":
    sys.exit(main())
