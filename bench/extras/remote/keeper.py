"""The keeper of a worker on a machine elsewhere: it and the worker go on when the connection drops.

`python -m bench.extras.remote.keeper FOLDER` is what a connection runs there. It reads an Open on standard
input and copies between its standard streams and the session's keeper, a process of its own, which it starts
where the session is new. The two meet at a socket in the session's folder. The keeper has the worker's
standard streams. It writes what the worker says to a spool, each word with a number. A connection gets what
it has not heard yet, and then what comes.

Where nobody has listened for the lease, the worker is ended; its spool stays for KEPT_S. Where a keeper was
killed, the connection serves what the spool has, and then says that the worker has ended.

Layout of FOLDER, the place's:

    sessions/ID/   spool, socket, keeper.json, run/ (the worker's run folder), keeper.log
    blobs/         files by their SHA-256
    trees/         folders of such files, by the SHA-256 of what is in them
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.extras.remote import frames, there
from bench.extras.remote.frames import (
    BEAT_S,
    LINE_NBYTES,
    MAGIC,
    PIECE_NBYTES,
    PROTOCOL,
    Beat,
    Broken,
    Bye,
    Down,
    Ended,
    Errors,
    Frames,
    Heard,
    Input,
    Kill,
    Missing,
    Offer,
    Open,
    Opened,
    Piece,
    Put,
    Refused,
    Stop,
    Warned,
    packed,
)
from bench.results.inside import named
from bench.words.version import described
from kernels import processes
from kernels.errors import InputError, system_words

SESSIONS, BLOBS, TREES, RUN = "sessions", "blobs", "trees", "run"
SOCKET, SPOOL, ABOUT, DELIVERED = "socket", "spool", "keeper.json", "delivered"
SESSION = re.compile(r"[0-9a-f]{32}")
DIGEST = re.compile(r"[0-9a-f]{64}")
KEPT_S = 7 * 86400.0  # of what nobody fetched
DELIVERED_S = 3600.0  # of a session that was heard to its end: whoever heard it may not have written it yet
SILENT_S = 60.0  # a connection that says nothing for so long is no listener
IDLE_S = 60.0  # the lease of a worker that has no job yet
STOP_S = 9.5  # that a worker may take to stop: its supervisor gives it ten
BEGINS_S = 2.0  # that a keeper whose first connection broke may take to be there
HELD_OPEN_S = 2.0  # how long others than the worker may hold its output open
MOST_LOST = 100_000  # words that were heard and are not in the spool
MEMORY_NBYTES = 128 << 20  # of the spool, where the disk is full; then the worker has to wait
NOISE_LINES = 1000  # of a worker's that are no messages
ERRORS_NBYTES = 4 << 20  # of standard error; of more, only the end is kept
TAIL_NBYTES = 4000
MEASURED = b'{"type":"measured"'
MESSAGE = b'{"type":"'
_READ = 1 << 16
_AHEAD = 4 << 20  # bytes that wait for a connection


class Filed(frames.Frame, frozen=True):
    """In a spool: a file of the run's folder is to be sent, as it is then."""

    number: int
    name: str


class About(msgspec.Struct, frozen=True):
    """keeper.json. worker: its process; began: when that began (seconds, as psutil has it)."""

    host: str
    pid: int
    version: str
    worker: int
    began: float


# -------------------------------------------------------------------------------------------------- the spool


