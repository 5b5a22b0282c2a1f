"""The comparisons of a selfcheck in a process of their own, as a machine elsewhere makes them: one Start on
standard input, one message a line (bench.measure.worker_process). What was asked, and what was found before,
lies in the folder (FILE)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.measure import worker_process
from bench.measure.reporter import Reporter
from bench.measure.timing import Stopped
from bench.results.messages import Done, Hello, Log, Start
from bench.results.records import Case, Job
from engine.isolated.forked import starting
from kernels import processes


def _run(start: Start[Job, Case], say: worker_process.Say, stopped: Callable[[], bool]) -> int:
    # Imported here: what this pulls in may print.
    import msgspec

    from bench.measure import environment
    from bench.measure import selfcheck as check
    from kernels.errors import KernelscopeError

    reason = ""
    try:
        held = check.held_in(Path(start.folder) / check.FILE)
        held = msgspec.structs.replace(held, job=start.job)  # which names files by their paths here
        say(Hello(environment=environment.collect()))
        reporter = Reporter(say, stopped)
        refused = partial(_refused, say)
        planned = check.plan(held.job, reporter.progress)
        for comparison in check.missing(held, planned, reporter.progress, refused):
            say(check.Compared(comparison=comparison))
            if stopped():
                reason = "cancelled"
                break
    except Stopped:
        reason = "cancelled"
    except KernelscopeError as error:
        reason = str(error)
    say(Done(reason=reason))
    return 0


def _refused(say: worker_process.Say, why: str) -> None:
    say(Log(level="warning", text=f"left out: {why}"))


if __name__ == "__main__":
    processes.keep_orphans()
    starting.fork_here()
    worker_process.leave(worker_process.serve(Start[Job, Case], _run))
