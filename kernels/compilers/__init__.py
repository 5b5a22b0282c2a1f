"""Processes that compile rungs in parallel.

Threads of NVRTC in one process hinder each other: they share one memory map, and each page that one of them
gives back interrupts the processors of all others. On the host of an H100, 133 kernels took sixteen threads
6.0 s and 78 s of CPU time; one thread takes 26 s on another machine.
"""

from __future__ import annotations

import atexit
import contextlib
import copyreg
import io
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from kernels import processes, registry
from kernels.environment import for_children
from kernels.errors import KernelscopeError

Define = int | float | str | bool
Item = tuple[registry.Rung, Mapping[str, Define]]
Compile = Callable[[registry.Rung, str, Mapping[str, Define]], object]
Name = tuple[Path, str]
LENGTH = struct.Struct("<I")  # of an Answer
_MOST_NBYTES = 256 << 20
_WAIT_S = 180.0


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What became of a stranger's file. error: why it was not compiled."""

    cubin: bytes = b""
    ptx: str = ""
    log: str = ""
    error: str = ""


_of_strangers: list[_Processes] = []
_one_at_a_time = threading.Lock()


def of_a_stranger(
    rung: registry.Rung, arch: str, options: Sequence[str], included: Mapping[str, str]
) -> Answer:
    """As kernels.nvrtc.compiled, in a process that is shut in (kernels.confine.shut_in)."""
    with _one_at_a_time:
        if not _of_strangers:
            _of_strangers.append(_Processes())
            atexit.register(end_of_strangers)
        return _of_strangers[0].answered((rung, arch, list(options), dict(included)))


def end_of_strangers() -> None:
    """End the processes of `of_a_stranger`."""
    while _of_strangers:
        _of_strangers.pop().close()


class InParallel:
    """Rungs being compiled, in this order and `count` at a time, while whoever asked goes on. `with` it for
    as long as it may go: its end is the end of what is not compiled by then.

    apart: in processes; else in threads, which is as fast for few rungs. A rung that does not compile is
    skipped."""

    def __init__(
        self, compile_rung: Compile, items: Sequence[Item], arch: str, count: int, apart: bool
    ) -> None:
        self._workers = _Processes() if apart and items else None
        compile_one = self._workers.compile if self._workers else compile_rung
        self._pool = ThreadPoolExecutor(max_workers=max(1, min(count, len(items))))
        self._begun = [self._pool.submit(compile_one, rung, arch, defines) for rung, defines in items]
        self._of: dict[Name, list[Future[object]]] = {}
        for (rung, _), begun in zip(items, self._begun, strict=True):
            self._of.setdefault(_name(rung), []).append(begun)

    def __enter__(self) -> InParallel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def rungs(self) -> tuple[int, int]:
        """How many rungs are compiled for all that is wanted of them, and how many there are."""
        done = sum(all(each.done() for each in of_it) for of_it in self._of.values())
        return done, len(self._of)

    def compiles(self, rung: registry.Rung | None = None) -> bool:
        """Whether something of this rung (None: of any) is not compiled yet."""
        return not all(each.done() for each in self._wanted(rung))

    def wait(self, told: Callable[[int, int], None], rung: registry.Rung | None = None) -> None:
        """Until all of this rung (None: of all) is compiled. told: called with (done, total) of all items,
        when another is done; it may raise to end the work."""
        known = 0 if rung is None else sum(each.done() for each in self._begun)
        try:
            while True:
                wanted = [each for each in self._wanted(rung) if not each.done()]
                left = [each for each in self._begun if not each.done()]
                while known < len(self._begun) - len(left):  # of the last of what is wanted, too
                    known += 1
                    told(known, len(self._begun))
                if not wanted:
                    return
                wait(left, return_when=FIRST_COMPLETED)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End it; a second call does nothing."""
        if self._workers:
            self._workers.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _wanted(self, rung: registry.Rung | None) -> Sequence[Future[object]]:
        return self._begun if rung is None else self._of.get(_name(rung), ())


def _name(rung: registry.Rung) -> Name:
    """Which rung it is, whatever its defines."""
    return rung.path, rung.name


class _Processes:
    """One compiling process for each thread that asks, started when it first asks."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._lock = threading.Lock()
        self._all: list[subprocess.Popen[bytes]] = []
        self._closed = False

    def compile(self, rung: registry.Rung, arch: str, defines: Mapping[str, Define]) -> None:
        """Compile it into the cache; nothing where the process dies of it. The next one gets another."""
        self._asked((rung, arch, dict(defines)), lambda stream: stream.read(1))

    def answered(self, question: Any) -> Answer:
        """What such a process says of a stranger's file; it has _WAIT_S, and the next one gets another."""

        def read(stream: Any) -> bytes:
            head = stream.read(LENGTH.size)
            nbytes = LENGTH.unpack(head)[0] if len(head) == LENGTH.size else 0
            return bytes(stream.read(nbytes)) if 0 < nbytes <= _MOST_NBYTES else b""

        process = self._process()
        timer = threading.Timer(_WAIT_S, process.kill)
        timer.start()
        try:
            data = self._asked(question, read)
            return msgspec.msgpack.decode(data, type=Answer)
        except (msgspec.DecodeError, OSError):
            self.close()
            self._closed, self._own = False, threading.local()
            return Answer(error="the compiler ended, or took too long, and said nothing")
        finally:
            timer.cancel()

    def _process(self) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] | None = getattr(self._own, "process", None)
        return process if process is not None and process.poll() is None else self._started()

    def _asked(self, question: Any, read: Callable[[Any], bytes]) -> bytes:
        process = self._process()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pickled(question))
        process.stdin.flush()
        return read(process.stdout)

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise KernelscopeError("the compilers were ended")
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kernels.compilers.child", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=for_children(),
            )
            processes.OURS.add(process.pid)
            self._all.append(process)
        self._own.process = process
        return process

    def close(self) -> None:
        """End all of them at once."""
        with self._lock:
            self._closed = True
            for process in self._all:
                process.kill()
            for process in self._all:
                process.wait()
                processes.OURS.discard(process.pid)  # another may have the number from now on
                for pipe in (process.stdin, process.stdout):
                    assert pipe is not None
                    with contextlib.suppress(BrokenPipeError):  # what it was never asked
                        pipe.close()
            self._all = []


def pickled(value: Any) -> bytes:
    """Pickled with read-only mappings as plain dicts, because pickle does not know MappingProxyType."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer)
    pickler.dispatch_table = {**copyreg.dispatch_table, MappingProxyType: lambda of: (dict, (dict(of),))}
    pickler.dump(value)
    return buffer.getvalue()
