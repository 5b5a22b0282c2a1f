"""The parent's side of one isolated process (`Child`): start it, send it requests, time its passes, end it.

Sessions live in such processes, so that a kernel that crashes takes nothing else with it. A session has a
number in its process. There are two sorts of processes. One that stays awake (`stays`) runs code of this
program or of a library. It goes on running between requests, and times its own passes. Every other may run a
kernel that a user wrote. It is stopped except while it works on a request; the parent times its passes, and
looks for what it did to other processes.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

import kernels.errors
from engine.isolated import arrays, channel
from engine.isolated.forked import starting
from engine.isolated.memory import NAMELESS, Block
from engine.isolated.messages import TOOK, TRAIN, Call, Error
from engine.isolated.watched import stops
from engine.isolated.watched.others import Beside, end, reap
from engine.isolated.watched.settings import Watched, on_one_core
from kernels import confine, processes
from kernels.errors import CrashedError, KernelError, KernelscopeError

# What opens sessions that multiply no matrices with NumPy, whose library would start a thread a core.
WITHOUT_BLAS = ("engine.isolated.open_ort", "engine.isolated.open_empty")

# So long a process of a user's kernel works at most after the last passes of its trains, until it is stopped:
# what it did then nobody would time, and whoever is next would find its traces. A train, or so many times
# what others work there, if that is more; of what was timed; and once, for what any process of Python's does
# now and then. The longest does not count: a machine that is taken away for a while is no kernel's doing. By
# the clock or by its processors' time, whichever is less: who spins in many threads does nothing, nor does
# who waits for a core. docs/trust.md says where these are from.
AFTER_NS, AFTER_OTHERS, AFTER_SHARE, AFTER_ONCE_NS = 100_000, 3, 0.02, 10_000_000
LOOK_S = 0.05  # so often it is asked whether a process has stopped that is to answer
HALT_S = 10.0  # so long it may take to stop, where the system is at work for one of its threads
ENDS_S = 5.0  # and so long to end, once it has closed the way to us

_awake: list[Child] = []  # who stays awake now; at most one
_others: dict[int, After] = {}  # by number of threads: of processes without a user's kernel
_all: weakref.WeakSet[Child] = weakref.WeakSet()
# The last process that did not stay awake, and the settings that it may have changed.
_watched: tuple[Child, Watched] | None = None


class After:
    """How long a process went on working after the last timed pass of each train, in nanoseconds. A train
    is a row of timed passes. Nobody times this work, so a kernel could hide work there."""

    def __init__(self) -> None:
        self._ns = self._longest_ns = self._timed_ns = self._trains = 0

    def add(self, ns: int, timed_ns: int) -> None:
        """Count one more train. ns: how long the process worked after its last timed pass. timed_ns: the sum
        of its timed passes."""
        self._ns, self._timed_ns, self._trains = self._ns + ns, self._timed_ns + timed_ns, self._trains + 1
        self._longest_ns = max(ns, self._longest_ns)

    @property
    def mean_ns(self) -> float:
        """Nanoseconds of such work a train; 0 before the first train."""
        return self._ns / max(1, self._trains)

    def too_long(self, others: After) -> str:
        """A sentence for the error, where it worked longer than is allowed; else "". others: the same of
        processes without a user's kernel; what is allowed grows with their mean. The longest value of all
        trains does not count."""
        each = max(AFTER_NS, AFTER_OTHERS * others.mean_ns)
        most = AFTER_ONCE_NS + each * self._trains + AFTER_SHARE * self._timed_ns
        if self._ns - self._longest_ns <= most:
            return ""
        trains = f"{self._trains} train{'s' if self._trains > 1 else ''} of {self._timed_ns / 1e6:.0f} ms"
        return f"worked for {self._ns / 1e6:.0f} ms after its timed passes, in {trains}"


class Child:
    """An isolated process; creating the object starts it.

    what: which sessions it is for, in words, for errors. opens: the module that it imports before the first
    request ("": none). stays: it stays awake between requests, until another process gets a request or
    `rest` is called. Else it is stopped after every answer. interpreter: the path of its Python ("": the
    Python of this process). folders: more folders in which it finds modules.

    Only code that no user wrote may stay awake. It should: when a process is woken, the system may put all
    its threads on one core, and a train of microseconds is over before they are moved apart.
    """

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
        self.lost: str | None = None  # why the process has ended (None: it has not)
        self.spoilt = ""  # what it did to other processes, in words: nothing more is timed of it then
        self.undone: tuple[str, ...] = ()  # settings of its own that it changed, in words
        self.users = self.ended = False  # whether it runs what a user wrote; whether it ended while stopped,
        self.ended_by: Child | None = None  # and whose turn it was then, where that may have been its doing
        self._after = After()
        self._answered = False  # it limits itself before it does
        self._numbers = itertools.count(1)
        self._known: set[int] = set()  # blocks that it has
        self._lock = threading.RLock()
        self._decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {}
        self._beside = Beside(_known)
        self.keeps = confine.keeps()  # folders that a kernel in it may not write to
        self._job = processes.job_object()
        processes.keep_orphans()
        confine.hide_memory()  # the inputs of passes to come lie in this process
        told = starting.environment(folders)
        # One that is forked has as many.
        alone = starting.ONE_THREAD if opens in WITHOUT_BLAS or not stays else {}
        self._process, self._end = channel.started(
            [
                interpreter or sys.executable,
                "-P",
                "-m",
                "engine.isolated.child",
                str(os.getpid()),
                opens,
            ],
            forks=None if interpreter or folders else (opens, told),
            env=told | alone,
            start_new_session=True,
        )
        _all.add(self)
        if self._job is not None:
            self._job[0].AssignProcessToJobObject(self._job[1], int(self._process._handle))  # type: ignore[attr-defined]

    @property
    def pid(self) -> int:
        """Its process id. Waits until the process exists."""
        return self._process.pid

    @property
    def unkept(self) -> str:
        """What a user's kernel could still do although it is forbidden, in words (see
        confine.missing_restrictions). "" where that is nothing, and where no user's kernel runs."""
        return confine.missing_restrictions(self.pid) if self.users and self.lost is None else ""

    def number(self) -> int:
        """A number for a new session; each call gives the next one."""
        return next(self._numbers)

    def call(
        self,
        do: str,
        number: int,
        *arguments: Any,
        memory: Block | None = None,
        answers: Any = None,
    ) -> Any:
        """Send a request and wait for the answer.

        do: the name of the request; number: the session; arguments: of the request. memory: a shared block
        that the child maps, too. answers: the type of the answer (None: there is none). Returns the answer.

        Raises what the child raised, where kernels.errors has that error; OutOfMemoryError for its
        MemoryError; KernelError for any other, or where it harmed other processes; CrashedError where the
        process has ended or its answer cannot be understood.
        """
        with self._lock:
            self._check_alive()
            dumped, needed = arrays.dumped(arguments)
            known = arrays.SHELF.blocks
            forget = tuple(n for n in self._known if n not in known)
            new = sorted(needed - self._known)
            self._known = (self._known | needed) - set(forget)
            while len(new) > channel.FDS:
                some, new = new[: channel.FDS], new[channel.FDS :]
                self._ask(Call("note", 0, arrays.dumped(())[0], arrays.listed(some)), some, None, None)
            about = (memory.path, memory.nbytes) if memory is not None else None
            asked = Call(do, number, dumped, arrays.listed(new), forget, about)
            return self._ask(asked, new, memory, answers)

    def _ask(self, asked: Call, blocks: list[int], memory: Block | None, answers: Any) -> Any:
        fds = [arrays.SHELF.blocks[n].fd for n in blocks] if NAMELESS else []
        if memory is not None and NAMELESS:
            fds.append(memory.fd)
        self._wake()
        try:
            self._end.send(channel.CALL, pickle.dumps(asked), fds)
            kind, body, _ = self._received()
        except channel.ChannelClosed as error:
            raise self._crashed(error) from error
        self._done()
        self._answered = True
        if kind != channel.CALL:
            raise self._error(kind, body)
        if asked.do != "close":
            self._check_unspoilt()
        if answers not in self._decoders:
            self._decoders[answers] = msgspec.msgpack.Decoder(answers)
        try:
            return self._decoders[answers].decode(body)
        except msgspec.DecodeError as error:
            raise self._crashed(channel.ChannelClosed(f"what is no answer ({error})")) from error

    def train(
        self, number: int, count: int, ahead: int = 0, one_core: bool = False, each: int = 0
    ) -> list[float]:
        """Time `count` passes of a process that stays awake, one over each of the first `count` slots (places
        for the inputs and outputs of one pass).

        The process reads its own clock once every `each` passes (0: once, after all). Returns the nanoseconds
        of these groups: ceil(count / each) numbers. Their sum is never more than the time on the parent's
        clock. ahead: how many untimed passes go before, over the last slot. one_core: see `passes`. Raises as
        `call`.
        """
        each = each or count
        with self._lock, on_one_core(self.pid) if one_core else contextlib.nullcontext():
            self._check_alive()
            started = time.perf_counter_ns()
            self._wake()
            try:
                self._end.send(channel.TRAIN, TRAIN.pack(number, ahead, count, each, True, False))
                kind, body, _ = self._end.receive()
                taken = time.perf_counter_ns() - started
            except channel.ChannelClosed as error:
                raise self._crashed(error) from error
            self._done()
            if kind != channel.TRAIN or len(body) != TOOK.size * math.ceil(count / each):
                raise self._error(kind, body)
            parts = [ns for (ns,) in TOOK.iter_unpack(body)]
            believed = min(1.0, taken / max(1, sum(parts)))
            return [believed * ns for ns in parts]

    def passes(
        self,
        number: int,
        count: int,
        untimed: int,
        before: Callable[[int], None],
        after: Callable[[int], None],
        one_core: bool = False,
        cores: int = 1,
    ) -> list[int]:
        """Time `count` passes of a process that does not stay awake. Returns `count` times in nanoseconds.

        The parent's clock runs from where it lets the process go on until the process has stopped itself.
        untimed: how many passes go before. before(k), after(k): called before and after pass k (from 0),
        while the process is stopped. one_core: the session has one thread, which runs on the parent's core.
        cores: else, how many threads it was told to take. Raises as `call`.

        Some systems cannot tell the parent that a process has stopped (processes.STOPS_ITSELF is False).
        There a pass begins and ends with a message, and the process is not stopped in between.
        """
        with self._lock:
            self._check_alive()
            self._check_unspoilt()
            self._wake()
            try:
                self._end.send(
                    channel.TRAIN, TRAIN.pack(number, untimed, count, count, False, processes.STOPS_ITSELF)
                )
                if processes.STOPS_ITSELF:
                    taken = self._pass_by_stopping(count, before, after, one_core, cores)
                    over, worked = time.perf_counter_ns(), processes.worked_ns(self.pid)
                    processes.resume(self.pid)
                    kind, body, _ = self._received()
                else:
                    taken, over, worked = self._pass_by_messages(count, before, after), 0, 0
                    kind, body, _ = self._received()
            except (channel.ChannelClosed, ChildProcessError) as error:
                raise self._crashed(error) from error
            except KernelscopeError:
                raise  # it has said why, and is stopped
            except BaseException:  # of ours, in the middle of a train that it still runs
                self.close()
                raise
            self._done()
            if kind != channel.TRAIN or body:
                raise self._error(kind, body)
            self._end_strangers(processes.children(self.pid))
            if over:
                worked = min(processes.worked_ns(self.pid) - worked, time.perf_counter_ns() - over)
                others = _others.setdefault(1 if one_core else cores, After())
                (self._after if self.users else others).add(worked, sum(taken))
                if told := self._after.too_long(others):
                    self.spoilt = f"{self.what} {told}"
            self._check_unspoilt()
            return taken

    def _pass_by_stopping(
        self,
        count: int,
        before: Callable[[int], None],
        after: Callable[[int], None],
        one_core: bool,
        cores: int,
    ) -> list[int]:
        about = self.pid, self._end.fd, self._check_silent
        taken, told = stops.timed(*about, count, before, after, one_core, cores)
        if told:
            self.spoilt = f"{self.what} {told}"
        return taken

    def _check_silent(self) -> None:
        """Raise its error, where it sent one instead of running the pass. It has stopped."""
        if self._end.waits():
            raise self._error(*self._end.receive(wait=False)[:2])

    def _pass_by_messages(
        self, count: int, before: Callable[[int], None], after: Callable[[int], None]
    ) -> list[int]:
        """Nanoseconds of each pass, which begins and ends with a message."""
        taken: list[int] = []
        self._expect(channel.PASS)
        for k in range(count):
            before(k)
            started = time.perf_counter_ns()
            self._end.send(channel.PASS)
            self._expect(channel.PASS)
            taken.append(time.perf_counter_ns() - started)
            after(k)
        self._end.send(channel.PASS)
        return taken

    def _expect(self, wanted: int) -> None:
        kind, body, _ = self._end.receive()
        if kind != wanted or body:
            raise self._error(kind, body)

    def _received(self) -> tuple[int, bytes, list[int]]:
        """Wait for its answer. Raises ChannelClosed where it has stopped instead: it would never answer."""
        if not self.stays and processes.STOPS_ITSELF:
            while not self._end.waits(LOOK_S):
                if processes.has_stopped(self.pid):
                    raise channel.ChannelClosed("nothing, and stopped")
        return self._end.receive()

    def _wake(self) -> None:
        if self in _awake:
            return
        _halt_awake()
        if self.stays:
            unwatch()
        else:
            self._watch()
            self._beside.begin()
        if self._answered:
            self.ended_meanwhile(None, dying=False)
        self._check_alive()
        processes.resume(self.pid)

    def _done(self) -> None:
        if self.stays:
            if self not in _awake:
                _awake.append(self)
            return
        if not processes.halted(self.pid, HALT_S):
            raise self._crashed(channel.ChannelClosed(f"its answer, and did not stop within {HALT_S:g} s"))
        if _watched and _watched[0] is self and _watched[1].put_back():
            self.spoilt = f"{self.what} changed the limits of its judge: a kernel leaves others alone"
        self._end_strangers(self._beside.strangers())

    def _end_strangers(self, strangers: set[int]) -> None:
        """End these processes, which it has started; where there are any, nothing more is timed of it."""
        if strangers:
            end(strangers)
            self.spoilt = f"{self.what} started a process of its own: a kernel's work is done by `run`"

    # ------------------------------------------------------------------------------- what it did to others

    def _watch(self) -> None:
        """Begin to watch the settings of all other processes: what changes from now on is its doing."""
        global _watched
        if _watched is not None and _watched[0] is self:
            return
        unwatch()
        others = [(os.getpid(), "the process that judges it")]
        others += [(c.pid, f"the process of {c.what}") for c in _living() if c is not self and c._answered]
        _watched = self, Watched(others, self.pid)

    def ended_meanwhile(self, turn: Child | None, dying: bool = True) -> bool:
        """Whether this process has ended while it was stopped and another ran; from then on it is `lost`.
        turn: the process that ran meanwhile, where that has a user's kernel (else None): it may be to blame.
        dying: where the process is about to end, wait for its end."""
        if self.lost is not None or not starting.settled(self._process):
            return False
        if not processes.ending(self.pid, "T" if self._answered else "S", dying):
            return False
        ended = processes.exit_words(self._process.wait())
        self.lost = f"the process of {self.what}, while it was stopped, {ended}"
        self.ended, self.ended_by = True, turn
        self._end.close()
        return True

    def look(self) -> None:
        """Undo what it has changed of other processes, and end the processes that it has started. Raises
        KernelError where it did either. Does nothing to a process that stays awake: code that no user wrote
        may start others (a compiler its helpers)."""
        if self.lost is None and not self.stays:
            if _watched is not None and _watched[0] is self:
                _undo_changes(*_watched)
            self._end_strangers(processes.children(self.pid))
        self._check_unspoilt()

    def _check_unspoilt(self) -> None:
        if self.spoilt:
            raise KernelError(self.spoilt)

    # ------------------------------------------------------------------------------------------ how it ends

    def close(self) -> None:
        """End the process and all that it started. May be called twice."""
        with self._lock:
            started: set[int] = set()
            if self.lost is None:
                self.lost = f"the process of {self.what} is closed"
                started = processes.kill(self.pid)
            self._process.wait()
            reap(started)
            self._end.close()

    def _check_alive(self) -> None:
        if self.lost is not None:
            raise CrashedError(self.lost)

    def _crashed(self, error: channel.ChannelClosed | ChildProcessError) -> KernelscopeError:
        """End it, because it has ended or cannot be understood. Returns a CrashedError that says why."""
        try:
            # Who ends closes the way to us a moment before that is told; on a busy machine it may be a while.
            code = self._process.wait(ENDS_S if str(error) == "the end" else 0.5)
            words = processes.exit_words(code)
        except subprocess.TimeoutExpired:
            words = f"said {error}" if str(error) != "the end" else "closed the way to it"
            if isinstance(error, ChildProcessError):
                words = "is no child of ours any more"
        self.lost = f"the process of {self.what} {words}"
        started = processes.kill(self.pid)
        self._process.wait()
        reap(started)
        if not self.stays:
            end(self._beside.strangers())
        self._end.close()
        return CrashedError(self.lost)

    def _error(self, kind: int, body: bytes) -> KernelscopeError:
        """The error that stands in a message of the child, to be raised here."""
        if kind != channel.ERROR:
            return self._crashed(channel.ChannelClosed("what was not asked"))
        try:
            told = msgspec.msgpack.decode(body, type=Error)
        except msgspec.DecodeError as error:
            return self._crashed(channel.ChannelClosed(f"what is no answer ({error})"))
        known = getattr(kernels.errors, told.kind, None)
        if isinstance(known, type) and issubclass(known, KernelscopeError):
            return known(told.text)
        if told.kind == "MemoryError":
            return kernels.errors.OutOfMemoryError(f"memory did not suffice for {self.what}: {told.text}")
        return KernelError(f"{self.what} failed: {told.kind}: {told.text}")


