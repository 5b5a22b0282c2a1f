"""A process apart as its parent has it: started, asked, timed, ended."""

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
from engine.apart import arrays, channel
from engine.apart.forked import starting
from engine.apart.memory import NAMELESS, Block
from engine.apart.messages import TOOK, TRAIN, Call, Error
from engine.apart.watched import stops
from engine.apart.watched.others import Beside, end, reap
from engine.apart.watched.settings import Watched, on_one_core
from kernels import confine, ends
from kernels.errors import CrashedError, KernelError, KernelscopeError

# What opens sessions that multiply no matrices with NumPy, whose library would start a thread a core.
WITHOUT_BLAS = ("engine.apart.open_ort", "engine.apart.open_empty")

# So long a process of a user's kernel works at most after the last passes of its trains, until it is stopped:
# what it did then nobody would time, and whoever is next would find its traces. A train, or so many times
# what others work there, if that is more; of what was timed; and once, for what any process of Python's does
# now and then. The longest does not count: a machine that is taken away for a while is no kernel's doing. By
# the clock or by its processors' time, whichever is less: who spins in many threads does nothing, nor does
# who waits for a core. docs/trust.md says where these are from.
AFTER_NS, AFTER_OTHERS, AFTER_SHARE, AFTER_ONCE_NS = 100_000, 3, 0.02, 10_000_000
LOOK_S = 0.05  # so often it is asked whether a process has stopped that is to answer

_awake: list[Child] = []  # at most one
_others: dict[int, After] = {}  # of those that run nothing of a user's, by threads
_all: weakref.WeakSet[Child] = weakref.WeakSet()
_watched: tuple[Child, Watched] | None = None  # who runs what a user may have written


