"""Processes of the program that tests start, forked from one that has loaded what they need: loading it is
most of what a small run costs.

`install` puts another class in the place of subprocess.Popen. One of PROGRAMS, or main.py, or a text that
says so (MARK), which would be started as this process is, is then forked from a server that this process has
started. It is its child, as if it had been started; what it is told, where it is and what it may do are what
it would have, but for the words by which other processes find it (PLAIN). All else is started as ever: what
has another environment or open files, and what is asked which modules it loads.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import pickle
import resource
import runpy
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from engine.isolated.forked import template
from engine.isolated.forked.starting import LATER, possible
from kernels import processes
from tests.standin import SITE as STANDIN
from tests.standin.settings import VARIABLE

ROOT = Path(__file__).parents[1]
MAIN = str(ROOT / "main.py")
# Modules that are run as programs of their own: workers, and whoever reads a model's file.
PROGRAMS = (
    "bench.measure.worker",
    "bench.measure.ladder.worker",
    "bench.extras.course.worker",
    "bench.questions.model_reader",
)
PLAIN = "STARTED_PLAINLY"  # a variable: with it nothing is forked, as with any that this process lacked
MARK = "# preloaded\n"  # the first line of a text given by -c that may be forked
# What a worker has loaded when it gets its job, a reader with its question, and main.py when it prints and
# draws; none of it starts a thread.
LOADED = (
    "onnx.reference", "bench.measure.answers.operators.mended", "bench.measure.answers.oracle",
    "bench.questions.ladder_plan", "bench.questions.profile_plan", "bench.questions.model_facts",
    "bench.questions.messages",
    "bench.run.confined", "bench.views.drawing.draw_ready", "bench.measure.net_runner",
    "bench.measure.environment", "bench.measure.tuned.tuning",
    "bench.measure.ladder.runner", "bench.measure.ladder.warm", "bench.measure.profile",
    "bench.commands.selfcheck", "bench.commands.compare", "bench.commands.ladder", "bench.commands.profile",
    "bench.extras.course.judging", "engine.isolated.pool", "engine.isolated.child",
    "engine.isolated.open_engine", "engine.isolated.open_empty", "engine.cpu.precompile", "main",
)  # fmt: skip
# Of the environment, what nothing reads while it loads. threadpoolctl sets the last one wherever it is
# imported: every process would differ from then on, and be started plainly.
ELSEWHERE = {"PWD", "OLDPWD", "SHLVL", "_", "PYTHONPATH", "TMPDIR", "KMP_DUPLICATE_LIB_OK"}
LIMITS = sorted({value for name, value in vars(resource).items() if name.startswith("RLIMIT_")})
MESSAGE_NBYTES = 1 << 17
PID = struct.Struct("<i")
WAIT_S = 120.0


@dataclass(frozen=True)
class Order:
    """A process is wanted: Python's words, and what it would have been started with. With it come what are to
    be its standard input, output and error."""

    words: tuple[str, ...]
    environment: dict[str, str]
    folder: str
    umask: int
    cores: frozenset[int]
    niceness: int
    limits: list[tuple[int, int]]
    session: bool


@dataclass(frozen=True)
class Server:
    """The other end of a process that forks others. owner: whose children they become."""

    end: socket.socket
    owner: int

    def ask(self, asked: Order, fds: Sequence[int]) -> int:
        """The number of the new process; 0 where none could be made."""
        data = pickle.dumps(asked)
        if len(data) > MESSAGE_NBYTES:
            return 0
        try:
            socket.send_fds(self.end, [data], list(fds))
            answer = self.end.recv(PID.size)
        except OSError:
            return 0
        return int(PID.unpack(answer)[0]) if answer else 0


# By what of the environment is loaded with.
_servers: dict[frozenset[tuple[str, str]], Server] = {}
_allowed: dict[str, Any] = {}


def install() -> None:
    """From now on, in this process and in what is forked for it."""
    if not possible():
        return
    _allowed["sites"] = _sites(os.environ)
    _allowed["rest"] = _rest(os.environ)
    subprocess.Popen = Popen  # type: ignore[misc]
    atexit.register(_close)


def _close() -> None:
    """Whoever forks for this process ends, as it would with it."""
    while _servers:
        _servers.popitem()[1].end.close()


def ready() -> None:
    """From now on threads of this process start forked ones, too: what forks ends with whoever started it."""
    if subprocess.Popen is Popen:
        _server(os.environ)


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """As it was, but where `_forkable`."""

    def _execute_child(
        self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any, env: Any,
        startupinfo: Any, creationflags: Any, shell: Any, p2cread: int, p2cwrite: int, c2pread: int,
        c2pwrite: int, errread: int, errwrite: int, restore_signals: Any, gid: Any, gids: Any, uid: Any,
        umask: Any, start_new_session: Any, process_group: Any = -1,
    ) -> None:  # fmt: skip
        special = executable or preexec_fn or pass_fds or shell or not close_fds
        plain = not special and (gid, gids, uid, umask, process_group) == (None, None, None, -1, -1)
        given = os.environ if env is None else env
        environment = {os.fsdecode(name): os.fsdecode(value) for name, value in given.items()}
        if plain and _forkable(args, environment, cwd):
            ends_ = (p2cread, c2pwrite, errwrite)
            fds = [place if fd == -1 else fd for place, fd in enumerate(ends_)]
            pid = _forked([os.fsdecode(word) for word in args[1:]], environment, cwd, start_new_session, fds)
            if pid:
                self.pid = pid
                self._child_created = True
                self._close_pipe_fds(  # type: ignore[attr-defined]
                    p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite
                )
                return
        super()._execute_child(  # type: ignore[misc]
            args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
            p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, restore_signals, gid, gids, uid, umask,
            start_new_session, process_group,
        )  # fmt: skip


def _forked(
    words: Sequence[str], environment: dict[str, str], cwd: Any, session: bool, fds: Sequence[int]
) -> int:
    """Its number; 0 where it cannot be forked."""
    try:
        asked = order(words, environment, os.path.abspath(os.fsdecode(cwd or os.getcwd())), session)
    except OSError:  # no folder is there to be in
        return 0
    server = _server(environment)
    return server.ask(asked, fds) if server is not None and os.path.isdir(asked.folder) else 0


def order(words: Sequence[str], environment: dict[str, str], folder: str, session: bool) -> Order:
    """For a process that may do what this one may."""
    return Order(
        tuple(words),
        environment,
        folder,
        _umask(),
        frozenset(os.sched_getaffinity(0)),
        os.getpriority(os.PRIO_PROCESS, 0),
        _limits(),
        session,
    )


def _forkable(args: Any, environment: Mapping[str, str], cwd: Any) -> bool:
    if isinstance(args, (str, bytes)) or len(args) < 2 or args[0] != sys.executable:
        return False
    words = [os.fsdecode(word) for word in args[1:]]
    module = words[1:] if words[0] == "-P" else words  # who loads nothing of the current folder
    known = (
        _is_main(words[0], cwd)
        or (module[:1] == ["-m"] and module[1:2] and module[1] in PROGRAMS)
        or (words[0] == "-c" and len(words) > 1 and words[1].startswith(MARK))
    )
    return (
        known
        and like_ours(environment, but={str(STANDIN)})
        and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    )


def like_ours(environment: Mapping[str, str], but: Set[str] = frozenset()) -> bool:
    """Whether it differs from that of the tests in nothing that is read while modules load, but for these
    folders on Python's path."""
    return _rest(environment) == _allowed["rest"] and _sites(environment) - but == _allowed["sites"] - but