class Spool:
    """The words of a session, by number. What the disk does not take is kept in memory until it is heard."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._places: list[tuple[int, int] | None] = []  # offset and length in the file
        self._memory: dict[int, bytes] = {}
        self._end = 0
        self.problem = ""  # why the disk takes no more
        self._index()

    def _index(self) -> None:
        """Find what is there already; a last word that was cut off counts for nothing."""
        size = os.fstat(self._file).st_size
        while self._end + 4 <= size:
            length = int.from_bytes(os.pread(self._file, 4, self._end), "big") & 0x7FFFFFFF
            if self._end + 4 + length > size:
                break
            self._places.append((self._end, 4 + length))
            self._end += 4 + length

    def __len__(self) -> int:
        return len(self._places)

    @property
    def full(self) -> bool:
        return sum(map(len, self._memory.values())) > MEMORY_NBYTES

    @property
    def over(self) -> bool:
        """Whether the last word is that the worker has ended."""
        last = self.read(len(self) - 1) if len(self) else b""
        return any(isinstance(f, Ended) for f in Frames(Heard | Errors | Filed | Ended).feed(last))

    def append(self, frame: Heard | Errors | Filed | Ended) -> None:
        self._memory[len(self._places)] = packed(frame)
        self._places.append(None)
        self.write()

    def write(self) -> None:
        """What is in memory, in its order: whoever reads the file counts its words, so none may be left out
        before one that is there."""
        for number, data in sorted(self._memory.items()):
            written = 0
            try:
                while written < len(data):
                    written += os.pwrite(self._file, data[written:], self._end + written)
            except OSError as error:
                self.problem = system_words(error)
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, self._end)
                return
            self._places[number] = (self._end, len(data))
            self._end += len(data)
            del self._memory[number]
        self.problem = ""

    def count_on(self, have: int) -> None:
        """Who listens has heard words up to this number, some of which were in the memory of a keeper that is
        gone: what is said next has the numbers after it."""
        if have - len(self) < MOST_LOST:
            while len(self) <= have:
                self.append(Errors(len(self), b""))

    def read(self, number: int) -> bytes:
        """A packed word; b"" of one that is no more."""
        place = self._places[number]
        if place is None:
            return self._memory.get(number, b"")
        return os.pread(self._file, place[1], place[0])

    def heard(self, have: int) -> None:
        """All up to `have` need not be in memory any more."""
        if self._memory:
            self.write()
            for number in [number for number in self._memory if number <= have]:
                self._memory[number] = packed(Errors(number, b""))  # it is counted all the same


# ------------------------------------------------------------------------------------------------ the worker


class Worker:
    """The worker's process and its pipes. Raises OSError where it cannot be started."""

    def __init__(self, words: tuple[str, ...], place: Path) -> None:
        from bench.run.client import worker_environment
        from kernels.confine import KEPT

        environment = worker_environment()
        # No kernel of a user's writes to what the place keeps.
        kept = [environment.get(KEPT, ""), *(str(place / name) for name in (SESSIONS, BLOBS, TREES))]
        environment[KEPT] = os.pathsep.join(filter(None, kept))
        self.started_ns = time.perf_counter_ns()
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=place,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdin: int | None = self.process.stdin.fileno()
        self.stdout: int | None = self.process.stdout.fileno()
        self.stderr: int | None = self.process.stderr.fileno()
        os.set_blocking(self.stdin, False)
        self.pending = bytearray()  # of its job
        self.closing = False  # its input is to be closed
        self.kill_at = float("inf")
        self._ended_at = 0.0

    def write(self) -> None:
        """Give it of its job what it takes now; close its input where that is wanted."""
        if self.stdin is None:
            return
        with contextlib.suppress(BlockingIOError):
            try:
                while self.pending:
                    del self.pending[: os.write(self.stdin, self.pending[:_READ])]
            except OSError as error:
                if isinstance(error, BlockingIOError):
                    raise
                self.pending.clear()  # it has ended, which is heard by itself
        if self.closing and not self.pending:
            assert self.process.stdin is not None
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            self.stdin = None

    def stop(self) -> None:
        """See `Stop`."""
        if not self.closing:
            self.closing = True
            self.kill_at = time.monotonic() + STOP_S
            self.write()

    def kill(self) -> None:
        processes.kill(self.process.pid)

    def has_ended(self) -> bool:
        """Whether it has, with all that it said."""
        if self.process.poll() is None:
            return False
        now = time.monotonic()
        self._ended_at = self._ended_at or now
        return (self.stdout is None and self.stderr is None) or now - self._ended_at > HELD_OPEN_S


