"""A class that nobody taught (`classroom`), graded more than once: how long that takes, what is judged
otherwise than it should be, and how many bands are the same each time.

`python -m tests.bench.extras.course.repeated --students 300 [--times 2] [--again 30] [--walls NAME]`; exit
code 1 where a kernel is judged otherwise than it should be, or fewer bands than 99 of 100 are the same. A
kernel whose speed is not decided, as other programs used the cores, is counted apart. --again: so many
students of the class are graded once more, the first of them alone."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import main as program
from bench.extras.course import walls
from bench.extras.course.records import KIND, Graded
from tests.bench.extras.course import classroom

SAME = 0.99
WHOLE = 300 * len(classroom.PROBLEMS)  # kernels of a large class


def graded(base: Path, out: Path, wall: str, again: Sequence[str] = ()) -> tuple[float, dict[str, Graded]]:
    """How many seconds it took, and what came of each kernel. again: students of whom it is found anew."""
    command = ["course", "grade", str(base / "submissions"), "--assignment", str(base), "--out", str(out)]
    command += [word for name in again for word in ("--regrade", name)]
    began = time.monotonic()
    if status := program.main(
        [*command, "--walls", wall] if wall != walls.NONE else [*command, "--no-walls"]
    ):
        sys.exit(f"the grading ended with exit code {status}")
    took = time.monotonic() - began
    with KIND.open(out) as folder:
        return took, {one.case.key: one for one in folder.measurements()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--again", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--bad", type=float, default=0.15, help="the part of kernels that do harm or are wrong"
    )
    parser.add_argument("--walls", choices=(*walls.WALLS, walls.NONE), default="")
    given = parser.parse_args()
    wall = given.walls or walls.chosen()
    found: list[dict[str, Graded]] = []
    surprises: list[str] = []
    with tempfile.TemporaryDirectory(prefix="repeated-") as name:
        base = Path(name)
        classroom.write(base, given.students, given.seed, given.bad)
        for number in range(given.times):
            took, came = graded(base, base / f"out-{number}", wall)
            found.append(came)
            surprises += classroom.surprises(base, base / f"out-{number}")
            each = took / len(came)
            print(
                f"{wall}, {number + 1} of {given.times}: {len(came)} kernels in {took:.0f} s, {each:.2f} s "
                f"each; {WHOLE:,} at that pace: {WHOLE * each / 60:.0f} min"
            )
        names = sorted({one.case.student for one in came.values()})[: given.again]
        for again in filter(None, (names[:1], names[1:])):
            took, came = graded(base, base / f"out-{number}", wall, again)
            print(f"{wall}, regraded of {given.students}: {len(again)} in {took:.0f} s")
            surprises += classroom.surprises(base, base / f"out-{number}")
        if names:
            found.append(came)
    for words in surprises:
        print(f"OTHERWISE {words}")
    told = _compared(found)
    for key, words in told.items():
        if words:
            print(f"DIFFERS {key}: {words}")
    same, of = sum(not words for words in told.values()), len(told)
    print(
        f"bands: {same} of {of} are the same in {len(found)} gradings; {len(found[0]) - of} are not decided"
    )
    return 1 if surprises or same < SAME * of else 0


def _compared(found: list[dict[str, Graded]]) -> dict[str, str]:
    """By kernel whose speed was always decided: its bands, where they differ."""
    told = {}
    for key in found[0]:
        each = [came[key] for came in found]
        if any(one.undecided for one in each):
            continue
        bands = [f"{one.disposition} {one.band}" for one in each]
        told[key] = " / ".join(bands) if len(set(bands)) > 1 else ""
    return told


if __name__ == "__main__":
    sys.exit(main())