def _is_main(word: str, cwd: Any) -> bool:
    """Whether a file, as it is named in a folder, is main.py of this tree."""
    try:
        return (
            word.endswith("main.py") and os.path.abspath(os.path.join(os.fsdecode(cwd or ""), word)) == MAIN
        )
    except OSError:  # no folder is there to be in
        return False


def _sites(environment: Mapping[str, str]) -> frozenset[str]:
    """Folders on Python's path, but for ours: what they change as modules are loaded is in them."""
    return frozenset(filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))) - {str(ROOT)}


def _rest(environment: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (name, value)
        for name, value in environment.items()
        if name == VARIABLE or (name not in ELSEWHERE and not name.startswith((*LATER, "QT_")))
    )


def _limits() -> list[tuple[int, int]]:
    return [resource.getrlimit(limit) for limit in LIMITS]


def _umask() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("Umask:")).split()[1], 8)


# ------------------------------------------------------------------------------------------------ the server


def _server(environment: Mapping[str, str]) -> Server | None:
    key = frozenset((site, "") for site in _sites(environment))
    found = _servers.get(key)
    if found is None or found.owner != os.getpid():
        # It ends with the thread that starts it, and loads for longer than what a program of its own starts.
        if threading.current_thread() is not threading.main_thread() or "program" in _allowed:
            return None
        found = _servers[key] = _started(environment)
    return found


def _started(environment: Mapping[str, str]) -> Server:
    """One that has loaded all anew."""
    processes.keep_orphans()  # what it forks is ours
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        paths = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
        words = [sys.executable, "-P", "-c", f"import {__name__} as it; it.main()", str(os.getpid())]
        process = subprocess.Popen(
            words, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, env={**environment, "PYTHONPATH": paths}
        )
    process.returncode = 0  # nobody waits for it: it ends with this process
    ours.settimeout(WAIT_S)
    return Server(ours, os.getpid())