# ---------------------------------------------------------------------------------------------- the listener


class Listener:
    """A connection that listens. source, sink: its file descriptors, which are the same of a socket."""

    def __init__(self, source: int, sink: int) -> None:
        self.source, self.sink = source, sink
        self.frames = Frames(Down)
        self.out = bytearray()
        self.heard_at = time.monotonic()
        self.said_at = 0.0
        self.opened = False
        self.sent = -1  # the number of the last word that is on its way
        self.feeding: Iterator[bytes] | None = None
        self.ends = False  # once `out` is written
        for end in {source, sink}:
            os.set_blocking(end, False)

    def say(self, frame: frames.Frame) -> None:
        self.out += packed(frame)
        self.said_at = time.monotonic()

    def write(self) -> None:
        """Raises OSError where nobody reads any more."""
        with contextlib.suppress(BlockingIOError):
            while self.out:
                del self.out[: os.write(self.sink, self.out[:_READ])]


class Keeper:
    """A session. worker: None where its keeper is gone and only the spool is left."""

    def __init__(self, place: Path, session: str, lease_s: float) -> None:
        self.place, self.id = place, session
        self.folder = place / SESSIONS / session
        self.run = self.folder / RUN
        self.spool = Spool(self.folder / SPOOL)
        self.worker: Worker | None = None
        self.door: socket.socket | None = None
        self._listener: Listener | None = None
        self._lease_s = lease_s
        self._told = (self.folder / "told").exists()
        self._ended = False
        self._bye = False
        self._line = bytearray()
        self._noise = self._errors = 0
        self._tail = b""
        self._seen: dict[str, tuple[int, int]] = {}
        self._alone_since = time.monotonic()
        self._warned = ""
        self._puts: dict[str, Any] = {}

    # ---------------------------------------------------------------------------------------------- the loop

    def begin(self, words: tuple[str, ...]) -> None:
        """Start the worker. What hinders that is said as it would have."""
        self.run.mkdir(exist_ok=True)
        try:
            self.worker = worker = Worker(words, self.place)
            began = _began(worker.process.pid)
            about = About(socket.gethostname(), os.getpid(), described(), worker.process.pid, began)
            (self.folder / ABOUT).write_bytes(msgspec.json.encode(about))
        except OSError as error:
            if self.worker is not None:
                self.worker.kill()
                self.worker = None
            text = f"{words[0]} cannot be started: {system_words(error)}\n"
            self.spool.append(Errors(len(self.spool), text.encode()))
            self._end(127)

    def left(self) -> None:
        """Its keeper is gone: end the worker, if it is still there, and say that it has ended."""
        with contextlib.suppress(OSError, msgspec.DecodeError):
            about = msgspec.json.decode((self.folder / ABOUT).read_bytes(), type=About)
            if _began(about.worker) == about.began:
                processes.kill(about.worker)
        self._ended = self.spool.over
        if not self._ended:
            self._look_for_files()
            self._end(-signal.SIGKILL)

    def listen(self, source: int, sink: int) -> None:
        """Serve this connection. One that listened before is told that it is heard no more."""
        if self._listener is not None:
            self._listener.say(Refused("another program listens to this session now"))
            with contextlib.suppress(OSError):
                self._listener.write()
            self._drop()
        self._listener = Listener(source, sink)

    def serve(self) -> None:
        """Until the session is over."""
        while not self._over():
            self._turn()
        if self.worker is not None and not self._ended:
            self.worker.kill()
        if self._bye:
            with contextlib.suppress(OSError):
                (self.folder / DELIVERED).touch()

    def _over(self) -> bool:
        if self._bye:
            return self._listener is None or not self._listener.out
        if self._listener is not None:
            return False
        if self.door is None:
            return True  # it serves one connection
        return self._ended and time.monotonic() - self._alone_since > self._lease()

    def _lease(self) -> float:
        return self._lease_s if self._told else min(IDLE_S, self._lease_s)

    def _turn(self) -> None:
        worker, listener = self.worker, self._listener
        reads: list[int] = []
        writes: list[int] = []
        if self.door is not None:
            reads.append(self.door.fileno())
        if listener is not None:
            reads += [] if listener.ends else [listener.source]
            self._fill(listener)
            writes += [listener.sink] if listener.out else []
        if worker is not None and not self._ended:
            if not self.spool.full:
                reads += [end for end in (worker.stdout, worker.stderr) if end is not None]
            writes += [worker.stdin] if worker.stdin is not None and worker.pending else []
        readable, writable, _ = select.select(reads, writes, [], 0.25)
        if worker is not None and not self._ended:
            if worker.stdin in writable:
                worker.write()
            if worker.stdout in readable:
                self._hear(worker)
            if worker.stderr in readable:
                self._hear_errors(worker)
            if worker.has_ended():
                self._last_words(worker)
        if listener is not None:
            self._attend(listener, listener.source in readable, listener.sink in writable)
        if self.door is not None and self.door.fileno() in readable:
            with contextlib.suppress(OSError):
                self.listen(*[self.door.accept()[0].detach()] * 2)
        self._watch()

    def _watch(self) -> None:
        """Look at the clock."""
        now = time.monotonic()
        listener, worker = self._listener, self.worker
        if listener is not None:
            if now - listener.heard_at > SILENT_S:
                self._drop()
            elif now - listener.said_at > BEAT_S and listener.opened:
                listener.say(Beat())
        if worker is None or self._ended:
            return
        if self._listener is None and now - self._alone_since > self._lease():
            worker.stop()
        if now > worker.kill_at:
            worker.kill_at = float("inf")
            worker.kill()
        if self.spool.problem:
            self.spool.write()
        if self.spool.problem != self._warned:
            self._warned = self.spool.problem
            if listener is not None and self._warned:
                listener.say(Warned(f"its disk takes no more of what was measured: {self._warned}"))

    def _drop(self) -> None:
        """The connection is gone."""
        listener, self._listener = self._listener, None
        self._alone_since = time.monotonic()
        if listener is not None:
            for end in {listener.source, listener.sink}:
                with contextlib.suppress(OSError):
                    os.close(end)

    # -------------------------------------------------------------------------------------------- the worker

    def _hear(self, worker: Worker) -> None:
        data = _read(worker.stdout)
        if not data:
            worker.stdout = None
            return
        self._line += data
        if b"\n" in data:
            *lines, rest = self._line.split(b"\n")
            self._line = bytearray(rest)
            for line in lines:
                self._take(bytes(line))
        if len(self._line) > LINE_NBYTES:
            self._take(bytes(self._line[:_READ]))  # no message, which its supervisor says
            self._line.clear()

    def _take(self, line: bytes) -> None:
        if not line.startswith(MESSAGE):
            self._noise += 1
            if self._noise > NOISE_LINES:
                return
        if line.startswith(MEASURED):
            self._look_for_files()
        self.spool.append(Heard(len(self.spool), line))

    def _hear_errors(self, worker: Worker) -> None:
        data = _read(worker.stderr)
        if not data:
            worker.stderr = None
            return
        self._errors += len(data)
        if self._errors > ERRORS_NBYTES:
            self._tail = (self._tail + data)[-TAIL_NBYTES:]
        else:
            self.spool.append(Errors(len(self.spool), data))
        self._look_for_files()

    def _last_words(self, worker: Worker) -> None:
        if self._line.strip():
            self._take(bytes(self._line))
        if self._tail:
            self.spool.append(Errors(len(self.spool), self._tail))
        self._look_for_files()
        code = worker.process.wait()
        # What the worker left behind in its process group.
        with contextlib.suppress(OSError):
            os.killpg(worker.process.pid, signal.SIGKILL)
        self._end(code)

    def _end(self, code: int) -> None:
        self._ended = True
        self.spool.append(Ended(len(self.spool), code))

    def _look_for_files(self) -> None:
        """Files of the run's folder that are new, or others than they were."""
        for above, folders, names in os.walk(self.run):
            folders.sort()
            for name in sorted(names):
                path = Path(above, name)
                with contextlib.suppress(OSError):
                    held = path.lstat()
                    stamp = (held.st_mtime_ns, held.st_size)
                    relative = path.relative_to(self.run).as_posix()
                    whole = not name.startswith(".") and path.is_file() and not path.is_symlink()
                    if whole and self._seen.get(relative) != stamp:
                        self._seen[relative] = stamp
                        self.spool.append(Filed(len(self.spool), relative))

    # ---------------------------------------------------------------------------------------- the connection

    def _attend(self, listener: Listener, readable: bool, writable: bool) -> None:
        try:
            if writable:
                listener.write()
            if readable:
                data = os.read(listener.source, _READ)
                if not data:
                    raise BrokenPipeError
                listener.heard_at = time.monotonic()
                for frame in listener.frames.feed(data):
                    self._obey(listener, frame)
                    if self._listener is not listener:
                        return
        except BlockingIOError:
            pass
        except (OSError, Broken):
            if self._listener is listener:
                self._drop()
            return
        if listener.ends and not listener.out:
            self._drop()

    def _obey(self, listener: Listener, frame: Any) -> None:
        worker = self.worker if not self._ended else None
        try:
            match frame:
                case Open():
                    if frame.protocol != PROTOCOL:
                        raise InputError(
                            f"the session was begun by Kernelscope {described()}; {frame.version} asks for it"
                        )
                    listener.opened, listener.sent = True, frame.have
                    listener.say(
                        Opened(
                            PROTOCOL, described(), str(self.place), self._told, len(self.spool), self._ended
                        )
                    )
                case Offer(files=files):
                    listener.say(Missing(tuple(d for d in dict.fromkeys(files) if not self._has(d))))
                case Put():
                    self._put(frame)
                case Input() if not self._told:
                    self._lay(frame)
                    (self.folder / "told").touch()
                    self._told = True
                    if worker is not None:
                        worker.pending += _with_start(frame.line, worker.started_ns) + b"\n"
                        worker.write()
                case Stop() if worker is not None:
                    worker.stop()
                case Kill() if worker is not None:
                    worker.kill()
                case Bye():
                    self._bye = True
                case Beat(have=have):
                    self.spool.heard(have)
        except (InputError, OSError) as error:
            why = system_words(error) if isinstance(error, OSError) else str(error)
            listener.say(Refused(why))
            listener.ends = True

    def _fill(self, listener: Listener) -> None:
        """Put into `out` what this connection has not heard yet, as far as there is room."""
        while listener.opened and not listener.ends and len(listener.out) < _AHEAD:
            if listener.feeding is None:
                if listener.sent + 1 >= len(self.spool):
                    return
                listener.sent += 1
                listener.feeding = self._word(listener.sent)
            try:
                listener.out += next(listener.feeding)
                listener.said_at = time.monotonic()
            except StopIteration:
                listener.feeding = None

    def _word(self, number: int) -> Iterator[bytes]:
        """What is sent of a word: a file in pieces."""
        data = self.spool.read(number)
        for frame in Frames(Heard | Errors | Filed | Ended).feed(data):
            if not isinstance(frame, Filed):
                yield data
                return
            first = True
            try:
                with (self.run / frame.name).open("rb") as file:
                    piece = file.read(PIECE_NBYTES)
                    while first or piece:
                        after = file.read(PIECE_NBYTES)
                        yield packed(Piece(number, frame.name, piece, first, not after))
                        first, piece = False, after
            except OSError:  # it was there for a moment
                if not first:
                    yield packed(Piece(number, frame.name, b"", True, True))

    # -------------------------------------------------------------------------------------------- the store

    def _has(self, digest: str) -> bool:
        """Whether there is such a file; it is then needed again."""
        path = self.place / BLOBS / _digest(digest)
        with contextlib.suppress(OSError):
            os.utime(path)
            return True
        return False

    def _put(self, frame: Put) -> None:
        digest = _digest(frame.digest)
        folder = self.place / BLOBS
        folder.mkdir(mode=0o700, exist_ok=True)
        part = folder / f".{digest}.{self.id}.part"
        summed = self._puts.get(digest)
        if summed is None:
            summed = self._puts[digest] = hashlib.sha256()
            part.unlink(missing_ok=True)
        try:
            with part.open("ab") as file:
                file.write(frame.data)
            summed.update(frame.data)
            if frame.last:
                del self._puts[digest]
                if summed.hexdigest() != digest:
                    raise InputError("a file did not arrive as it was sent")
                part.replace(folder / digest)
        except (OSError, InputError):
            self._puts.pop(digest, None)
            part.unlink(missing_ok=True)
            raise

    def _lay(self, frame: Input) -> None:
        """Lay out the folders that a job names. Raises InputError for a name that leads out of them."""
        for tree, held in frame.trees.items():
            target = self.place / TREES / _digest(tree)
            if target.is_dir():
                os.utime(target)
                continue
            making = self.place / TREES / f".{tree}.{self.id}"
            shutil.rmtree(making, ignore_errors=True)
            self._lay_in(making, held)
            try:
                making.rename(target)
            except OSError:
                shutil.rmtree(making, ignore_errors=True)
                if not target.is_dir():  # else another session was quicker
                    raise
        self._lay_in(self.run, frame.files)
        for name in frame.files:
            held_now = (self.run / name).lstat()
            self._seen[name] = (held_now.st_mtime_ns, held_now.st_size)

    def _lay_in(self, folder: Path, held: dict[str, str]) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, digest in held.items():
            named(folder, name)
            path = folder / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(self.place / BLOBS / _digest(digest), path)


