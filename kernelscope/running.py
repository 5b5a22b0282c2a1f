"""The program in a process of its own: started with a command line, listened to, ended."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import IO, Any

from kernelscope import program

CANCELLED = 130  # the exit code of a command that Ctrl-C ended
TICK_S = 0.1
# How long the program may take to end in order after Ctrl-C, and after a second one.
ENDS_S, ENDS_AT_ONCE_S = 15.0, 3.0
GRACE_S = 1.0  # how long it is listened to when it has ended: something that it started may hold its pipes
_DONE = re.compile(r"\[(\d+)/(\d+)\] (.*)")  # how the program tells of a case that is done


class KernelscopeError(Exception):
    """What the program said in a sentence. exit_code: 2 where something that was asked for is wrong or cannot
    be had here, 1 where it was tried and failed."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass
class Ended:
    """What a command wrote. said: the lines of its standard error."""

    output: bytes
    exit_code: int
    said: list[str] = field(default_factory=list)

    def named(self, *what: str) -> str:
        """What stands behind the last line that begins with one of these words and a colon; "" where there is
        none."""
        for line in reversed(self.said):
            word, sign, rest = line.partition(": ")
            if sign and word in what:
                return rest
        return ""


def texts(value: Any) -> list[str]:
    """A value of an option, as one would type it. Numbers in a row are one text ("1,64"), other things one
    each; a dictionary's are NAME=VALUE."""
    if isinstance(value, Mapping):
        return [f"{name}={part}" for name, one in value.items() for part in texts(one)]
    if isinstance(value, str | os.PathLike):
        return [os.fspath(value)]
    if isinstance(value, Iterable):
        listed = list(value)
        if listed and all(isinstance(one, Real) for one in listed):
            return [",".join(f"{one:.15g}" for one in listed)]
        return [text for one in listed for text in texts(one)]
    return [f"{value:.15g}" if isinstance(value, Real) and not isinstance(value, Integral) else str(value)]


def words(options: Mapping[str, Any]) -> list[str]:
    """Options by the names of the command line, with _ for -, as its words. None leaves one away."""
    found: list[str] = []
    for name, value in options.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            found.append(f"--{option}" if value else f"--no-{option}")
        elif value is not None:
            found += [word for text in texts(value) for word in (f"--{option}", text)]
    return found


def run(arguments: Sequence[str], progress: bool = True) -> Ended:
    """Run a command of the program until it ends. progress: shown by tqdm, where that is installed.

    Raises KernelscopeError where the command fails without a result. Ctrl-C ends the program's processes,
    which keep what was measured, and is then raised as KeyboardInterrupt.
    """
    process: subprocess.Popen[bytes] | None = None
    heard: queue.Queue[tuple[bool, bytes]] = queue.Queue()
    readers: list[threading.Thread] = []
    ended = Ended(b"", 0)
    output: list[bytes] = []
    with _Bar(progress) as bar:
        try:
            process = started(arguments)
            readers += [
                threading.Thread(target=_read, args=(pipe, is_output, heard), daemon=True)
                for pipe, is_output in ((process.stdout, True), (process.stderr, False))
            ]
            for reader in readers:
                reader.start()
            until = float("inf")
            while any(reader.is_alive() for reader in readers) and time.monotonic() < until:
                _take(heard, output, ended.said, bar)
                if until == float("inf") and process.poll() is not None:
                    until = time.monotonic() + GRACE_S
            for _ in range(heard.qsize()):
                _take(heard, output, ended.said, bar)
            ended.exit_code = process.wait()
        except BaseException:
            if process is not None:
                end(process)
            for reader in readers:
                reader.join(GRACE_S)
            raise
    ended.output = b"".join(output)
    if ended.exit_code == CANCELLED:
        raise KeyboardInterrupt
    if ended.exit_code and not (ended.exit_code == 1 and ended.output.strip()):
        raise KernelscopeError(reason(ended.said, ended.exit_code), max(1, ended.exit_code))
    return ended


def reason(said: Sequence[str], exit_code: int) -> str:
    """Why a command failed: the last thing that it said."""
    last = next((line for line in reversed(said) if line.strip()), "")
    if exit_code < 0:
        last = f"the program was ended by signal {-exit_code}" + f": {last}" * bool(last)
    return last or f"the program ended with exit code {exit_code} and said nothing"


def started(
    arguments: Sequence[str], stdin: int = subprocess.DEVNULL, stderr: Any = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """The program, in a session of its own: Ctrl-C in a terminal reaches the caller alone, who ends it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    environment["PYTHONIOENCODING"] = "utf-8"  # as which it is read here
    return subprocess.Popen(
        program.command(*arguments),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=environment,
        start_new_session=True,
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """End the program and its workers: in order, and at once where it takes too long or Ctrl-C comes
    again."""
    for wait_s in (ENDS_S, ENDS_AT_ONCE_S):
        if process.poll() is not None:
            return
        with contextlib.suppress(OSError, ValueError):
            process.send_signal(signal.SIGINT) if sys.platform != "win32" else process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.wait(wait_s)
    if process.poll() is None:
        process.kill()
        process.wait()


def _read(pipe: IO[bytes] | None, is_output: bool, heard: queue.Queue[tuple[bool, bytes]]) -> None:
    assert pipe is not None
    with contextlib.suppress(OSError, ValueError), pipe:
        for line in pipe:
            heard.put((is_output, line))


def _take(heard: queue.Queue[tuple[bool, bytes]], output: list[bytes], said: list[str], bar: _Bar) -> None:
    """Wait a tick for a line."""
    try:
        is_output, line = heard.get(timeout=TICK_S)
    except queue.Empty:
        return
    if is_output:
        output.append(line)
        return
    text = line.decode("utf-8", "replace").rstrip("\n")
    said.append(text)
    if found := _DONE.match(text):
        bar.at(int(found[1]), int(found[2]), found[3])


class _Bar:
    """How far a command is, by tqdm; without tqdm nothing is shown."""

    def __init__(self, shown: bool) -> None:
        self._make: Any = None
        self._bar: Any = None
        if shown:
            with contextlib.suppress(ImportError):
                from tqdm.auto import tqdm

                self._make = tqdm

    def at(self, done: int, total: int, text: str) -> None:
        if self._make is None:
            return
        if self._bar is None:
            self._bar = self._make(total=total, unit="case")
        self._bar.set_postfix_str(text[:60], refresh=False)
        self._bar.update(done - self._bar.n)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