def rest() -> None:
    """Stop the process that stayed awake, and call `unwatch`. What is timed next has the machine to itself,
    as it was before."""
    _halt_awake()
    unwatch()


def _halt_awake() -> None:
    while _awake:
        processes.halt(_awake.pop().pid)


def unwatch() -> None:
    """Undo what the process that ran last has changed of others, and watch it no longer. Where it changed
    something, its next request raises KernelError."""
    global _watched
    if _watched is not None:
        last, _watched = _watched, None
        _undo_changes(*last)


def _undo_changes(child: Child, settings: Watched) -> None:
    """Undo what it changed, and note in `child.spoilt` what it did to other processes."""
    changed, own = settings.changed()  # first: with limits as they were, all else can be looked at
    child.undone = tuple(dict.fromkeys((*child.undone, *own)))
    # Of another user's kernel it is not known whether it has ended itself, by a timer: see Held.
    turn = child if child.users else None
    ended = [other for other in _living() if other is not child and other.ended_meanwhile(turn)]
    gone = [f"the process of {other.what}" for other in ended if not other.users]
    done = ("changed", changed), ("ended", gone), ("ended or stopped", starting.harmed())
    told = [f"{what} {' and '.join(whose)}" for what, whose in done if whose]
    if changed or (told and child.users):
        child.spoilt = f"{child.what} {', and '.join(told)}: a kernel leaves others alone"


def _living() -> list[Child]:
    return [child for child in _all if child.lost is None]


def _known() -> set[int]:
    """The ids of all isolated processes of this parent, and of the templates that they are forked from."""
    return {child.pid for child in _living()} | starting.pids()