def _read(end: int | None) -> bytes:
    try:
        return os.read(end, _READ) if end is not None else b""
    except OSError:
        return b""


def _digest(text: str) -> str:
    """Raises InputError for what is no SHA-256."""
    if not DIGEST.fullmatch(text):
        raise InputError(f"{text[:80]!r} is no SHA-256 of a file")
    return text


def _began(pid: int) -> float:
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return 0.0


def _with_start(line: bytes, started_ns: int) -> bytes:
    """A job with the time at which its worker was started, by the clock of this machine."""
    try:
        start = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return line  # the worker says what it is
    if isinstance(start, dict) and start.get("started_ns"):
        start["started_ns"] = started_ns
        return msgspec.json.encode(start)
    return line


# ---------------------------------------------------------------------------------------------- a connection


def attach(place: Path, source: int, sink: int) -> None:
    """Serve one connection: begin its session where that is new, and let it speak with its keeper."""
    os.umask(0o077)
    _write(sink, MAGIC)
    unpacked = Frames(Down)
    asked: Open | None = None
    while asked is None:
        data = os.read(source, _READ)
        if not data:
            return
        for frame in unpacked.feed(data):
            if not isinstance(frame, Open):
                return
            asked = frame
    refusal = _session(place, asked)
    if refusal:
        _write(sink, packed(refusal))
        return
    folder = place / SESSIONS / asked.session
    os.chdir(folder)  # a socket's name may be short only
    line = _reached_keeper(BEGINS_S if asked.words else 0.0)
    if line is None:
        _serve_left(place, asked, source, sink)
        return
    line.sendall(packed(asked) + unpacked.rest)
    _pump(line, source, sink)


