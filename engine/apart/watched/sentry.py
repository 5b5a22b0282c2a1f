"""Who waits for a child to stop does not see that it has said something instead, or closed the way to us. So
somebody else looks, and stops it then."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Iterator

AGAIN_S = 0.001


class Sentry:
    """A thread that stops children which say something while they are to run and stop. Linux."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._poll: select.epoll | None = None
        self._owner = 0
        self._pids: dict[int, int] = {}

    @contextlib.contextmanager
    def over(self, fd: int, pid: int) -> Iterator[None]:
        """Meanwhile child `pid`, whose end of ours is `fd`, is stopped as soon as that can be read from."""
        poll = self._started()
        self._pids[fd] = pid
        poll.register(fd, select.EPOLLIN | select.EPOLLONESHOT)
        try:
            yield
        finally:
            with contextlib.suppress(OSError, ValueError):
                poll.unregister(fd)
            self._pids.pop(fd, None)

    def _started(self) -> select.epoll:
        with self._lock:
            if self._poll is None or self._owner != os.getpid():
                self._poll, self._owner, self._pids = select.epoll(), os.getpid(), {}
                threading.Thread(target=self._serve, args=(self._poll,), name="sentry", daemon=True).start()
            return self._poll

    def _serve(self, poll: select.epoll) -> None:
        while True:
            for fd, _ in poll.poll():
                # Until it is seen to have stopped: somebody else may have it go on.
                while (pid := self._pids.get(fd)) is not None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGSTOP)
                    time.sleep(AGAIN_S)


SENTRY = Sentry()
