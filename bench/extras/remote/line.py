"""The line to a worker on a machine elsewhere: a process that is to its supervisor what a worker is.

`python -m bench.extras.remote.line PLACE [--parts=A,B] [--files] [--fetch] -- WORKER…` reads a Start on
standard input and writes the worker's lines on standard output; the worker's standard error becomes its own,
and it ends as the worker did. Between the two is a connection (bench.extras.remote.places.command) to a
keeper (bench.extras.remote.keeper). When it drops, the line says so and tries again, in growing pauses; the
keeper then says what was not heard yet.

- Files that the job names go there first, those that are not there yet (bench.extras.remote.sending). Files
  that the worker writes into its run folder come back into ours, before the line that names them.
- The run's folder keeps the session's name (NOTE). A line that finds one of a program that is gone first
  takes what was measured meanwhile: it goes on listening where the worker still measures what is wanted.
  With --fetch that is all: the worker is ended there, and what is left is somebody else's.
- Standard input that closes ends the worker there. Where our supervisor is gone as well, or we are ended by
  SIGTERM, the worker goes on there. Where the supervisor killed us, a process that outlives us (`Guard`) has
  the worker killed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from bench.extras.remote import places
from bench.extras.remote.frames import (
    BEAT_S,
    DEAD_S,
    PIECE_NBYTES,
    PROTOCOL,
    Beat,
    Broken,
    Bye,
    Ended,
    Errors,
    Frame,
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
    Up,
    Warned,
    packed,
)
from bench.extras.remote.places import Place
from bench.extras.remote.sending import Sent, sent, swapped
from bench.results import reading
from bench.results.inside import inside
from bench.results.messages import CaseStarted, Done, Log, Message, Progress
from bench.results.records import MACHINE
from bench.results.store import ELSEWHERE_FILE as NOTE
from bench.results.store import write_atomically
from bench.run.supervisor import AWAY
from bench.words import plain
from kernels.errors import InputError, KernelscopeError, system_words

TICK_S = 0.25
AT_ONCE_NBYTES = 1 << 15  # that are sent unasked: to ask whether they are there takes as long
SAID_S = 1.0  # how often it is said that a machine does not answer, so that no time limit counts
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
FIRST_TRIES = 3
TAIL_NBYTES = 4000
QUEUED = 8  # frames, each of which may have 64 MiB
MOST_FILES = 100_000  # that come back
FILE_NBYTES = 1 << 30  # of one file that comes back
FILES_NBYTES = reading.RESULTS_NBYTES  # of all
LAST_WORDS_S = 0.2  # for what ssh says as it ends
GUARD_S = 120.0  # how long the guard tries to reach the place
BEGUN_S = 5.0  # until a session that was asked for is begun there
BYE_S = 1.0  # until a keeper has heard that nothing more is wanted
PARENT_S = 0.3  # until a supervisor that is ending is seen to be gone
MEASURED, STARTED, DONE = b'{"type":"measured"', b'{"type":"case_started"', b'{"type":"done"'


class Lost(KernelscopeError):
    """The place cannot be reached, or does not serve us; the text says why."""


class Unserved(Lost):
    """The place was reached and does not serve this session."""


class Note(msgspec.Struct, frozen=True):
    """What a run's folder knows of its session elsewhere. job: a digest of what was asked for. parent: the
    supervisor's process. done: all of it was heard by that."""

    place: str
    session: str
    job: str
    parent: int
    done: bool = False


def note_of(folder: Path) -> Note | None:
    """What a run's folder knows of its session elsewhere; None where it is not one's."""
    try:
        return reading.decoded(reading.whole(folder / NOTE, 1 << 16), Note)
    except (OSError, reading.Unreadable):
        return None


# --------------------------------------------------------------------------------------------- a connection


