"""`ladder --compile`: a ladder's CUDA rungs compiled, for a machine that cannot run them; with --simulate,
and where there is no GPU for `--device cuda`, run on the CPU."""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.words.exits import CANCELLED

if TYPE_CHECKING:
    from bench.commands.given import Given
    from bench.results.ladder_records import LadderJob, RungMeasurement
    from kernels.gpus import Gpu

DEVICE = "cuda"
# What may be said of CUDA rungs that are simulated: which, on what, and how it is shown.
WITH_SIMULATED = {
    *("op", "model", "node", "batch", "shape", "stride", "pad", "dilation", "group", "bias", "activation"),
    *("device", "rung", "precision", "kernels", "watch", "format", "gpu", "counts"),
}
WITH_COMPILE = WITH_SIMULATED | {"compile", "arch", "simulate"}


def run(job: LadderJob, archs: Sequence[str], output: str, gpu: Gpu | None = None) -> int:
    """Compile a job's rungs once and show what came of it; simulated ones also run on the CPU. The exit code:
    1 where one of the user's does not compile or is wrong (where there are none: one of ours)."""
    from bench.measure.ladder import compiled
    from bench.run.progress import callback

    found = compiled.run(job, compiled.architectures(archs), callback(), gpu)
    show(job, found, output)
    counted = [m for m in found if m.case.user] or found
    return 1 if any(m.disposition in ("failed", "incorrect") for m in counted) else 0


def watch(job: LadderJob, archs: Sequence[str], gpu: Gpu | None = None) -> int:
    """Compile again whenever a file is saved, until Ctrl-C. The exit code."""
    from bench.commands.ladder_watch import POLL_S, FollowedTask, check
    from bench.measure.ladder import compiled
    from bench.run.progress import callback
    from bench.run.watching import stamps
    from bench.words.terminal import console
    from kernels.errors import KernelscopeError

    check(job)
    wanted, task = compiled.architectures(archs), FollowedTask(job)
    screen, seen, progress = console(), None, callback()  # what was told once is not told at each save
    try:
        while True:
            if (now := stamps(job.kernel_dirs)) != seen:
                seen = now
                try:
                    job = task.job(job)
                    found = compiled.run(job, wanted, progress, gpu)
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


def no_gpu(device: str) -> str:
    """Why kernels for CUDA, where they are asked for, cannot run here; "" where they can, or are not."""
    from bench.measure.ladder.entrants import ENGINES
    from engine import backends

    return (backends.get(ENGINES[DEVICE]).unavailable() or "") if device == DEVICE else ""


def lacking() -> str:
    """What is missing for running CUDA kernels on the CPU, with the command that brings it; ""."""
    from bench.measure.ladder import simulated

    return simulated.missing()


def instead(given: Given, reason: str) -> None:
    """CUDA rungs are asked for, and there is no GPU (`reason`): tell that they are simulated. Raises
    InputError where they cannot be, or where something is asked for that takes a GPU."""
    from bench.views.tables.compiled_tables import WITHOUT_TIMES
    from kernels.errors import InputError

    if missing := lacking():
        raise InputError(f"kernels for cuda cannot run here: {reason}; {missing}")
    given.refuse_others(WITH_SIMULATED, f"kernels for cuda are simulated here ({reason}), and not timed")
    print(f"{reason}; {WITHOUT_TIMES}", file=sys.stderr)


def hint(op: str, kernel_dirs: Sequence[str]) -> str:
    """What whoever has CUDA kernels for `op` in these folders, and no GPU for them, is to know; "" where that
    is not so."""
    from pathlib import Path

    from kernels import registry

    if not (reason := no_gpu(DEVICE)):
        return ""
    rungs = registry.rungs(DEVICE, op, [Path(folder) for folder in kernel_dirs], broken=[])
    own = [rung for rung in rungs if rung.user]
    if not own:
        return ""
    names = ", ".join(rung.path.name for rung in own)
    return (
        f"{names}: left out, for CUDA cannot run here ({reason}); --device cuda runs it on the CPU, without "
        "times"
    )
