"""A few threads that share the parts of one step; NumPy releases the interpreter lock inside its loops.

Each free thread takes the next part, and so does the caller. So a thread that the system does not run in time
delays nobody (BLAS's own threads wait for each other), and on a busy machine the caller does everything.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

import numpy as np


class _Job:
    """Parts of one step; each is taken once."""

    def __init__(self, tasks: Sequence[Callable[[], None]]) -> None:
        self.tasks = tasks
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()
        # next() of a count is atomic: no two threads get one number
        self._taken = itertools.count()
        self._finished = itertools.count(1)

    def work(self) -> None:
        count = len(self.tasks)
        while (index := next(self._taken)) < count:
            try:
                self.tasks[index]()
            except BaseException as error:
                self.error = error
            if next(self._finished) == count:
                self.done.release()


class Team:
    """`threads` threads, the caller among them. Members live as long as the process, asleep between jobs."""

    def __init__(self, threads: int) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._helpers = threads - 1
        for index in range(self._helpers):
            threading.Thread(target=self._serve, name=f"engine-cpu-{index + 1}", daemon=True).start()

    def run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Do all tasks, several at a time; returns when all are done, raises what one of them raised."""
        job = _Job(tasks)
        for _ in range(min(self._helpers, len(tasks) - 1)):
            self._jobs.put(job)
        job.work()
        job.done.acquire()
        if job.error is not None:
            raise job.error

    def _serve(self) -> None:
        with np.errstate(all="ignore"):  # NumPy keeps this by thread
            while True:
                self._jobs.get().work()


@functools.cache
def team(threads: int) -> Team:
    """The process's team of that size."""
    return Team(threads)
