"""A worker process from its start to its end: one start message on standard input, messages on what was
standard output.

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
from typing import Any, NoReturn, TypeVar

import msgspec

from bench.measure.parent_channel import ParentChannel, read_line, watch_input
from bench.results.messages import Done, Log, Message
from bench.run.supervisor import RESTART_STATUS, WARM

Say = Callable[[Any], None]  # of a Message
Start = TypeVar("Start", bound=msgspec.Struct)


def opened() -> tuple[Callable[[Message], None], threading.Event]:
    """How to say a message to the parent, and what is set once the worker is to stop."""
    channel = ParentChannel()
    faulthandler.enable()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return channel.say, stop


def serve(
    start: type[Start],
    run: Callable[[Start, Say, Callable[[], bool]], int],
    warm_up: Callable[[Say], None] | None = None,
) -> int:
    """Read one `start` and run it; the exit status. warm_up: called before that, where the parent asks for a
    worker that is ready before there is a job."""
    say, stop = opened()
    if warm_up is not None and WARM in sys.argv[1:]:
        warm_up(say)
    try:
        asked = msgspec.json.decode(read_line(0), type=start)
    except msgspec.DecodeError as error:
        say(Done(reason=f"the worker was given no job it can read ({error})"))
        return 2
    watch_input(0, stop)
    return run(asked, say, stop.is_set)


def run_cases(run: Callable[[], None], say: Say) -> int:
    """Run them; the exit status, which asks for another worker where one of them needs a fresh process."""
    from bench.measure.outcomes import Restart
    from kernels.cache import cache_dir, clear_leftovers

    clear_leftovers(cache_dir())
    try:
        run()
    except Restart as restart:
        say(Log(level="warning", text=str(restart)))
        return RESTART_STATUS
    return 0


def leave(status: int) -> NoReturn:
    """End the process, and all that a kernel ran in or started."""
    if "engine.isolated.pool" in sys.modules:
        sys.modules["engine.isolated.pool"].close_all()
    sys.stderr.flush()
    # Not sys.exit: teardown of device libraries may crash or hang after all is said.
    os._exit(status)