def _reached_keeper(wait_s: float) -> socket.socket | None:
    """A connection to the keeper of the session that is the current folder; None where it is gone. wait_s: it
    may be about to begin."""
    until = time.monotonic() + wait_s
    while True:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(SOCKET)
        except OSError:
            line.close()
            if time.monotonic() >= until:
                return None
            time.sleep(0.05)
        else:
            return line


def _session(place: Path, asked: Open) -> Refused | None:
    """See that the session is there. Why it is not served, None if it is."""
    if asked.protocol != PROTOCOL or asked.version != described():
        return Refused(f"Kernelscope there is {described()}, and this is {asked.version}")
    if not SESSION.fullmatch(asked.session):
        return Refused("that is no name of a session")
    folder = place / SESSIONS / asked.session
    if asked.words:
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
            _begin(place, asked)
            return None
        except FileExistsError:
            pass  # its first connection did not live to hear of it
        except OSError as error:
            return Refused(f"no session can be begun in {folder}: {system_words(error)}")
    if not folder.is_dir():
        return Refused("there is no such session any more")
    with contextlib.suppress(OSError, msgspec.DecodeError):
        about = msgspec.json.decode((folder / ABOUT).read_bytes(), type=About)
        if about.host != socket.gethostname() and not Spool(folder / SPOOL).over:
            return Refused(f"the session is on {about.host}, and this is {socket.gethostname()}", again=True)
    return None