class Connection:
    """The process that reaches the place, and what comes through it: `take` gets each frame, and at last
    None."""

    def __init__(
        self, place: Place, take: Callable[[Connection, Any], None], have: Callable[[], int]
    ) -> None:
        words = places.program(place, "bench.extras.remote.keeper", place.folder)
        self._process = subprocess.Popen(
            places.command(place, *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self._take, self._have = take, have
        self._lock = threading.Lock()
        self._frames = Frames(Up, magic=True)
        self._errors = b""
        self._heard_at = time.monotonic()
        self._speaks = False  # it has said something
        self._last_words = threading.Event()
        self.broken = ""
        for run in (self._read, self._read_errors, self._watch):
            threading.Thread(target=run, daemon=True).start()

    def say(self, frame: Frame) -> None:
        """What cannot be said is heard of by the connection's end."""
        data = packed(frame)
        assert self._process.stdin is not None
        with self._lock, contextlib.suppress(OSError, ValueError):
            view = memoryview(data)
            while view:
                view = view[self._process.stdin.write(view) or 0 :]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._process.kill()

    @property
    def why(self) -> str:
        """Why it has ended."""
        lines = [line.strip() for line in self._errors.decode("utf-8", "replace").splitlines()]
        last = next((line for line in reversed(lines) if line), "")
        return self.broken or last or self._frames.noise or "the connection ended"

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while data := os.read(self._process.stdout.fileno(), 1 << 16):
                self._heard_at = float("inf")  # what it says may have to wait for whoever reads it
                for frame in self._frames.feed(data):
                    self._speaks = True
                    self._take(self, frame)
                self._heard_at = time.monotonic()
        except Broken as error:
            self.broken = f"what comes from there is none of a keeper's: {error}"
        except OSError:
            pass
        self.close()
        self._process.wait()
        self._process.stdout.close()
        assert self._process.stdin is not None
        with self._lock, contextlib.suppress(OSError):
            self._process.stdin.close()
        self._last_words.wait(LAST_WORDS_S)
        self._take(self, None)

    def _read_errors(self) -> None:
        """A connection that stays for later ones may hold standard error open for longer than this one."""
        assert self._process.stderr is not None
        with contextlib.suppress(OSError):
            while data := os.read(self._process.stderr.fileno(), 1 << 16):
                self._errors = (self._errors + data)[-TAIL_NBYTES:]
        self._process.stderr.close()
        self._last_words.set()

    def _watch(self) -> None:
        """Say that we are here; end a connection that says nothing any more. One that has not spoken yet may
        wait in a queue, and ssh gives up by itself."""
        while self._process.poll() is None:
            time.sleep(BEAT_S)
            if self._speaks and time.monotonic() - self._heard_at > DEAD_S:
                self.broken = f"nothing was heard from there for {DEAD_S:g} s"
                self.close()
            elif self._speaks and not self._lock.locked():
                threading.Thread(target=self.say, args=(Beat(self._have()),), daemon=True).start()


class Talk:
    """A session, over one connection after the other. words: the worker's command, where it is to be begun.
    woken: whether somebody else put something into `queue`."""

    def __init__(self, place: Place, session: str, words: tuple[str, ...] = ()) -> None:
        self.place, self.session = place, session
        self.have = -1
        self.open = False
        self.opened = False  # ever
        self.why = ""
        # Short: what comes faster than it is taken has to wait where it comes from.
        self.queue: queue.Queue[tuple[Connection | None, Any]] = queue.Queue(QUEUED)
        self._words = words
        self._connection: Connection | None = None
        self._tries = 0
        self._again_at = 0.0
        self._since = time.monotonic()

    def next(self) -> Any:
        """The next frame; None where there is none within TICK_S, or where somebody woke us. Raises Lost."""
        if self._connection is None:
            if time.monotonic() < self._again_at:
                return self._waited(min(TICK_S, self._again_at - time.monotonic()))
            self._connect()
        return self._waited(TICK_S)

    def wait(self) -> None:
        """Until somebody wakes us, without a connection; at most for TICK_S."""
        self._waited(TICK_S)

    def say(self, frame: Frame) -> None:
        if self._connection is not None and self.open:
            self._connection.say(frame)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def end(self) -> None:
        """End the worker, of which nothing is wanted any more. A connection may be on its way, and what it
        begins there can be told so only then."""
        until, told = time.monotonic() + BEGUN_S, False
        with contextlib.suppress(Lost):
            while self._connection is not None and time.monotonic() < until:
                if self.open and not told:
                    told = True
                    self.say(Kill())
                if isinstance(self.next(), Ended):
                    break
        self.bye()

    def bye(self) -> None:
        """Nothing more of it is wanted: the keeper removes what it has of it, and ends."""
        self.say(Bye())
        until = time.monotonic() + BYE_S
        with contextlib.suppress(Lost):
            while self._connection is not None and time.monotonic() < until:
                self.next()

    def _connect(self) -> None:
        try:
            connection = Connection(
                self.place, lambda connection, frame: self.queue.put((connection, frame)), lambda: self.have
            )
        except OSError as error:
            raise Lost(f"{self.place.name} cannot be reached: {system_words(error)}") from error
        words = () if self.opened else self._words
        connection.say(
            Open(PROTOCOL, places.own_version(), self.session, self.have, words, self.place.lease_s)
        )
        self._connection = connection

    def _waited(self, seconds: float) -> Any:
        try:
            connection, frame = self.queue.get(timeout=max(0.01, seconds))
        except queue.Empty:
            return None
        if connection is None or connection is not self._connection:
            return None
        if frame is None:
            self._gone(connection.why)
            return None
        match frame:
            case Refused(why=why, again=False):
                raise Unserved(self._mend(why))
            case Refused(why=why):
                connection.broken = why
                connection.close()
                return None
            case Opened():
                if frame.protocol != PROTOCOL:
                    raise Lost(self._mend(f"the session was begun by Kernelscope {frame.version}"))
                self.open = self.opened = True
                self._tries = 0
                self._since = time.monotonic()
        return frame

    def _mend(self, why: str) -> str:
        from bench.words.called import CALLED

        mend = f": `{CALLED} remote update {self.place.name}` mends it" if "Kernelscope" in why else ""
        return f"{self.place.name} does not serve this run: {why}{mend}"

    def _gone(self, why: str) -> None:
        """The connection has ended. Raises Lost where trying again is of no use."""
        self._connection, self.open, self.why = None, False, why
        self._again_at = time.monotonic() + PAUSES_S[min(self._tries, len(PAUSES_S) - 1)]
        self._tries += 1
        if not self.opened and self._tries >= FIRST_TRIES:
            raise Lost(f"{self.place.name} cannot be reached: {why}")
        if self.opened and time.monotonic() - self._since > self.place.lease_s and self._tries > FIRST_TRIES:
            raise Lost(
                f"{self.place.name} has not answered for {self.place.lease_s:g} s ({why}); what was measured "
                "there is kept for a week, and a resume fetches it"
            )


# -------------------------------------------------------------------------------------------------- the line


class Line:
    """place: where. worker: what follows `python -m`. parts: what of a run's folder it may write here. files:
    whether what lies in the folder goes there first. fetches: only what a session before has measured. out:
    where the worker's lines go."""

    def __init__(
        self,
        place: Place,
        worker: Sequence[str],
        parts: Sequence[str],
        files: bool,
        fetches: bool,
        out: int,
        guard: Guard,
    ) -> None:
        self._place, self._parts, self._files, self._fetches = place, tuple(parts), files, fetches
        words = places.program(place, *worker)
        launch = place.launch if place.shared else ()
        self._words = (*launch, *words)
        self._waits = bool(launch)  # for its turn, before the worker says anything
        self._out, self._guard = out, guard
        self.talk = self._new()
        self._parent = os.getppid()
        self._text: bytes | None = None  # the Start as it came
        self._start: dict[str, Any] = {}
        self._closed = False  # standard input
        self._folder: Path | None = None
        self._sent: Sent | None = None
        self._there: list[tuple[bytes, bytes]] = []
        self._job = ""
        self._opened: Opened | None = None
        self._case: dict[str, Any] | None = None
        self._stage = ""
        self._away = self._spoke = False
        self._said_at = 0.0
        self._file: IO[bytes] | None = None
        self._nbytes = self._all_nbytes = self._count = 0
        self._stopped = False
        # Of a session that a program before has begun, and that is ours now: what is to be measured. Its
        # worker was asked for other cases, and may be done before all of these are.
        self._left_over: list[Any] | None = None

    def _new(self) -> Talk:
        """A session that is to be begun."""
        talk = Talk(self._place, secrets.token_hex(16), self._words)
        self._guard.watch(talk.session)
        return talk

    # ------------------------------------------------------------------------------------------- our streams

    def listen(self) -> None:
        """In a thread: our standard input."""
        data = bytearray()
        with contextlib.suppress(OSError):
            while part := os.read(0, 1 << 16):
                data += part
                head, newline, _ = data.partition(b"\n")
                if newline and self._text is None:
                    self._text = bytes(head)
                    self.talk.queue.put((None, None))
        self._closed = True
        self.talk.queue.put((None, None))

    @property
    def told(self) -> bool:
        """Whether there is a job."""
        return self._text is not None

    def hang_up(self) -> None:
        """As if our standard input had closed. Takes no lock: a handler of signals may call it."""
        self._closed = True

    def say(self, message: Message) -> None:
        self._write(msgspec.json.encode(message))

    def _write(self, line: bytes) -> None:
        """Raises BrokenPipeError where nobody listens."""
        view = memoryview(line + b"\n")
        while view:
            view = view[os.write(self._out, view) :]

    # ------------------------------------------------------------------------------------------------ the run

    def run(self) -> int:
        """Until the worker has ended; its exit status."""
        try:
            return self._run()
        except Lost as error:
            return self._give_up(str(error))
        except BrokenPipeError:
            raise
        except OSError as error:
            return self._give_up(
                f"what comes from {self._place.name} cannot be written: {system_words(error)}"
            )
        except KernelscopeError as error:
            return self._give_up(str(error))

    def _give_up(self, why: str) -> int:
        if self._text is None:
            print(plain.printable(why), file=sys.stderr)
            return 1
        self.say(Done(reason=why))
        return 0

    def _run(self) -> int:
        while True:
            if self._text is not None and not self._start:
                code = self._begin(self._text)
                if code is not None:
                    return code
            if self._closed and not self._stopped and self._left():
                return 0
            if self._fetches:  # nothing is begun there
                self.talk.wait()
                continue
            frame = self.talk.next()
            self._tick()
            match frame:
                case Opened():
                    self._opened = frame
                    self._back()
                    if self._start and not frame.told:
                        self._tell()
                    if self._stopped:
                        self.talk.say(Stop())
                case Missing(files=files):
                    self._send(files)
                case Ended(code=code):
                    if not self._left_over or code or self._stopped:
                        return self._ended(code)
                    self._begin_again(self._left_over)
                case _:
                    self._take(self.talk, frame)

    def _begin(self, text: bytes) -> int | None:
        """There is a job. The exit status where nothing is left of it to be done."""
        self._start = start = msgspec.json.decode(text)
        if start.get("folder"):
            self._folder = Path(start["folder"])
        self._sent = sent(start, self._folder if self._files else None)
        key = [sorted(self._sent.paths), start["job"], self._place.folder]
        self._job = hashlib.sha256(msgspec.json.encode(key)).hexdigest()
        if (note := self._note()) is not None:
            if self._fetch(note):
                self._guard.watch(self.talk.session)
                self._keep_note()
                return None
            if self._fetches:
                self._note_down(msgspec.structs.replace(note, parent=self._parent, done=True))
            if self._stopped or self._fetches or start.get("cases") == []:
                self.talk.end()
                self.say(Done(reason="cancelled" if self._stopped else ""))
                return 0
        if self._fetches:
            self.say(Done())
            return 0
        if self.talk.open:
            self._tell()
        return None

    def _left(self) -> bool:
        """Our input has closed. Whether there is nobody any more for whom to go on here."""
        if not self._start:
            self.talk.end()
            return True
        until = time.monotonic() + PARENT_S
        while time.monotonic() < until:
            if os.getppid() != self._parent:
                return True  # it goes on there, and a resume takes what it measures
            time.sleep(0.02)
        self._stopped = True
        self.talk.say(Stop())
        return False

    def _begin_again(self, cases: list[Any]) -> None:
        """A session for cases that another one was not asked for."""
        self.talk.bye()
        self._start["cases"] = cases
        self._left_over, self._case, self._spoke = None, None, False
        self.talk = self._new()

    def _ended(self, code: int) -> int:
        self._keep_note(done=True)
        self.talk.bye()
        return code

    # ------------------------------------------------------------------------------------------ what is sent

    def _tell(self) -> None:
        """Begin to tell the worker its job: first, which files are needed."""
        assert self._sent is not None
        if not self._spoke:
            self.say(Progress(text=f"sending what the job names to {self._place.name}"))
        sources = self._sent.sources
        if sum(map(_nbytes, sources.values())) <= AT_ONCE_NBYTES:
            self._send(tuple(sources))
        else:
            self.talk.say(Offer(tuple(sources)))

    def _send(self, files: Sequence[str]) -> None:
        assert self._sent is not None
        assert self._opened is not None
        for digest in files:
            source = self._sent.sources.get(digest)
            if source is not None:
                self._send_file(digest, source)
        paths = self._sent.there(self._opened.folder)
        start = swapped(self._start, paths)
        folder = f"{self._opened.folder}/sessions/{self.talk.session}/run"
        if self._folder is not None:
            start["folder"] = folder
        # The keeper says when it was started, by the clock there; a node of a queue has another clock.
        start["started_ns"] = 0 if self._waits else 1
        back = [(there, here) for here, there in paths.items()] + [(folder, str(self._folder))]
        self._there = [(_quoted(there), _quoted(here)) for there, here in back]
        line = msgspec.json.encode(start)
        self.talk.say(Input(line, self._sent.trees, self._sent.files))
        self._keep_note()

    def _send_file(self, digest: str, source: Path | bytes) -> None:
        if isinstance(source, bytes):
            self.talk.say(Put(digest, source, True))
            return
        try:
            size, done = source.stat().st_size, 0
            with source.open("rb") as file:
                piece = file.read(PIECE_NBYTES)
                while True:
                    after = file.read(PIECE_NBYTES) if piece else b""
                    self.talk.say(Put(digest, piece, not after))
                    done += len(piece)
                    if not after:
                        return
                    if self._closed or not self.talk.open:
                        return
                    if time.monotonic() - self._said_at > SAID_S:
                        self._said_at = time.monotonic()
                        text = f"sending {source.name} to {self._place.name}"
                        self.say(Progress(text=text, fraction=min(1.0, done / max(1, size))))
                    piece = after
        except OSError as error:
            raise InputError(f"{source} cannot be read: {system_words(error)}") from error

    # -------------------------------------------------------------------------------------------- what comes

    def _take(self, talk: Talk, frame: Any, wanted: bool = True) -> None:
        """A word that was not heard yet. wanted: else it is passed over."""
        number = getattr(frame, "number", None)
        if number is None:
            if isinstance(frame, Warned):
                self.say(Log(level="warning", text=f"{self._place.name}: {frame.text}"))
            return
        if number <= talk.have:
            return
        match frame:
            case Heard(line=line) if wanted:
                self._pass_on(line)
            case Errors(data=data) if wanted:
                with contextlib.suppress(OSError):
                    os.write(2, data)
            case Piece() if wanted:
                if not self._keep(frame):
                    return
            case Piece() if not frame.last:
                return
        talk.have = number

    def _pass_on(self, line: bytes) -> None:
        self._spoke = True
        for there, here in self._there:
            line = line.replace(there, here)
        if line.startswith(STARTED):
            held = _decoded(line)
            self._case, self._stage = held.get("case"), str(held.get("stage", ""))
        elif line.startswith(MEASURED):
            held = _decoded(line)
            measurement = held.get("measurement")
            if isinstance(measurement, dict):
                facts = measurement.get("facts")
                known = facts if isinstance(facts, dict) else {}
                measurement["facts"] = {**known, MACHINE: self._place.name}
                if self._case == measurement.get("case"):
                    self._case = None
                if self._left_over and measurement.get("case") in self._left_over:
                    self._left_over.remove(measurement["case"])
                line = msgspec.json.encode(held)
        elif line.startswith(DONE) and self._left_over and not _decoded(line).get("reason"):
            return
        self._write(line)

    def _keep(self, piece: Piece) -> bool:
        """A part of a file of the run's folder; whether that was the last. Raises Lost where it belongs
        elsewhere, or is more than any run has."""
        if self._folder is None or piece.name.split("/")[0] not in self._parts:
            raise Lost(f"{self._place.name} sends a file that no such run has: {piece.name[:200]!r}")
        path = inside(self._folder, piece.name)
        partial = path.with_name(f".{path.name}.part")
        if piece.first:
            path.parent.mkdir(parents=True, exist_ok=True)
            if self._file is not None:
                self._file.close()
            partial.unlink(missing_ok=True)
            self._file, self._nbytes = partial.open("xb"), 0
            self._count += 1
        if self._file is None:
            return False  # of a connection before
        self._nbytes += len(piece.data)
        self._all_nbytes += len(piece.data)
        many = self._all_nbytes > FILES_NBYTES or self._count > MOST_FILES
        if many or self._nbytes > FILE_NBYTES:
            raise Lost(f"{self._place.name} sends more than any run has, in {piece.name[:200]!r}")
        self._file.write(piece.data)
        if not piece.last:
            return False
        self._file.close()
        self._file = None
        partial.replace(path)
        return True

    # -------------------------------------------------------------------------------------- while it is away

    def _tick(self) -> None:
        """Say now and then that it is waited for: none of that is a case's time."""
        if not self._start or self._text is None:
            return
        limit = self._start["job"].get("timeout_s", 600.0)
        now = time.monotonic()
        away = not self.talk.open
        if now - self._said_at < min(SAID_S, limit / 4):
            return
        if away and self.talk.opened and not self._away:
            self._away = True
            name = self._place.name
            self.say(
                Log(
                    level="warning", text=f"{name} does not answer ({self.talk.why}); measuring goes on there"
                )
            )
        if away and self._case is not None:
            self._said_at = now
            self._write(msgspec.json.encode(CaseStarted(case=self._case, stage=AWAY)))
        elif away or (self._waits and not self._spoke):
            self._said_at = now
            self.say(Progress(text=self._waiting(away)))

    def _waiting(self, away: bool) -> str:
        name = self._place.name
        if self._waits and not self._spoke and not (away and self.talk.opened):
            return f"waiting in the queue of {name}"
        return f"no answer from {name}; measuring goes on there" if self.talk.opened else f"reaching {name}"

    def _back(self) -> None:
        """It answers."""
        if not self._away:
            return
        self._away = False
        self.say(Log(level="info", text=f"{self._place.name} answers again"))
        if self._case is not None:
            self._write(msgspec.json.encode(CaseStarted(case=self._case, stage=self._stage)))

    # --------------------------------------------------------------------------------------- a session before

    def _note(self) -> Note | None:
        """The session of a program that is gone, or of a line that was killed; None where there is none."""
        note = note_of(self._folder) if self._folder is not None else None
        if note is None:
            return None
        heard = note.done and note.parent == self._parent
        return None if heard or note.place != self._place.name else note

    def _keep_note(self, done: bool = False) -> None:
        if self._start:
            self._note_down(Note(self._place.name, self.talk.session, self._job, self._parent, done))

    def _note_down(self, note: Note) -> None:
        if self._folder is not None:
            with contextlib.suppress(OSError, KernelscopeError):
                write_atomically(self._folder / NOTE, msgspec.json.encode(note))

    def _fetch(self, note: Note) -> bool:
        """Take what a session before has measured, of what is wanted. Whether its worker still measures such:
        it is then ours. Else it is ended, and the Start has what is left."""
        assert self._sent is not None
        same = note.job == self._job
        cases: list[Any] = list(self._start.get("cases", ()))
        wanted = list(cases)
        old = Talk(self._place, note.session)
        own, self.talk = self.talk, old
        opened: Opened | None = None
        ending = False
        if same:
            self.say(Log(level="info", text=f"fetching what {self._place.name} measured meanwhile"))
        try:
            while True:
                if self._closed and not self._stopped and self._left():
                    raise BrokenPipeError
                frame = old.next()
                self._tick()
                if isinstance(frame, Opened):
                    if opened is None:
                        opened = frame
                        self._there = self._back_from(frame.folder, note.session)
                    self._back()
                elif isinstance(frame, Ended):
                    break
                elif frame is not None:
                    self._take(old, frame, same and self._is_wanted(frame, cases, wanted))
                if opened is not None and old.have >= opened.said - 1 and not ending:
                    # Of a program that is gone also one that waits, or is between two cases; where ours had
                    # its line killed, it did so for the worker.
                    waits = self._case is None and opened.told and note.parent != self._parent
                    goes_on = waits or (self._case is not None and (not cases or self._case in wanted))
                    if same and goes_on and not self._fetches and not opened.ended and (wanted or not cases):
                        own.end()
                        own.close()
                        self._left_over = wanted
                        return True
                    ending = True
                    old.say(Kill())
            old.bye()
        except Unserved as error:
            self.say(Log(level="info", text=f"nothing is left of what was measured there before: {error}"))
        self._case, self._spoke = None, False
        old.close()
        self.talk = own
        if cases:
            self._start["cases"] = wanted
        return False

    def _back_from(self, folder: str, session: str) -> list[tuple[bytes, bytes]]:
        assert self._sent is not None
        back = [(there, here) for here, there in self._sent.there(folder).items()]
        back.append((f"{folder}/sessions/{session}/run", str(self._folder)))
        return [(_quoted(there), _quoted(here)) for there, here in back]

    def _is_wanted(self, frame: Any, cases: list[Any], wanted: list[Any]) -> bool:
        """Whether a word of a session before is of use: not what is known already, and no end of a run."""
        if not isinstance(frame, Heard):
            return not isinstance(frame, Errors)
        line = frame.line
        for there, here in self._there:
            line = line.replace(there, here)
        held = _decoded(line)
        match held.get("type"):
            case "measured":
                measurement = held.get("measurement")
                case = measurement.get("case") if isinstance(measurement, dict) else None
                if case == self._case:
                    self._case = None
                if cases and case not in wanted:
                    return False
                if isinstance(measurement, dict) and measurement.get("disposition") == "cancelled":
                    return False
                if case in wanted:
                    wanted.remove(case)
                return True
            case "case_started":
                self._case = held.get("case")
                return not cases or self._case in wanted
            case "hello":
                if not cases and isinstance(held.get("cases"), list):
                    cases.extend(held["cases"])
                    wanted.extend(held["cases"])
                return True
            case "model_loaded" | "limits_measured" | "log":
                return True
        return False


def _nbytes(source: Path | bytes) -> int:
    """How much a file has. One that cannot be read is told of as it is sent."""
    if isinstance(source, bytes):
        return len(source)
    with contextlib.suppress(OSError):
        return source.stat().st_size
    return 0


def _quoted(text: str) -> bytes:
    """As it stands within a text of JSON."""
    return msgspec.json.encode(text)[1:-1]


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        held = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return held if isinstance(held, dict) else {}


# ------------------------------------------------------------------------------------------------- the guard


class Guard:
    """A process of its own, which outlives us: where we are killed and our supervisor lives, it is meant to
    be the worker that is killed, and so that is. Where processes cannot be forked there is none, and the
    lease ends the worker."""

    def __init__(self, place: Place, out: int) -> None:
        self._pipe: int | None = None
        if not hasattr(os, "fork"):
            return
        parent = os.getppid()
        watched, self._pipe = os.pipe()
        if (child := os.fork()) != 0:
            os.close(watched)
            os.waitpid(child, 0)
            return
        os.setsid()
        if os.fork():
            os._exit(0)
        try:
            os.close(self._pipe)
            nothing = os.open(os.devnull, os.O_RDWR)
            for end in (0, 1, 2, out):
                os.dup2(nothing, end)
            told = b""
            while part := os.read(watched, 1 << 12):
                told += part
            if not told.endswith(b"x") and len(told) >= 32 and _lives(parent):
                _end_there(place, told[-32:].decode())
        finally:
            os._exit(0)

    def watch(self, session: str) -> None:
        """This is the one now."""
        if self._pipe is not None:
            os.write(self._pipe, session.encode())

    def leave(self) -> None:
        """Nothing is to be ended."""
        if self._pipe is not None:
            os.write(self._pipe, b"x")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _end_there(place: Place, session: str) -> None:
    begun_by, until = time.monotonic() + BEGUN_S, time.monotonic() + GUARD_S
    while time.monotonic() < until:
        talk = Talk(place, session)
        talk.have = 1 << 60  # nothing of what was said is wanted
        try:
            while time.monotonic() < until:
                if isinstance(talk.next(), Opened):
                    talk.say(Kill())
                    time.sleep(1.0)
                    return
        except Unserved:  # not begun yet, or gone
            if time.monotonic() > begun_by:
                return
        except Lost:
            return
        time.sleep(0.5)


def main(words: Sequence[str]) -> int:
    """See the module. Does not return where the worker was ended by a signal: we are, too."""
    options, worker = words[: words.index("--")], words[words.index("--") + 1 :]
    parts = [name for name in options[1].removeprefix("--parts=").split(",") if name]
    out = os.dup(1)
    os.dup2(2, 1)
    try:
        place = places.load(options[0])
        guard = Guard(place, out)
        line = Line(place, worker, parts, "--files" in options, "--fetch" in options, out, guard)
    except KernelscopeError as error:
        os.write(out, msgspec.json.encode(Done(reason=str(error))) + b"\n")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: _leave(line, guard))
    threading.Thread(target=line.listen, daemon=True, name="input").start()
    try:
        code = line.run()
    except BrokenPipeError:
        code = 1  # nobody listens; what is measured there stays there
    line.talk.close()
    guard.leave()
    if place.launch and place.shared and 128 < code < 128 + signal.NSIG:
        code = 128 - code  # as launchers tell of a signal
    if code < 0 and os.name == "posix":
        _end_by(-code)
    return code


def _leave(line: Line, guard: Guard) -> None:
    """This side goes away, as when the window closes or the machine is switched off: what is measured there
    goes on. A worker that was given nothing to measure ends."""
    if not line.told:
        line.hang_up()
        return
    line.talk.close()
    guard.leave()
    os._exit(0)


def _end_by(number: int) -> None:
    """End by this signal, without a dump of memory."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError, OverflowError):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        time.sleep(1.0)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(status & 0xFF)
