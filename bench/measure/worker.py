"""The worker process of a comparison: one Start on standard input, one message a line
(bench.measure.worker_process)."""

from __future__ import annotations

from collections.abc import Callable

from bench.measure import worker_process
from bench.results.messages import Hello, Start
from bench.results.records import Case, Job
from engine.isolated.forked import starting
from kernels import processes


def _warm_up(say: worker_process.Say) -> None:
    """Load what every job needs, and say what this machine can run."""
    from engine.cpu import precompile

    precompile.start()
    from bench.measure import environment

    say(Hello(environment=environment.collect()))
    from bench.measure import net_runner

    # Half of what lies between a job and its first sample is what these load; now nobody waits for it.
    net_runner.warm_up()


def _run(start: Start[Job, Case], say: worker_process.Say, stopped: Callable[[], bool]) -> int:
    # Imported here: what this pulls in may print.
    from bench.measure.net_runner import NetRunner

    return worker_process.run_cases(NetRunner(start, say, stopped).run, say)


if __name__ == "__main__":
    processes.keep_orphans()
    starting.fork_here()
    worker_process.leave(worker_process.serve(Start[Job, Case], _run, _warm_up))
