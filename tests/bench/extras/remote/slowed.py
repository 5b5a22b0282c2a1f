"""A connection over a long way: a proxy that adds latency and lets so many bytes a second through."""

from __future__ import annotations

import collections
import contextlib
import socket
import threading
import time
from collections.abc import Iterator

PIECE_NBYTES = 1 << 12
MOST_NBYTES = 1 << 18  # on their way in one direction; who sends more waits


class _Way:
    """One direction of a connection."""

    def __init__(self, source: socket.socket, target: socket.socket, delay_s: float, rate: float) -> None:
        self._source, self._target = source, target
        self._delay_s, self._rate = delay_s, rate
        self._pieces: collections.deque[tuple[float, bytes]] = collections.deque()
        self._nbytes = 0
        self._over = False
        self._change = threading.Condition()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._take, self._give)]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _take(self) -> None:
        free_at = 0.0  # when the last byte has left
        data = b"?"
        while data:
            try:
                data = self._source.recv(PIECE_NBYTES)
            except OSError:
                data = b""
            free_at = max(free_at, time.monotonic()) + len(data) / self._rate
            with self._change:
                self._pieces.append((free_at + self._delay_s, data))
                self._nbytes += len(data)
                self._change.notify_all()
                self._change.wait_for(lambda: self._nbytes < MOST_NBYTES or self._over)

    def _give(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._pieces)
                due, data = self._pieces.popleft()
                self._nbytes -= len(data)
                self._change.notify_all()
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if data:
                    self._target.sendall(data)
                else:
                    self._target.shutdown(socket.SHUT_WR)
            except OSError:
                data = b""
            if not data:
                with contextlib.suppress(OSError):
                    self._source.shutdown(socket.SHUT_RD)
                with self._change:
                    self._over = True
                    self._change.notify_all()
                return


@contextlib.contextmanager
def slowed(port: int, round_trip_s: float = 0.2, rate: float = 1e6) -> Iterator[int]:
    """A port of this machine that leads to another one. round_trip_s: added to every question and its answer;
    rate: bytes a second, in each direction. All connections end with the block."""
    ways: list[_Way] = []
    with socket.create_server(("127.0.0.1", 0)) as listening, contextlib.ExitStack() as ends:

        def serve() -> None:
            while True:
                try:
                    near = ends.enter_context(listening.accept()[0])
                    far = ends.enter_context(socket.create_connection(("127.0.0.1", port)))
                except OSError:
                    return
                opened.extend((near, far))
                for end in (near, far):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ways.append(_Way(near, far, round_trip_s / 2, rate))
                ways.append(_Way(far, near, round_trip_s / 2, rate))

        opened: list[socket.socket] = []
        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)  # which ends the wait for the next one
            serving.join()
            for end in opened:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            for way in ways:
                way.join()