def _forked_here() -> None:
    """One that is forked from this process, which has one thread and has loaded all."""
    processes.keep_orphans()
    parent = os.getpid()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1):
            os.dup2(null, fd)
        processes.die_with_parent(parent)
        serve(theirs)
    theirs.close()
    ours.settimeout(WAIT_S)
    _servers.clear()
    _servers[frozenset((site, "") for site in _sites(os.environ))] = Server(ours, parent)


def serve(control: socket.socket) -> NoReturn:
    """Until the other end is gone; what is forked never comes back from here either."""
    while True:
        try:
            data, fds, _, _ = socket.recv_fds(control, MESSAGE_NBYTES, 3)
        except ConnectionError:
            os._exit(0)
        if not data:
            os._exit(0)
        asked: Order = pickle.loads(data)  # the tests', who are trusted
        pid = _twice_forked(control, fds) if template.one_thread() and len(fds) == 3 else 0
        if pid is None:
            become(asked, fds)
        for fd in fds:
            os.close(fd)
        control.send(PID.pack(pid))


def _twice_forked(control: socket.socket, fds: Sequence[int]) -> int | None:
    """The number of a new process, whose parent is that of this one; None in the new process."""
    reads, writes = os.pipe()
    between = os.fork()
    if between == 0:
        here = os.getpid()
        pid = os.fork()
        if pid:
            os.write(writes, PID.pack(pid))
            os._exit(0)
        for fd in (reads, writes):
            os.close(fd)
        control.close()
        while os.getppid() == here:
            time.sleep(0.0001)
        return None
    os.close(writes)
    told = os.read(reads, PID.size)
    os.close(reads)
    os.waitpid(between, 0)
    return int(PID.unpack(told)[0]) if told else 0


def become(order: Order, fds: Sequence[int]) -> NoReturn:
    """In a new process: run what was asked for, and end."""
    if order.session:
        os.setsid()
    for place, fd in enumerate(fds):
        os.dup2(fd, place)
    for fd in fds:
        if fd > 2:
            os.close(fd)
    os.umask(order.umask)
    os.chdir(order.folder)
    os.sched_setaffinity(0, order.cores)
    os.nice(max(0, order.niceness - os.getpriority(os.PRIO_PROCESS, 0)))
    for limit, before, wanted in zip(LIMITS, _limits(), order.limits, strict=True):
        if before != wanted:
            resource.setrlimit(limit, wanted)
    paths = set(_paths())
    kept = [path for path in sys.path if path not in paths]
    os.environ.clear()
    os.environ.update(order.environment)
    tempfile.tempdir = None  # which may have been asked for
    sys.path[:] = [*_paths(), *kept]
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # What they were opened for could be gone back in.
        before = getattr(sys, name)
        stream = open(  # noqa: SIM115 (it stays open)
            before.fileno(), mode, encoding=before.encoding, errors=before.errors, closefd=False
        )
        stream.reconfigure(line_buffering=name == "stderr" or stream.isatty())
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if "numpy.random" in sys.modules:  # Python's own draws anew by itself
        sys.modules["numpy.random"].seed()
    status = 0
    try:
        _main(list(order.words))
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        status = ended.code or 0
    _end(status)


def _end(status: int) -> NoReturn:
    """As Python ends a program, but that what it has loaded is not taken apart: that alone would write to all
    the pages which it shares with whoever it was forked from, most of what a small program costs."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError):
        sys.exit(status)  # Python has its own words for that
    os._exit(status & 0xFF)


def _paths() -> list[str]:
    return list(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))


def _main(words: list[str]) -> None:
    if safe := words[0] == "-P":
        words = words[1:]
    if words[0] == "-m":
        _allowed["program"] = words[1]
        if not safe:
            sys.path.insert(0, os.getcwd())
        sys.argv = ["-m", *words[2:]]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    _forked_here()  # it may start workers
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    if words[0] == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), vars(main))
        return
    sys.path.insert(0, str(Path(words[0]).parent))
    sys.argv = words
    vars(main).update(__file__=words[0])
    exec(compile(Path(words[0]).read_bytes(), words[0], "exec"), vars(main))


def main() -> NoReturn:
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    processes.die_with_parent(int(sys.argv[1]))
    for name in LOADED:
        with contextlib.suppress(Exception):  # told where it is needed
            importlib.import_module(name)
    with contextlib.suppress(Exception):
        sys.modules["engine.backends"].all_backends()  # which reads every kernel's header
        sys.modules["models.datasets"].load("digits")  # which are kept
    os.environ["PYTHONPATH"] = os.environ["PYTHONPATH"].removeprefix(str(ROOT) + os.pathsep)
    install()
    gc.collect()
    gc.freeze()
    serve(control)
