"""A worker's end of the pipes to its parent: messages out, a line in, and the end of the input watched."""

from __future__ import annotations

import os
import sys
import threading

import msgspec

from bench.results.messages import Message

# How long a worker whose parent is gone may take to end by itself; a parent that lives kills it sooner.
LAST_S = 30.0


class ParentChannel:
    """The protocol's end of standard output. A parent that is gone ends the process: nobody listens."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._fd = os.dup(1)  # not inheritable: no child of ours can write to it
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        self._lock = threading.Lock()

    def say(self, message: Message) -> None:
        line = memoryview(msgspec.json.encode(message) + b"\n")
        with self._lock:
            try:
                while line:
                    line = line[os.write(self._fd, line) :]
            except OSError:
                os._exit(1)


def read_line(fd: int) -> bytes:
    """Up to the first newline, or the end; reads nothing beyond what came with it."""
    data = b""
    while not data.endswith(b"\n"):
        part = os.read(fd, 1 << 16)
        if not part:
            break
        data += part
    return data


def watch_input(fd: int, stop: threading.Event) -> None:
    """Set `stop` when the input closes, in a thread of its own; end the process if that is not heard."""

    def watch() -> None:
        try:
            while os.read(fd, 1 << 16):
                pass
        except OSError:
            pass
        stop.set()
        threading.Event().wait(LAST_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="input").start()
