"""`ladder --compile`: a ladder's CUDA rungs compiled, for a machine that cannot run them."""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.words.exits import CANCELLED

if TYPE_CHECKING:
    from bench.results.ladder_records import LadderJob, RungMeasurement

DEVICE = "cuda"


def run(job: LadderJob, archs: Sequence[str], output: str, simulate: bool = False) -> int:
    """Compile a job's rungs once and show what came of it. simulate: they also run on the CPU. The exit code:
    1 where one of the user's does not compile or is wrong (where there are none: one of ours)."""
    from bench.measure.ladder import compiled
    from bench.run.progress import callback

    found = compiled.run(job, compiled.architectures(archs), callback(), simulate)
    show(job, found, output)
    counted = [m for m in found if m.case.user] or found
    return 1 if any(m.disposition in ("failed", "incorrect") for m in counted) else 0


def watch(job: LadderJob, archs: Sequence[str], simulate: bool = False) -> int:
    """Compile again whenever a file is saved, until Ctrl-C. The exit code."""
    from bench.commands.ladder_watch import POLL_S, check
    from bench.measure.ladder import compiled
    from bench.run.watching import stamps
    from bench.words.terminal import console
    from kernels.errors import KernelscopeError

    check(job)
    wanted = compiled.architectures(archs)
    screen, seen = console(), None
    try:
        while True:
            if (now := stamps(job.kernel_dirs)) != seen:
                seen = now
                try:
                    found = compiled.run(job, wanted, simulate=simulate)
                except KernelscopeError as error:
                    print(error, file=sys.stderr)
                    continue
                if screen.is_terminal:
                    screen.clear()
                show(job, found, "table")
                screen.print(
                    f"{datetime.datetime.now():%H:%M:%S}: waiting for a file to be saved; Ctrl-C ends"
                )
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        return CANCELLED


def show(job: LadderJob, found: Sequence[RungMeasurement], output: str) -> None:
    """The table, or CSV, JSON or Markdown, on standard output, and nothing else there."""
    from bench.views import show as views
    from bench.views.tables import compiled_tables
    from bench.views.tables.table import to_markdown

    views.show(
        output,
        csv=lambda: [compiled_tables.table(found)],
        output=lambda: compiled_tables.output(job, found),
        paper=lambda: to_markdown(compiled_tables.table(found), by_name=True),
        drawn=lambda: [compiled_tables.terminal(job, found)],
    )


def hint(op: str, kernel_dirs: Sequence[str]) -> str:
    """What whoever has CUDA kernels for `op` in these folders, and no GPU for them, is to know; "" where that
    is not so."""
    from pathlib import Path

    from bench.measure.ladder.entrants import ENGINES
    from engine import backends
    from kernels import registry

    reason = backends.get(ENGINES[DEVICE]).unavailable()
    if reason is None:
        return ""
    rungs = registry.rungs(DEVICE, op, [Path(folder) for folder in kernel_dirs], broken=[])
    own = [rung for rung in rungs if rung.user]
    if not own:
        return ""
    names = ", ".join(rung.path.name for rung in own)
    return f"{names}: left out, for CUDA cannot run here ({reason}); --compile compiles it all the same"
