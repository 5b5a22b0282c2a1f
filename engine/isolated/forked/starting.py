"""Isolated processes, forked where there is a template for them, and else started.

Who asks for one goes on at once: its number is waited for where it is first needed.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.isolated.forked import template
from engine.isolated.forked.request import MESSAGE_NBYTES, Fork
from kernels import processes
from kernels.environment import for_children

TEMPLATE = "engine.isolated.forked.template"
LOOK_MS = 500  # between looks at whether a template that is waited for was stopped
WAIT_S = 120.0  # for a template's answer, which may have to load libraries first
TEMPLATES = 4  # by what they were started with; the further ones are started plainly
# A template's NumPy has a library with one thread: what is forked from it has more once it asks for more
# (engine.cpu.steps.Blas), and none that are only woken and stopped with it.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
# What a process is told that nothing reads while it loads: these may differ from the template's.
LATER = ("KERNELSCOPE_", "PYTEST_")


class Process(Protocol):
    """What is asked of an isolated process; subprocess.Popen is one."""

    @property
    def pid(self) -> int: ...
    def wait(self, timeout: float | None = None) -> int: ...


def settled(process: Process) -> bool:
    """Whether its number is known without waiting for it."""
    return not isinstance(process, Forked) or process.settled


class _Started(Protocol):
    """A template's process; subprocess.Popen is one."""

    @property
    def pid(self) -> int: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


class _Gone(Exception):
    """The template is there no more."""


@dataclass(frozen=True)
class _Own:
    """A process that this one forked."""

    pid: int

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        with contextlib.suppress(ChildProcessError):
            return os.waitpid(self.pid, 0)[1]
        return 0


class _Template:
    """A template and the way to it. Answers come in the order of the questions."""

    def __init__(self, start: Callable[[socket.socket], _Started]) -> None:
        """start: has it serve on this socket."""
        processes.keep_orphans()  # what it forks is ours
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = start(theirs)
        ours.settimeout(WAIT_S)
        self.pid = self._process.pid
        self.owner = os.getpid()
        self.gone = False
        self._end = ours
        self._lock = threading.Lock()
        self._asked = self._heard = 0
        self._answers: dict[int, int] = {}

    def ask(self, question: Fork, fds: tuple[int, ...] = ()) -> int:
        """The number of the question. Raises _Gone."""
        data = pickle.dumps(question)
        with self._lock:
            self._alive()
            if len(data) > MESSAGE_NBYTES:
                raise _Gone("too long a question")
            self._goes_on()
            try:
                socket.send_fds(self._end, [data], list(fds))
            except ConnectionError as error:
                raise self._lost(error) from error
            except OSError as error:  # the question cannot be asked
                raise _Gone(str(error)) from error
            self._asked += 1
            return self._asked

    def answer(self, number: int) -> int:
        """Raises _Gone."""
        with self._lock:
            while number not in self._answers:
                self._alive()
                try:
                    data = self._received()
                except OSError as error:
                    raise self._lost(error) from error
                if not data:
                    raise self._lost(None)
                self._heard += 1
                self._answers[self._heard] = template.PID.unpack(data)[0]
            return self._answers.pop(number)

    def _received(self) -> bytes:
        """The next answer. Raises OSError where none comes."""
        answered, until = select.poll(), time.monotonic() + WAIT_S
        answered.register(self._end, select.POLLIN)
        while not answered.poll(LOOK_MS):
            self._goes_on()
            if time.monotonic() > until:
                raise TimeoutError(f"no answer in {WAIT_S:.0f} s")
        return self._end.recv(MESSAGE_NBYTES)

    def _goes_on(self) -> None:
        """It does so if somebody has stopped it, and `harmed` tells of that."""
        if processes.stopped(self.pid):
            processes.resume(self.pid)
            _lost.append(self.pid)

    def _alive(self) -> None:
        if self.gone:
            raise _Gone

    def _lost(self, error: OSError | None, asked: bool = False) -> _Gone:
        """asked: it is closed."""
        self.gone = True
        if not asked:
            _lost.append(self.pid)
        self._end.close()
        self._process.kill()
        self._process.wait()
        return _Gone(str(error or "the end"))

    def close(self) -> None:
        with self._lock:
            if not self.gone:
                self._lost(None, asked=True)


class Forked:
    """An isolated process that was asked for. plain: starts it where it cannot be forked; ours: told when it
    is settled which."""

    def __init__(
        self, template: _Template, number: int, plain: Callable[[], Process], settled: Callable[[], None]
    ) -> None:
        self._template, self._number = template, number
        self._plain, self._settled = plain, settled
        self._lock = threading.Lock()
        self._started: Process | None = None
        self._pid = 0
        self._status: int | None = None

    @property
    def pid(self) -> int:
        with self._lock:
            if not self._pid:
                self._resolve()
            return self._pid

    @property
    def settled(self) -> bool:
        return self._pid != 0

    def _resolve(self) -> None:
        try:
            pid = self._template.answer(self._number)
        except _Gone:
            pid = 0
        if not pid:
            self._started = self._plain()
            pid = self._started.pid
        self._pid = pid
        self._settled()

    def wait(self, timeout: float | None = None) -> int:
        """As of subprocess.Popen."""
        pid = self.pid
        if self._started is not None:
            return self._started.wait(timeout)
        with self._lock:
            if self._status is None:
                self._status = _ended(pid, timeout)
            return self._status


