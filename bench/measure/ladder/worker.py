"""The worker process of a ladder: one Start on standard input, one message a line
(bench.measure.worker_process). With DESCRIBE it measures nothing and answers questions."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench.measure import worker_process
from bench.measure.parent_channel import read_line
from bench.questions.ladder_questions import DESCRIBE
from bench.results.ladder_records import LadderJob, RungCase
from bench.results.messages import Hello, Start
from engine.isolated.forked import starting
from kernels import processes


def _warm_up(say: worker_process.Say) -> None:
    """Load what every job needs, and say what this machine can run."""
    from bench.measure.ladder import warm

    warm.warm_up()
    from bench.measure import environment

    say(Hello(environment=environment.collect()))


def _run(start: Start[LadderJob, RungCase], say: worker_process.Say, stopped: Callable[[], bool]) -> int:
    # Imported here: what this pulls in may print.
    from bench.measure.ladder.runner import LadderRunner

    return worker_process.run_cases(LadderRunner(start, say, stopped).run, say)


def _describe() -> int:
    say, _ = worker_process.opened()
    from bench.measure.ladder.describe import serve

    return serve(say, lambda: read_line(0))


if __name__ == "__main__":
    processes.keep_orphans()
    if DESCRIBE in sys.argv[1:]:
        worker_process.leave(_describe())
    starting.fork_here()
    worker_process.leave(worker_process.serve(Start[LadderJob, RungCase], _run, _warm_up))
