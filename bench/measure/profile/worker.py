"""The process in which one case is profiled: a Start on standard input, one message a line
(bench.measure.worker_process).

Each case has a process of its own, so that its start is cold and what the process used is the case's alone:
where cases are left, it ends with the status that asks for another.
"""

from __future__ import annotations

import time

ENTERED_NS = time.perf_counter_ns()  # before anything else is loaded

from collections.abc import Callable  # noqa: E402

from bench.measure import worker_process  # noqa: E402
from bench.results.messages import Start  # noqa: E402
from bench.results.profile_records import ProfileJob  # noqa: E402
from bench.results.records import Case  # noqa: E402
from bench.run.supervisor import RESTART_STATUS  # noqa: E402


def _run(start: Start[ProfileJob, Case], say: worker_process.Say, stopped: Callable[[], bool]) -> int:
    """Profile the first case."""
    # Imported here: what this pulls in may print.
    from bench.measure.outcomes import Restart
    from bench.measure.profile.runner import ProfileRunner

    try:
        ProfileRunner(start, say, stopped, ENTERED_NS).run()
    except Restart:
        return RESTART_STATUS
    return 0


if __name__ == "__main__":
    worker_process.leave(worker_process.serve(Start[ProfileJob, Case], _run))