def _ended(pid: int, timeout: float | None) -> int:
    """How a child of this process ended; its number is nobody else's until then."""
    handle = os.pidfd_open(pid)
    try:
        ends_soon = select.poll()
        ends_soon.register(handle, select.POLLIN)
        if not ends_soon.poll(None if timeout is None else 1000 * timeout):
            raise subprocess.TimeoutExpired("an isolated process", timeout or 0.0)
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


_templates: dict[frozenset[tuple[str, str]], _Template] = {}
_lost: list[int] = []  # those that were there no more when they were asked, and nobody was told of


def forked(
    opens: str,
    environment: Mapping[str, str],
    end: socket.socket,
    plain: Callable[[], Process],
    settled: Callable[[], None],
) -> Process | None:
    """An isolated process whose end of the channel is `end`; None where it is to be started plainly."""
    if not possible():
        return None
    try:
        wanted = Fork(
            opens, dict(environment), os.getcwd(), _umask(), frozenset(os.sched_getaffinity(0)),
            os.getpriority(os.PRIO_PROCESS, 0),
        )  # fmt: skip
    except OSError:  # no folder is there to be in
        return None
    for _ in range(2):  # one that has ended is noticed when it is asked
        if (ready := _template(environment)) is None:
            break
        with contextlib.suppress(_Gone):
            return Forked(ready, ready.ask(wanted, (end.fileno(), 2)), plain, settled)
    return None


@functools.cache
def possible() -> bool:
    """Whether this system can fork, and tell when what is nobody's child here has ended: asked of the kernel,
    which may be older than the one that this Python was built for, or forbid it."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def environment(folders: Sequence[Path] = ()) -> dict[str, str]:
    """What an isolated process is started with: it finds this program, and what lies in these folders."""
    return for_children(*folders)


def _template(environment: Mapping[str, str]) -> _Template | None:
    key = _key(environment)
    known = _templates.get(key)
    if known is not None and known.owner == os.getpid() and not known.gone:
        return known
    # It ends with the thread that started it, and all that it forked with it.
    if threading.current_thread() is not threading.main_thread():
        return None
    for old in [old for old, it in _templates.items() if it.gone or it.owner != os.getpid()]:
        del _templates[old]
    if len(_templates) >= TEMPLATES:
        return None
    try:
        _templates[key] = _Template(functools.partial(_executed, environment))
    except OSError:
        return None
    return _templates[key]


def _key(environment: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(item for item in environment.items() if not item[0].startswith(LATER))


def _executed(environment: Mapping[str, str], end: socket.socket) -> _Started:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", TEMPLATE, str(os.getpid())],
        stdin=end.fileno(),
        stdout=subprocess.DEVNULL,
        env={**environment, **ONE_THREAD},
        start_new_session=True,
    )


def fork_here() -> None:
    """Make a template of this process, which has nothing to hide yet and will load much of what it needs. To
    be called before a thread is started, or a word read of what nobody else is to know."""
    if not possible():
        return
    own = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    template.load()
    for name, value in own.items():
        os.environ.pop(name)
        if value is not None:
            os.environ[name] = value
    if template.one_thread():
        with contextlib.suppress(OSError):
            _templates[_key(environment())] = _Template(_forked_here)
    template.all_threads()


def _forked_here(end: socket.socket) -> _Started:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return _Own(pid)
    try:
        os.setsid()
        end_copy = os.dup(end.fileno())
        os.closerange(3, end_copy)
        os.closerange(end_copy + 1, os.sysconf("SC_OPEN_MAX"))
        os._exit(template.serve(socket.socket(fileno=end_copy), parent))
    finally:
        os._exit(1)


def pids() -> set[int]:
    """The templates."""
    return {each.pid for each in _templates.values() if each.owner == os.getpid()}


def harmed() -> list[str]:
    """The templates that somebody has ended since this was asked, or stopped, in words; others are started in
    their places, or they go on."""
    for each in _templates.values():
        if each.owner != os.getpid() or each.gone:
            continue
        each._goes_on()
        if processes.ending(each.pid, "S"):
            each.close()
            _lost.append(each.pid)
    sentences = ["the process that others are forked from"] if _lost else []
    _lost.clear()
    return sentences


def _umask() -> int:
    with contextlib.suppress(OSError, StopIteration), open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("Umask:")).split()[1], 8)
    return 0o22


def close_all() -> None:
    """End the templates, and what they forked."""
    for each in _templates.values():
        if each.owner == os.getpid():
            each.close()
    _templates.clear()


atexit.register(close_all)
