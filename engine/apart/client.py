"""A process apart as its parent has it: started, asked, timed, ended."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import kernels.errors
from engine.apart import arrays, channel
from engine.apart.forked import starting
from engine.apart.memory import NAMELESS, Block
from engine.apart.messages import TOOK, TRAIN, Call, Error
from kernels import confine, ends
from kernels.errors import CrashedError, KernelError, KernelscopeError

T = TypeVar("T")
# What opens sessions that multiply no matrices with NumPy, whose library would start a thread a core.
WITHOUT_BLAS = ("engine.apart.open_ort", "engine.apart.open_empty")

_awake: list[Child] = []  # at most one


class Child:
    """A process apart. what: the sessions that it is for, in words; opens: the module that it loads before it
    is asked; interpreter: the Python that it runs in ("": this one's); folders: where else modules are found.
    It runs only while it is asked; one that stays awake until another is asked, or `rest`: stopped and woken,
    its threads may all be put on one core, and a train of microseconds is over before the system has moved
    them apart. That is for what no user wrote."""

    def __init__(
        self,
        what: str,
        opens: str = "",
        stays: bool = False,
        interpreter: str = "",
        folders: Sequence[Path] = (),
    ) -> None:
        self.what = what
        self.stays = stays
        self.lost: str | None = None  # why it is there no more
        self._numbers = itertools.count(1)
        self._known: set[int] = set()  # blocks that it has
        self._lock = threading.RLock()
        self._decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {}
        self._job = ends.job_object()
        told = starting.environment(folders)
        # One that is forked has no threads of that library's before it uses it.
        alone = {"OPENBLAS_NUM_THREADS": "1"} if opens in WITHOUT_BLAS else {}
        self._process, self._end = channel.started(
            [interpreter or sys.executable, "-P", "-m", f"engine.apart.{_module()}", str(os.getpid()), opens],
            forks=None if interpreter or folders else (opens, told),
            env=told | alone,
            start_new_session=True,
        )
        if self._job is not None:
            kernel32, job = self._job
            kernel32.AssignProcessToJobObject(job, int(self._process._handle))  # type: ignore[attr-defined]

    @property
    def pid(self) -> int:
        """Waits for it where it has yet to be forked."""
        return self._process.pid

    def number(self) -> int:
        """Of a new session."""
        return next(self._numbers)

    def call(
        self,
        do: str,
        number: int,
        *arguments: Any,
        memory: Block | None = None,
        answers: type[T] | Any = None,
    ) -> Any:
        """Ask, and wait for the answer. Raises what the child raised, where it is an error of ours, else
        KernelError; CrashedError where it is gone."""
        with self._lock:
            self._alive()
            dumped, needed = arrays.dumped(arguments)
            known = arrays.SHELF.blocks
            forget = tuple(n for n in self._known if n not in known)
            new = sorted(needed - self._known)
            self._known = (self._known | needed) - set(forget)
            while len(new) > channel.FDS:
                some, new = new[: channel.FDS], new[channel.FDS :]
                self._asked(Call("note", 0, arrays.dumped(())[0], _listed(some)), some, None, None)
            about = (memory.path, memory.nbytes) if memory is not None else None
            asked = Call(do, number, dumped, _listed(new), forget, about)
            return self._asked(asked, new, memory, answers)

    def _asked(self, asked: Call, blocks: list[int], memory: Block | None, answers: Any) -> Any:
        fds = [arrays.SHELF.blocks[n].fd for n in blocks] if NAMELESS else []
        if memory is not None and NAMELESS:
            fds.append(memory.fd)
        self._wake()
        try:
            self._end.send(channel.CALL, pickle.dumps(asked), fds)
            kind, body, _ = self._end.receive()
        except channel.ChannelClosed as error:
            raise self._gone(error) from error
        self._done()
        if kind != channel.CALL:
            raise self._error(kind, body)
        if answers not in self._decoders:
            self._decoders[answers] = msgspec.msgpack.Decoder(answers)
        try:
            return self._decoders[answers].decode(body)
        except msgspec.DecodeError as error:
            raise self._gone(channel.ChannelClosed(f"what is no answer ({error})")) from error

    def train(self, number: int, count: int, ahead: int = 0) -> int:
        """Nanoseconds of passes over the first `count` slots, by our clock from asking to the answer. Of a
        process that stays awake by its own, after `ahead` untimed passes over the last slot."""
        message = TRAIN.pack(number, ahead, count, self.stays)
        with self._lock:
            self._alive()
            started = time.perf_counter_ns()
            self._wake()
            try:
                self._end.send(channel.TRAIN, message)
                kind, body, _ = self._end.receive()
                taken = time.perf_counter_ns() - started
            except channel.ChannelClosed as error:
                raise self._gone(error) from error
            self._done()
            if kind != channel.TRAIN or len(body) != (TOOK.size if self.stays else 0):
                raise self._error(kind, body)
            return min(taken, TOOK.unpack(body)[0]) if self.stays else taken

    def _wake(self) -> None:
        if self not in _awake:
            rest()
            ends.resume(self.pid)

    def _done(self) -> None:
        if not self.stays:
            ends.halt(self.pid)
        elif self not in _awake:
            _awake.append(self)

    # ------------------------------------------------------------------------------------------ how it ends

    def refuse_strangers(self) -> None:
        """Raises KernelError where a kernel has started a process, which could do its work beside the
        time. What no user wrote may (a compiler's helpers)."""
        if self.lost is None and not self.stays and ends.started_by(self.pid):
            raise KernelError(f"{self.what} started a process of its own: a kernel's work is done by `run`")

    def close(self) -> None:
        """End it, and all that it started."""
        with self._lock:
            if self.lost is None:
                self.lost = f"the process of {self.what} is closed"
                ends.kill(self.pid)
            self._process.wait()
            self._end.close()

    def _alive(self) -> None:
        if self.lost is not None:
            raise CrashedError(self.lost)

    def _gone(self, error: channel.ChannelClosed) -> KernelscopeError:
        """It is there no more, or no longer to be understood: why, in words."""
        try:
            code = self._process.wait(0.5)
            words = _ended(code)
        except subprocess.TimeoutExpired:
            words = f"said {error}" if str(error) != "the end" else "closed the way to it"
        self.lost = f"the process of {self.what} {words}"
        ends.kill(self.pid)
        self._process.wait()
        self._end.close()
        return CrashedError(self.lost)

    def _error(self, kind: int, body: bytes) -> KernelscopeError:
        if kind != channel.ERROR:
            return self._gone(channel.ChannelClosed("what was not asked"))
        try:
            told = msgspec.msgpack.decode(body, type=Error)
        except msgspec.DecodeError as error:
            return self._gone(channel.ChannelClosed(f"what is no answer ({error})"))
        known = getattr(kernels.errors, told.kind, None)
        if isinstance(known, type) and issubclass(known, KernelscopeError):
            return known(told.text)
        if told.kind == "MemoryError":
            return kernels.errors.OutOfMemoryError(f"memory did not suffice for {self.what}: {told.text}")
        return KernelError(f"{self.what} failed: {told.kind}: {told.text}")


def _module() -> str:
    """What a process apart runs: shut in where whoever started us asks for it."""
    return "confined" if confine.CONFINED in os.environ else "child"


def rest() -> None:
    """Stop what stayed awake: what is timed next has the machine to itself."""
    while _awake:
        ends.halt(_awake.pop().pid)


def _listed(numbers: list[int]) -> tuple[tuple[int, str, int], ...]:
    known = arrays.SHELF.blocks
    return tuple((n, known[n].path, known[n].nbytes) for n in numbers)


def _ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
