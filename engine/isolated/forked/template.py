"""The process that isolated processes are forked from: it has loaded what all of them need, runs no kernel,
and has one thread, which is looked at before each fork. What a kernel does in its own process no other one
sees.

`python -m engine.isolated.forked.template PARENT` serves on its standard input until the other end is gone;
it ends with its parent, as does what it forked."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import socket
import struct
import sys
import time
import traceback
from typing import NoReturn

from engine.isolated.forked.request import MESSAGE_NBYTES, Fork
from kernels import confine, processes

READY = (
    "engine.isolated.child",
    "engine.isolated.open_engine",
    "engine.isolated.open_empty",
    "threadpoolctl",
)
LATER = ("llvmlite.binding",)  # which a worker has no use for
# What sessions are opened by, of the program's own; another's may start threads, or keep what it was told.
OURS = "engine.isolated.open_"
PID = struct.Struct("<i")  # the answer


def main() -> int:
    return serve(socket.socket(fileno=os.dup(0)), int(sys.argv[1]))


def load() -> None:
    """What a worker needs as well."""
    for name in READY:
        _load(name)


def serve(control: socket.socket, parent: int) -> int:
    """Until the other end is gone. Returns the exit status."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)
    os.close(null)
    processes.die_with_parent(parent)
    processes.unlimited()
    confine.hide_memory()
    load()
    for name in LATER:
        _load(name)
    while True:
        try:
            data, fds, _, _ = socket.recv_fds(control, MESSAGE_NBYTES, 2)
        except ConnectionError:
            return 0
        if not data:
            return 0
        request: Fork = pickle.loads(data)  # the parent's, who is trusted
        answer = _forked(request, fds, control, parent)
        for fd in fds:
            os.close(fd)
        control.send(PID.pack(answer))


def _load(name: str) -> None:
    with contextlib.suppress(Exception):  # told where a session is opened
        importlib.import_module(name)


def _forked(asked: Fork, fds: list[int], control: socket.socket, parent: int) -> int:
    """The number of a new process, which is the parent's child and none of ours: what it does to who started
    it, or one of its like that ends, is as if the parent had started it. 0 where none can be forked."""
    if asked.opens.startswith(OURS):
        _load(asked.opens)
    if len(fds) != 2 or not one_thread():
        return 0
    gc.collect()
    gc.freeze()  # no search for garbage writes to the pages that all share
    reads, writes = os.pipe()
    try:
        between = os.fork()
        if between == 0:
            _between(asked, [*fds, reads, writes, control.detach()], parent)
        os.close(writes)
        pid_bytes = os.read(reads, PID.size)
        os.waitpid(between, 0)
    except OSError:
        return 0
    finally:
        os.close(reads)
    return int(PID.unpack(pid_bytes)[0]) if pid_bytes else 0


def _between(asked: Fork, fds: list[int], parent: int) -> NoReturn:
    """In a process that forks the one wanted, and ends: whoever it leaves an orphan is the parent's, who
    takes them."""
    try:
        here = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become(asked, fds, here, parent)
        os.write(fds[3], PID.pack(pid))
    finally:
        os._exit(0)


def all_threads() -> None:
    """In a worker, after it was forked from: NumPy's library takes as many threads as there are cores."""
    import threadpoolctl

    threadpoolctl.ThreadpoolController().limit(limits=len(os.sched_getaffinity(0)), user_api="blas")


def one_thread() -> bool:
    """Whether this process has no other thread. NumPy's library has some from its import on, and ends them
    before a fork."""
    if _threads() > 1:
        with contextlib.suppress(OSError):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
    return _threads() == 1


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _become(asked: Fork, fds: list[int], between: int, parent: int) -> NoReturn:
    """In the new process: nothing of the template's is left but what it has loaded."""
    status = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_WRONLY)
        for fd, place in ((fds[0], 0), (null, 1), (fds[1], 2)):
            os.dup2(fd, place)
        for fd in {*fds, null}:
            os.close(fd)
        while os.getppid() == between:
            time.sleep(0.0001)
        processes.die_with_parent(parent)
        os.umask(asked.umask)
        os.chdir(asked.folder)
        if os.sched_getaffinity(0) != asked.cores:
            os.sched_setaffinity(0, asked.cores)
        os.nice(max(0, asked.niceness - os.getpriority(os.PRIO_PROCESS, 0)))
        os.environ.clear()
        os.environ.update(asked.environment)
        if "numpy.random" in sys.modules:  # Python's own draws anew by itself
            sys.modules["numpy.random"].seed()
        child = importlib.import_module("engine.isolated.child")
        sys.modules["__main__"] = child
        sys.argv = [child.__file__ or "", str(parent), asked.opens]
        status = child.main()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)  # a kernel's threads keep nobody waiting


if __name__ == "__main__":
    os._exit(main())
