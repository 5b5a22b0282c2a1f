"""The process in which one case is profiled: a ProfileStart on standard input, messages on what was standard
output, as bench.measure.worker does it.

Each case has a process of its own, so that its start is cold and what the process used is the case's alone:
where cases are left, it ends with the status that asks for another.
"""

from __future__ import annotations

import time

ENTERED_NS = time.perf_counter_ns()  # before anything else is loaded

import faulthandler  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
from typing import Any  # noqa: E402

import msgspec  # noqa: E402

from bench.measure.parent_channel import ParentChannel, read_line, watch_input  # noqa: E402
from bench.measure.worker import end_children  # noqa: E402
from bench.profile.records import ProfileStart  # noqa: E402
from bench.results.messages import Done  # noqa: E402
from bench.run.supervisor import RESTART_STATUS  # noqa: E402


def main() -> int:
    """Profile the first case that standard input names. Returns the exit status."""
    channel = ParentChannel()
    say: Any = channel.say
    faulthandler.enable()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        start = msgspec.json.decode(read_line(0), type=ProfileStart)
    except msgspec.DecodeError as error:
        say(Done(reason=f"the worker was given no job it can read ({error})"))
        return 2
    watch_input(0, stop)
    # Imported here: what this pulls in may print.
    from bench.profile.measure.runner import ProfileRunner

    ProfileRunner(start, say, stop.is_set, ENTERED_NS).run()
    if len(start.cases) > 1 and not stop.is_set():
        return RESTART_STATUS
    say(Done())
    return 0


if __name__ == "__main__":
    status = main()
    end_children()
    sys.stderr.flush()
    # Not sys.exit: teardown of device libraries may crash or hang after all is said.
    os._exit(status)