def _begin(place: Path, asked: Open) -> None:
    """Start a keeper, which lives on when the connection ends. Returns when it can be reached."""
    folder = place / SESSIONS / asked.session
    ready, done = os.pipe()
    if os.fork():
        os.close(done)
        os.read(ready, 1)
        os.close(ready)
        with contextlib.suppress(ChildProcessError):
            os.wait()
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.close(ready)
        nothing = os.open(os.devnull, os.O_RDWR)
        log = os.open(folder / "keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for end, target in ((nothing, 0), (nothing, 1), (log, 2)):
            os.dup2(end, target)
        for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        os.chdir(folder)
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(SOCKET)
            door.listen(8)
            door.setblocking(False)
            held = there.hold()  # as long as this process is, its program stays
            keeper = Keeper(place, asked.session, asked.lease_s)
            keeper.door = door
            keeper.begin(asked.words)
            os.write(done, b".")
            os.close(done)
            sweep(place)
            keeper.serve()
            if held is not None:
                held.close()
            Path(SOCKET).unlink(missing_ok=True)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(0)


def _serve_left(place: Path, asked: Open, source: int, sink: int) -> None:
    """Serve what a keeper that is gone has left."""
    keeper = Keeper(place, asked.session, asked.lease_s)
    keeper.spool.count_on(asked.have)
    keeper.left()
    # Copies: what serves a connection closes both ends of it.
    keeper.listen(os.dup(source), os.dup(sink))
    listener = keeper._listener
    assert listener is not None
    listener.opened = True
    keeper._obey(listener, asked)
    keeper.serve()


def _pump(line: socket.socket, source: int, sink: int) -> None:
    """Copy both ways until one end is gone."""

    def inwards() -> None:
        with contextlib.suppress(OSError):
            while data := os.read(source, _READ):
                line.sendall(data)
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=inwards, daemon=True).start()
    with contextlib.suppress(OSError):
        while data := line.recv(_READ):
            _write(sink, data)


def _write(sink: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]


def sweep(place: Path) -> None:
    """Remove what nobody needs any more: sessions that were heard to their end, and all that nobody asked for
    in KEPT_S."""
    now = time.time()
    for folder in _entries(place / SESSIONS):
        with contextlib.suppress(OSError):
            held = folder / SPOOL
            newest = (held if held.exists() else folder).stat().st_mtime
            delivered = folder / DELIVERED
            over = delivered.exists() and now - delivered.stat().st_mtime > DELIVERED_S
            if over or (now - newest > KEPT_S and not _reached(folder)):
                shutil.rmtree(folder, ignore_errors=True)
    for store in (BLOBS, TREES):
        for path in _entries(place / store):
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > KEPT_S:
                    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _reached(folder: Path) -> bool:
    """Whether a keeper lives in this session."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        about = msgspec.json.decode((folder / ABOUT).read_bytes(), type=About)
        if about.host == socket.gethostname():
            return _began(about.worker) == about.began
    return False


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        attach(Path(sys.argv[1]), 0, 1)
    os._exit(0)