class After:
    """What was worked after the last passes of trains, in nanoseconds."""

    def __init__(self) -> None:
        self._ns = self._longest_ns = self._timed_ns = self._trains = 0

    def add(self, ns: int, timed_ns: int) -> None:
        """Of a train whose passes took timed_ns."""
        self._ns, self._timed_ns, self._trains = self._ns + ns, self._timed_ns + timed_ns, self._trains + 1
        self._longest_ns = max(ns, self._longest_ns)

    @property
    def mean_ns(self) -> float:
        return self._ns / max(1, self._trains)

    def too_long(self, others: After) -> str:
        """In words, if it is more than others explain."""
        each = max(AFTER_NS, AFTER_OTHERS * others.mean_ns)
        most = AFTER_ONCE_NS + each * self._trains + AFTER_SHARE * self._timed_ns
        if self._ns - self._longest_ns <= most:
            return ""
        trains = f"{self._trains} train{'s' if self._trains > 1 else ''} of {self._timed_ns / 1e6:.0f} ms"
        return f"worked for {self._ns / 1e6:.0f} ms after its timed passes, in {trains}"


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
        self.spoilt = ""  # what it did to others: then nothing more is timed of it
        self.undone: tuple[str, ...] = ()  # what of its own it changed
        self.users = self.ended = False  # whether it runs what a user wrote; whether it ended while stopped,
        self.ended_by: Child | None = None  # and whose turn it was then, where that may have been its doing
        self._after = After()
        self._answered = False  # it limits itself before it does
        self._numbers = itertools.count(1)
        self._known: set[int] = set()  # blocks that it has
        self._lock = threading.RLock()
        self._decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {}
        self._beside = Beside(_known)
        self._job = ends.job_object()
        ends.keep_orphans()
        confine.unseen()  # the inputs of passes to come lie in this process
        told = starting.environment(folders)
        # One that is forked has as many.
        alone = starting.ONE_THREAD if opens in WITHOUT_BLAS or not stays else {}
        self._process, self._end = channel.started(
            [interpreter or sys.executable, "-P", "-m", f"engine.apart.{_module()}", str(os.getpid()), opens],
            forks=None if interpreter or folders else (opens, told),
            env=told | alone,
            start_new_session=True,
        )
        _all.add(self)
        if self._job is not None:
            self._job[0].AssignProcessToJobObject(self._job[1], int(self._process._handle))  # type: ignore[attr-defined]

    @property
    def pid(self) -> int:
        """Waits for it where it has yet to be forked."""
        return self._process.pid

    @property
    def unkept(self) -> str:
        """See confine.unkept; of what no user wrote nothing is said."""
        return confine.unkept(self.pid) if self.users and self.lost is None else ""

    def number(self) -> int:
        """Of a new session."""
        return next(self._numbers)

    def call(
        self,
        do: str,
        number: int,
        *arguments: Any,
        memory: Block | None = None,
        answers: Any = None,
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
                self._asked(Call("note", 0, arrays.dumped(())[0], arrays.listed(some)), some, None, None)
            about = (memory.path, memory.nbytes) if memory is not None else None
            asked = Call(do, number, dumped, arrays.listed(new), forget, about)
            return self._asked(asked, new, memory, answers)

    def _asked(self, asked: Call, blocks: list[int], memory: Block | None, answers: Any) -> Any:
        fds = [arrays.SHELF.blocks[n].fd for n in blocks] if NAMELESS else []
        if memory is not None and NAMELESS:
            fds.append(memory.fd)
        self._wake()
        try:
            self._end.send(channel.CALL, pickle.dumps(asked), fds)
            kind, body, _ = self._received()
        except channel.ChannelClosed as error:
            raise self._gone(error) from error
        self._done()
        self._answered = True
        if kind != channel.CALL:
            raise self._error(kind, body)
        if asked.do != "close":
            self._unspoilt()
        if answers not in self._decoders:
            self._decoders[answers] = msgspec.msgpack.Decoder(answers)
        try:
            return self._decoders[answers].decode(body)
        except msgspec.DecodeError as error:
            raise self._gone(channel.ChannelClosed(f"what is no answer ({error})")) from error

    def train(
        self, number: int, count: int, ahead: int = 0, one_core: bool = False, each: int = 0
    ) -> list[float]:
        """Of a process that stays awake: nanoseconds of passes over the first `count` slots by its own clock,
        of each `each` of them in a row (0: of all), after `ahead` untimed passes over the last slot.
        one_core: as of `passes`."""
        each = each or count
        with self._lock, on_one_core(self.pid) if one_core else contextlib.nullcontext():
            self._alive()
            started = time.perf_counter_ns()
            self._wake()
            try:
                self._end.send(channel.TRAIN, TRAIN.pack(number, ahead, count, each, True, False))
                kind, body, _ = self._end.receive()
                taken = time.perf_counter_ns() - started
            except channel.ChannelClosed as error:
                raise self._gone(error) from error
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
        """Of any other: nanoseconds of each of `count` passes by our clock, from having the process go on to
        its having stopped. untimed: how many go before. before, after: called with the number of a pass
        (from 0) before it begins and after its end, while the process is stopped. one_core: what it runs in
        one thread is to run where ours does; cores: else, how many threads it was told to take.

        Where a process cannot be seen to have stopped (ends.STOPS_ITSELF), a pass begins and ends with a
        message, and the process is not stopped in between.
        """
        with self._lock:
            self._alive()
            self._unspoilt()
            self._wake()
            try:
                self._end.send(
                    channel.TRAIN, TRAIN.pack(number, untimed, count, count, False, ends.STOPS_ITSELF)
                )
                if ends.STOPS_ITSELF:
                    taken = self._stopping(count, before, after, one_core, cores)
                    over, worked = time.perf_counter_ns(), ends.worked_ns(self.pid)
                    ends.resume(self.pid)
                    kind, body, _ = self._received()
                else:
                    taken, over, worked = self._asking(count, before, after), 0, 0
                    kind, body, _ = self._received()
            except (channel.ChannelClosed, ChildProcessError) as error:
                raise self._gone(error) from error
            except KernelscopeError:
                raise  # it has said why, and is stopped
            except BaseException:  # of ours, in the middle of a train that it still runs
                self.close()
                raise
            self._done()
            if kind != channel.TRAIN or body:
                raise self._error(kind, body)
            self._alone(ends.children(self.pid))
            if over:
                worked = min(ends.worked_ns(self.pid) - worked, time.perf_counter_ns() - over)
                others = _others.setdefault(1 if one_core else cores, After())
                (self._after if self.users else others).add(worked, sum(taken))
                if told := self._after.too_long(others):
                    self.spoilt = f"{self.what} {told}"
            self._unspoilt()
            return taken

    def _stopping(
        self,
        count: int,
        before: Callable[[int], None],
        after: Callable[[int], None],
        one_core: bool,
        cores: int,
    ) -> list[int]:
        about = self.pid, self._end.fd, self._silent
        taken, told = stops.timed(*about, count, before, after, one_core, cores)
        if told:
            self.spoilt = f"{self.what} {told}"
        return taken

    def _silent(self) -> None:
        """It has stopped: raises what it has said, where it was to run a pass and stop."""
        if self._end.waits():
            raise self._error(*self._end.receive(wait=False)[:2])

    def _asking(self, count: int, before: Callable[[int], None], after: Callable[[int], None]) -> list[int]:
        """Each pass begins and ends with a message."""
        taken: list[int] = []
        self._said(channel.PASS)
        for k in range(count):
            before(k)
            started = time.perf_counter_ns()
            self._end.send(channel.PASS)
            self._said(channel.PASS)
            taken.append(time.perf_counter_ns() - started)
            after(k)
        self._end.send(channel.PASS)
        return taken

    def _said(self, wanted: int) -> None:
        kind, body, _ = self._end.receive()
        if kind != wanted or body:
            raise self._error(kind, body)

    def _received(self) -> tuple[int, bytes, list[int]]:
        """Its answer. A process that stops instead, whatever made it, never gives one."""
        if not self.stays and ends.STOPS_ITSELF:
            while not self._end.waits(LOOK_S):
                if ends.has_stopped(self.pid):
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
        self._alive()
        ends.resume(self.pid)

    def _done(self) -> None:
        if self.stays:
            if self not in _awake:
                _awake.append(self)
            return
        ends.halt(self.pid)
        if _watched and _watched[0] is self and _watched[1].put_back():
            self.spoilt = f"{self.what} changed the limits of its judge: a kernel leaves others alone"
        self._alone(self._beside.strangers())

    def _alone(self, strangers: set[int]) -> None:
        """It has started these, which are ended."""
        if strangers:
            end(strangers)
            self.spoilt = f"{self.what} started a process of its own: a kernel's work is done by `run`"

    # ------------------------------------------------------------------------------- what it did to others

    def _watch(self) -> None:
        """From now on it is this one that changes what others are set to."""
        global _watched
        if _watched is not None and _watched[0] is self:
            return
        unwatch()
        others = [(os.getpid(), "the process that judges it")]
        others += [(c.pid, f"the process of {c.what}") for c in _living() if c is not self and c._answered]
        _watched = self, Watched(others, self.pid)

    def ended_meanwhile(self, turn: Child | None, dying: bool = True) -> bool:
        """Whether this one, which is stopped while others run, has ended: it is lost then. turn: whose turn
        it was, where that one is not ours alone; dying: wait for one that is about to end."""
        if self.lost is not None or not starting.settled(self._process):
            return False
        if not ends.ending(self.pid, "T" if self._answered else "S", dying):
            return False
        self.lost = f"the process of {self.what} {ends.words(self._process.wait())} while it was stopped"
        self.ended, self.ended_by = True, turn
        self._end.close()
        return True

    def look(self) -> None:
        """Undo what it has done to others, and end what it has started. Raises KernelError where it has. What
        no user wrote may start what it likes (a compiler's helpers)."""
        if self.lost is None and not self.stays:
            if _watched is not None and _watched[0] is self:
                _looked(*_watched)
            self._alone(ends.children(self.pid))
        self._unspoilt()

    def _unspoilt(self) -> None:
        if self.spoilt:
            raise KernelError(self.spoilt)

    # ------------------------------------------------------------------------------------------ how it ends

    def close(self) -> None:
        """End it, and all that it started."""
        with self._lock:
            started: set[int] = set()
            if self.lost is None:
                self.lost = f"the process of {self.what} is closed"
                started = ends.kill(self.pid)
            self._process.wait()
            reap(started)
            self._end.close()

    def _alive(self) -> None:
        if self.lost is not None:
            raise CrashedError(self.lost)

    def _gone(self, error: channel.ChannelClosed | ChildProcessError) -> KernelscopeError:
        """It is there no more, or no longer to be understood: why, in words."""
        try:
            code = self._process.wait(0.5)
            words = ends.words(code)
        except subprocess.TimeoutExpired:
            words = f"said {error}" if str(error) != "the end" else "closed the way to it"
            if isinstance(error, ChildProcessError):
                words = "is no child of ours any more"
        self.lost = f"the process of {self.what} {words}"
        started = ends.kill(self.pid)
        self._process.wait()
        reap(started)
        if not self.stays:
            end(self._beside.strangers())
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
    """Stop what stayed awake, and undo what whoever ran last has done to others: what is timed next has the
    machine to itself, as it was."""
    _halt_awake()
    unwatch()


def _halt_awake() -> None:
    while _awake:
        ends.halt(_awake.pop().pid)


def unwatch() -> None:
    """What whoever ran last has changed of others is undone; from now on changes are not its."""
    global _watched
    if _watched is not None:
        last, _watched = _watched, None
        _looked(*last)


def _looked(child: Child, settings: Watched) -> None:
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
    """Our processes, but for those that others here know of (ends.OURS)."""
    return {child.pid for child in _living()} | starting.pids()
