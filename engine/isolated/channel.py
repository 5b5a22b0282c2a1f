"""The two ends of what a process and its child say to each other: frames of a kind and some bytes, on one
socket (with descriptors beside them) where there are such, else on the child's standard input and output.

Both ends block: nobody spins while it waits.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.isolated.forked import starting as forking
from engine.isolated.forked.starting import Process

HEADER = struct.Struct("<BI")
# What a frame is: something asked or answered, passes to be run or that were run, an error, one pass of them.
CALL, TRAIN, ERROR, PASS = 1, 2, 3, 4
LIMIT_NBYTES = 256 << 20  # of a frame; arrays lie in shared memory
_AT_ONCE = 1 << 16
FDS = 32  # descriptors beside one frame, at most, and one more
_SOCKETS = os.name == "posix"


class ChannelClosed(Exception):
    """The other end is gone, or says what is no frame."""


class Channel:
    """send, receive: of bytes (with descriptors, where there are)."""

    def __init__(
        self,
        send: Callable[[bytes, Sequence[int]], None],
        receive: Callable[[int, bool], tuple[bytes, list[int]]],
        close: Callable[[], None],
        fd: int,
    ) -> None:
        self._send, self._receive, self.close = send, receive, close
        self.fd = fd  # that there is something to receive is seen at

    def send(self, kind: int, body: bytes = b"", fds: Sequence[int] = ()) -> None:
        try:
            self._send(HEADER.pack(kind, len(body)) + body, fds)
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def waits(self, seconds: float = 0.0) -> bool:
        """Whether there is something to receive, or the other end is gone. Linux."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(1000 * seconds))

    def receive(self, wait: bool = True) -> tuple[int, bytes, list[int]]:
        """One frame; blocks until it is there. wait: False where the other end has stopped: what is not there
        by now never comes."""
        data, fds = self._some(_AT_ONCE, wait)
        while len(data) < HEADER.size:
            data += self._some(_AT_ONCE, wait)[0]
        kind, length = HEADER.unpack_from(data)
        if length > LIMIT_NBYTES:
            raise ChannelClosed(f"a message of {length:,} bytes")
        if len(data) < HEADER.size + length:
            parts, remaining = [data], HEADER.size + length - len(data)
            while remaining > 0:
                part, more = self._some(min(remaining, 1 << 20), wait)
                parts.append(part)
                fds += more
                remaining -= len(part)
            data = b"".join(parts)
        if len(data) != HEADER.size + length:
            raise ChannelClosed("more than was asked for")
        return kind, data[HEADER.size :], fds

    def _some(self, count: int, wait: bool) -> tuple[bytes, list[int]]:
        try:
            data, fds = self._receive(count, wait)
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        if not data:
            raise ChannelClosed("the end")
        return data, fds


def _of_socket(end: socket.socket, takes_fds: bool) -> Channel:
    def send(data: bytes, fds: Sequence[int]) -> None:
        if fds:
            sent = socket.send_fds(end, [data], list(fds))
            data = data[sent:]
        if data:
            end.sendall(data)

    def receive(count: int, wait: bool) -> tuple[bytes, list[int]]:
        flags = 0 if wait else socket.MSG_DONTWAIT
        if not takes_fds:  # what comes from a child is bytes alone
            return end.recv(count, flags), []
        data, fds, _, _ = socket.recv_fds(end, count, FDS + 1, flags)
        return data, list(fds)

    return Channel(send, receive, end.close, end.fileno())


def _of_pipes(reads: int, writes: int) -> Channel:
    def send(data: bytes, fds: Sequence[int]) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(writes, view) :]

    def close() -> None:
        for fd in {reads, writes}:
            with contextlib.suppress(OSError):
                os.close(fd)

    return Channel(send, lambda count, _wait: (os.read(reads, count), []), close, reads)


def started(
    command: Sequence[str],
    forks: tuple[str, Mapping[str, str]] | None = None,
    **options: Any,
) -> tuple[Process, Channel]:
    """A child process, and our end of the channel to it. It inherits that and standard error alone.
    forks: where it may be forked rather than started by this command, the module that opens its sessions, and
    its environment."""
    if _SOCKETS:
        ours, theirs = socket.socketpair()

        def plain(end: socket.socket) -> Process:
            return subprocess.Popen(command, stdin=end.fileno(), stdout=subprocess.DEVNULL, **options)

        def instead() -> Process:
            """One that nobody knows of may have been forked all the same, and have the other end: it ends
            with ours, in whose place is another's."""
            fresh, its = socket.socketpair()
            with fresh, its:
                os.dup2(fresh.fileno(), ours.fileno(), inheritable=False)
                return plain(its)

        process: Process | None = None
        if forks is not None:
            process = forking.forked(*forks, theirs, instead, theirs.close)
        if process is None:
            with theirs:
                process = plain(theirs)
        return process, _of_socket(ours, takes_fds=False)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
    assert process.stdin is not None
    assert process.stdout is not None
    pair = os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno())
    process.stdin.close()
    process.stdout.close()
    return process, _of_pipes(*pair)


def of_child() -> Channel:
    """A child's own end, which nobody finds at the usual places afterwards: what reads standard input reads
    nothing, and what is printed goes to standard error."""
    sys.stdout.flush()
    reads, writes = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if not _SOCKETS:
        return _of_pipes(reads, writes)
    os.close(writes)
    return _of_socket(socket.socket(fileno=reads), takes_fds=True)
