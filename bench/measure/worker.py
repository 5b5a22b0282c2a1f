"""The worker process: one Start on standard input, one message a line on what was standard output.

File descriptor 1 is kept for the protocol and pointed at standard error for everybody else, before anything
that could print is imported. The worker ends when its input closes (the parent is gone, or asks it to stop),
on SIGINT and on SIGTERM, between two passes.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable

import msgspec

from bench.ladder.questions import DESCRIBE, LadderAnswer
from bench.ladder.records import LADDER, LadderMessage, LadderStart
from bench.measure.parent_channel import ParentChannel, read_line, watch_input
from bench.results.messages import Done, Hello, Log, Start, WorkerMessage
from bench.run.supervisor import RESTART_STATUS, WARM
from engine.apart.forked import starting
from kernels import ends


def main() -> int:
    """Run what standard input says. Returns the exit status."""
    channel = ParentChannel()
    faulthandler.enable()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if DESCRIBE in sys.argv[1:]:
        return _describe(channel.say)
    ladder = LADDER in sys.argv[1:]
    start: Start | LadderStart
    if WARM in sys.argv[1:]:
        _warm_up(channel.say, ladder)
    try:
        line = read_line(0)
        start = (
            msgspec.json.decode(line, type=LadderStart) if ladder else msgspec.json.decode(line, type=Start)
        )
    except msgspec.DecodeError as error:
        channel.say(Done(reason=f"the worker was given no job it can read ({error})"))
        return 2
    watch_input(0, stop)
    _clear_cache()
    if isinstance(start, LadderStart):
        return _climb(start, channel.say, stop.is_set)
    return _run(start, channel.say, stop.is_set)


def _warm_up(say: Callable[[WorkerMessage], None], ladder: bool) -> None:
    """Load what every job needs, and say what this machine can run."""
    if ladder:
        from bench.ladder.measure import warm

        warm.warm_up()
    else:
        from engine.cpu import ahead

        ahead.start()
    from bench.measure import environment

    say(Hello(environment=environment.collect()))
    if not ladder:
        from bench.measure import runner

        # Half of what lies between a job and its first sample is what these load; now nobody waits for it.
        runner.warm_up()


def _clear_cache() -> None:
    from kernels.cache import cache_dir, clear_leftovers

    clear_leftovers(cache_dir())


def _run(start: Start, say: Callable[[WorkerMessage], None], stopped: Callable[[], bool]) -> int:
    # Imported here: what these pull in may print.
    from bench.measure.outcomes import Restart
    from bench.measure.runner import Runner

    try:
        Runner(start, say, stopped).run()
    except Restart as restart:
        say(Log(level="warning", text=str(restart)))
        return RESTART_STATUS
    return 0


def _describe(say: Callable[[LadderAnswer | Done], None]) -> int:
    from bench.ladder.measure.describe import serve

    return serve(say, lambda: read_line(0))


def _climb(start: LadderStart, say: Callable[[LadderMessage], None], stopped: Callable[[], bool]) -> int:
    from bench.ladder.measure.runner import LadderRunner
    from bench.measure.outcomes import Restart

    try:
        LadderRunner(start, say, stopped).run()
    except Restart as restart:
        say(Log(level="warning", text=str(restart)))
        return RESTART_STATUS
    return 0


def end_children() -> None:
    """Leave nothing behind that a kernel ran in, or started."""
    if "engine.apart.pool" in sys.modules:
        sys.modules["engine.apart.pool"].close_all()


if __name__ == "__main__":
    ends.keep_orphans()
    if DESCRIBE not in sys.argv[1:]:
        starting.fork_here()
    status = main()
    end_children()
    sys.stderr.flush()
    # Not sys.exit: teardown of device libraries may crash or hang after all is said.
    os._exit(status)
