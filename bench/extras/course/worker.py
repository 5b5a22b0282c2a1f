"""The process that judges what one student handed in: a Start on standard input, a message a line on
what was standard output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from engine.isolated.forked import starting
from kernels import confine, processes

JUDGE_MIB = 2048  # of a judge itself, beside the memory of a kernel that runs in it


def main() -> int:
    """Judge the cases that standard input names. Returns the exit status."""
    if not confine.walled() and (mib := os.environ.get(confine.WALLED_MIB)):
        confine.limit_memory(int(mib))
    _empty_tmp()
    # Before anything is read that a kernel is not to know.
    starting.fork_here()
    from bench.extras.course.records import GradeCase, GradeJob
    from bench.measure import worker_process
    from bench.results.messages import Start

    confine.hide_memory()
    return worker_process.serve(Start[GradeJob, GradeCase], _judge)


def _empty_tmp() -> None:
    """Another judge of the same student may have been here: nothing tells this one what was seen then."""
    if confine.walled():
        tmp = Path(os.environ[confine.WALLED_ROOT], os.environ[confine.WALLED_TMP].lstrip("/"))
        was = tmp.stat()
        confine.remove(tmp)
        if not tmp.exists():  # as where it is a file system of its own, which is new for each judge
            tmp.mkdir(mode=0o700)
            os.chown(tmp, was.st_uid, was.st_gid)


def _judge(start: Any, say: Any, stopped: Any) -> int:
    from bench.extras.course.judging import Judging
    from bench.extras.course.records import GradeCase
    from bench.extras.fleet.device_lock import DeviceLock
    from bench.measure import environment
    from bench.measure.timing import Stopped
    from bench.results.messages import CaseStarted, Done, Hello, Log, Measured
    from bench.run.supervisor import RESTART_STATUS, TUNE
    from engine.isolated import pool

    if start.job.device == "cuda":  # what a kernel prints there comes out here, without end
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if start.job.simulated and start.job.mib and confine.walled():  # its memory is this process's
        confine.limit_memory(start.job.mib + JUDGE_MIB)
    at: list[GradeCase] = list(start.cases[:1])
    lock = DeviceLock.of_this_process(lambda: say(CaseStarted(case=at[0], stage=TUNE)))
    if start.job.device == "cpu":
        pool.start_early("rung")
    say(Hello(environment=environment.collect()))
    judging = Judging(
        start.job,
        Path(start.folder),
        lambda case, stage: say(CaseStarted(case=case, stage=stage)),
        stopped,
        lock,
        say,
    )
    for case in start.cases:
        if stopped():
            break
        at[0] = case
        say(CaseStarted(case=case, stage=TUNE))
        if lock is not None and start.job.device == "cpu":
            lock.share()
        say(CaseStarted(case=case, stage="check"))
        try:
            made, restart = judging.graded(case)
        except Stopped:
            break
        say(Measured(measurement=made))
        if restart is not None:
            say(Log(level="warning", text=str(restart)))
            return RESTART_STATUS
    say(Done(reason="cancelled" if stopped() else ""))
    return 0


if __name__ == "__main__":
    processes.keep_orphans()
    status = main()
    from bench.measure import worker_process

    worker_process.leave(status)
