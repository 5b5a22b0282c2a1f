"""The profile that the window shows: its events as tracks of a timeline, its state (`ProfileState`), and
what records it (`ProfileSession`).

Tracks are the course of the host, threads, calls into CUDA, streams and copies. They are made in a
thread, without Qt. While `blocked` gives a reason (a comparison runs), no profile starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QObject, Signal

from bench.results import api_calls as profile_api
from bench.results import parts as profile_parts
from bench.results.event_files import events_in
from bench.results.events import Activity, ApiCall, Event, Events, HostSpan, Mark
from bench.results.folder import header_after
from bench.results.profile_records import CaseProfile, Profile, ProfileJob, planned
from bench.results.store import RUNS
from bench.run.kinds.profile import KIND as PROFILE
from bench.run.kinds.profile import ProfileFolder
from gui.sessions.processes import Exporter, Order
from gui.sessions.session import Session
from kernels.errors import InputError

MOST_ROWS = 5  # rows of a track at most; the last one takes all further overlaps
MARK, CALL = "mark:", "call:"
PROVIDERS = "ExecutionProvider"
# Intervals that are of no operator, by the part of the breakdown that they are.
_BY_KIND = {"overhead": "profiler", "staging": "staging", "run": "ort"}


@dataclass(frozen=True)
class TrackRow:
    """Events of a track in order, as int64 arrays in ns of the profile's clock. They do not overlap,
    except in a track's last row. reach: the latest end so far; colours: for each event the index of its
    key in the track's `keys`."""

    events: tuple[Event, ...]
    starts: np.ndarray
    ends: np.ndarray
    reach: np.ndarray
    colours: np.ndarray


@dataclass(frozen=True)
class Track:
    """One line of work. It has several rows if events overlap or lie inside each other."""

    title: str
    rows: tuple[TrackRow, ...]
    keys: tuple[str, ...]

    @property
    def count(self) -> int:
        return sum(len(row.events) for row in self.rows)


@dataclass(frozen=True)
class Span:
    """A part of the profile to look at."""

    title: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class TrackGroup:
    """The tracks of one case. anchors: the moments (ns), by name, that can be the zero of time when cases
    are compared."""

    key: str
    title: str
    backend: str
    tracks: tuple[Track, ...]
    spans: tuple[Span, ...] = ()
    anchors: tuple[tuple[str, int], ...] = ()

    @property
    def start(self) -> int:
        return min((int(row.starts[0]) for track in self.tracks for row in track.rows), default=0)

    @property
    def end(self) -> int:
        return max((int(row.ends.max()) for track in self.tracks for row in track.rows), default=1)

    def anchor(self, name: str) -> int:
        return dict(self.anchors).get(name, 0)


PASS = "profiled pass"
PROCESS, FIRST_PASS, STEADY = "the process starts", "the first pass starts", "the profiled passes start"


def group(measured: CaseProfile, events: Events, title: str) -> TrackGroup:
    """The tracks of a case. Empty ones are left out."""
    marks = [mark for mark in (*measured.cold, *events.marks) if mark.kind == "cold"]
    cold = list(dict.fromkeys(marks))  # in the record and among the events
    course = [mark for mark in events.marks if mark.kind != "cold"]
    tracks = [
        track("cold start", cold),
        track("passes", course),
        *_by((i for i in events.intervals if i.kind != "inside"), _interval_title),
        *_by(events.calls, lambda call: f"CUDA calls, thread {call.thread}"),
        *_by((*events.activities, *(i for i in events.intervals if i.kind == "inside")), _activity_title),
    ]
    passes = sorted((m for m in course if m.kind == "window" and m.name == "pass"), key=_start)
    warm = sorted((m for m in course if m.kind == "window" and m.name in ("pass", "warm-up")), key=_start)
    counted = [mark for mark in passes if mark.run is not None]
    return TrackGroup(
        key=measured.case.key,
        title=title,
        backend=measured.case.backend,
        tracks=tuple(each for each in tracks if each is not None),
        spans=_spans(cold, course, counted),
        anchors=(
            (PROCESS, 0),
            (FIRST_PASS, (warm or [Mark(name="", kind="window", start_ns=0, end_ns=0)])[0].start_ns),
            (STEADY, (counted or warm or [Mark(name="", kind="window", start_ns=0, end_ns=0)])[0].start_ns),
        ),
    )


def track(title: str, events: Iterable[Event]) -> Track | None:
    """A track of these events, None if there are none."""
    ordered = sorted(events, key=lambda event: (event.start_ns, -event.end_ns))
    if not ordered:
        return None
    keys: dict[str, int] = {}
    rows: list[list[Event]] = [[]]
    ends: list[int] = [-(1 << 62)]
    for event in ordered:
        keys.setdefault(colour_key(event), len(keys))
        level = next((i for i, end in enumerate(ends) if end <= event.start_ns), len(rows))
        level = min(level, MOST_ROWS - 1)
        if level == len(rows):
            rows.append([])
            ends.append(0)
        rows[level].append(event)
        ends[level] = max(ends[level], event.end_ns)
    return Track(title, tuple(_row(row, keys) for row in rows), tuple(keys))


def colour_key(event: Event) -> str:
    """What the colour of an event stands for: a part of the breakdown (bench.results.parts), the purpose
    of a call, or the name of a mark."""
    if isinstance(event, Activity):
        return profile_parts.activity_key(event)
    if isinstance(event, ApiCall):
        return CALL + profile_api.purpose(event.name)
    if isinstance(event, HostSpan):
        return _BY_KIND.get(event.kind) or profile_parts.OP + event.op_type
    return MARK + event.name


def _row(events: Sequence[Event], keys: dict[str, int]) -> TrackRow:
    ends = np.array([event.end_ns for event in events], np.int64)
    return TrackRow(
        tuple(events),
        np.array([event.start_ns for event in events], np.int64),
        ends,
        np.maximum.accumulate(ends),
        np.array([keys[colour_key(event)] for event in events], np.int64),
    )


def _by(events: Iterable[Event], title: object) -> list[Track | None]:
    """One track for each title."""
    by_title: dict[tuple, list[Event]] = {}
    for event in events:
        by_title.setdefault(title(event), []).append(event)  # type: ignore[operator]  # one of those below
    return [track(name if isinstance(name, str) else name[-1], by_title[name]) for name in sorted(by_title)]


def _interval_title(interval: HostSpan) -> tuple:
    """The order and title of an interval's track: runs before the nodes in them, then copies, then the
    profiler's work."""
    thread = f"thread {interval.thread}"
    match interval.kind:
        case "run":
            return (0, f"runs, {thread}, ORT")
        case "staging":
            return (2, f"staging, {thread}")
        case "overhead":
            return (3, "the profiler's own work")
    provider = interval.provider.removesuffix(PROVIDERS)
    words = f"{'steps' if interval.kind == 'step' else 'nodes'}, {thread}"
    return (1, f"{words}, {provider}" if provider else words)


def _activity_title(activity: Activity | HostSpan) -> tuple:
    """The order and title of an activity's track: by device, kernels before copies, then by stream or
    direction. Steps inside kernels stand below them."""
    if isinstance(activity, HostSpan):
        order, words = 0, f"steps in them, stream {activity.stream}"
    elif activity.kind == "kernel":
        order, words = 0, f"kernels, stream {activity.stream}"
    elif activity.kind == "memset":
        order, words = 2, "memset"
    else:
        order, words = 1, f"copies {activity.copy or 'other'}"
    return (activity.device, order, activity.stream if order == 0 else 0, words)


def _spans(cold: Sequence[Mark], course: Sequence[Mark], passes: Sequence[Mark]) -> tuple[Span, ...]:
    spans = []
    if cold:
        spans.append(Span("cold start", min(map(_start, cold)), max(mark.end_ns for mark in cold)))
    spans += [
        Span(f"{mark.name} of the session", mark.start_ns, mark.end_ns)
        for mark in course
        if mark.kind == "window" and mark.name in ("create", "close")
    ]
    if len(passes) > 1:
        spans.append(Span("all profiled passes", passes[0].start_ns, passes[-1].end_ns))
    spans += [Span(f"{PASS} {i}", mark.start_ns, mark.end_ns) for i, mark in enumerate(passes, 1)]
    return tuple(spans)


def _start(event: Event) -> int:
    return event.start_ns


@dataclass(frozen=True)
class Read:
    """The events of a case, and their tracks."""

    case: CaseProfile
    events: Events
    tracks: TrackGroup


class ProfileState(QObject):
    """The profile shown, its cases, and the events that are read. `changed` is emitted on each change."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.folder: Path | None = None
        self.profile: Profile | None = None
        self._cases: dict[str, CaseProfile] = {}
        self._read: dict[str, Read] = {}

    @property
    def cases(self) -> list[CaseProfile]:
        """All finished cases, in the profile's order."""
        planned = self.profile.cases if self.profile is not None else ()
        return [self._cases[case.key] for case in planned if case.key in self._cases]

    @property
    def fine(self) -> list[CaseProfile]:
        """The finished cases that were measured without a failure."""
        return [case for case in self.cases if case.disposition == "ok"]

    @property
    def batches(self) -> list[int]:
        """The batch sizes of the cases in `fine`."""
        return sorted({case.case.batch for case in self.fine})

    def at(self, batch: int) -> list[CaseProfile]:
        """The cases in `fine` with this batch size, one for each backend."""
        return [case for case in self.fine if case.case.batch == batch]

    def read(self, case: CaseProfile) -> Read | None:
        """The events of a case, None if they are not read yet."""
        return self._read.get(case.case.key)

    def show(self, folder: Path, profile: Profile, cases: Iterable[CaseProfile] = ()) -> None:
        """Show another profile, with these cases."""
        self.folder, self.profile = folder, profile
        self._cases, self._read = {case.case.key: case for case in cases}, {}
        self.changed.emit()

    def take_message(self, message: object) -> None:
        """Take what a worker says about the whole profile."""
        if self.profile is not None:
            self.profile = header_after(self.profile, message)
            self.changed.emit()

    def settle(self, cases: Sequence[CaseProfile]) -> None:
        """Add finished cases."""
        self._cases |= {case.case.key: case for case in cases}
        self.changed.emit()

    def keep(self, reads: Iterable[Read]) -> None:
        """Add events that were read."""
        self._read |= {read.case.case.key: read for read in reads if read.case.case.key in self._cases}
        self.changed.emit()


def read_cases(folder: Path, cases: Sequence[CaseProfile]) -> list[Read]:
    """Read the events of these cases from the disk; runs in a thread. Raises InputError, which names the
    file."""
    reads = []
    for case in cases:
        events = events_in(folder, case)
        title = f"{case.case.backend}, {case.case.precision}, batch {case.case.batch:,}"
        reads.append(Read(case, events, group(case, events, title)))
    return reads


class ProfileSession(Session):
    """Records profiles, opens them, reads their events in a thread, and writes traces."""

    busy_words = "A profile is being recorded"

    def __init__(
        self,
        parent: QObject | None = None,
        runs: Path = RUNS,
        blocked: Callable[[], str] = lambda: "",
        worker: Sequence[str] | None = None,
    ) -> None:
        super().__init__(PROFILE, parent, runs, worker)
        self.state = ProfileState(self)
        self.blockers.append(blocked)
        self._exporter = Exporter(self)
        self._exporter.failed.connect(self.message)
        self._exporter.exported.connect(
            lambda order, _: self.message.emit(f"Saved {order.where}; ui.perfetto.dev opens it.")
        )
        self._reading: tuple[str, ...] = ()

    def run(self, job: ProfileJob) -> None:
        """Record a profile into a new folder. What prevents it is sent as a message."""
        if reason := self.occupied() or self.blocked():
            self.message.emit(reason)
            return
        profile = Profile(job=job, cases=planned(job))
        try:
            folder = self.new_folder(profile)
        except InputError as error:
            self.message.emit(str(error))
            return
        self._reading = ()
        self.state.show(folder.path.absolute(), folder.header)
        self.begin(folder, profile.cases)

    def read(self, cases: Sequence[CaseProfile]) -> None:
        """Read the events of these cases in a thread, if they are not read yet."""
        state = self.state
        missing = [case for case in cases if state.read(case) is None]
        keys = tuple(case.case.key for case in missing)
        if not missing or keys == self._reading or state.folder is None or state.profile is None:
            return
        self._reading = keys  # also if reading fails, so that the error is shown once
        folder = state.folder

        def then(reads: list[Read]) -> None:
            if state.folder == folder:
                state.keep(reads)

        self.background.start("read events", lambda: read_cases(folder, missing), then)

    def save_trace(self, file: Path) -> None:
        """Write all cases as a trace for Perfetto or Chrome, in a process of its own."""
        if self.state.folder is None or not self.state.fine:
            self.message.emit("There is no profile to save a trace of.")
            return
        arguments = ("profile", "--load", str(self.state.folder), "--trace", str(file.absolute()))
        quiet = ("--format", "csv", "--table", "cold")
        self._exporter.start(Order((*arguments, *quiet), f"the trace {file.name}", file))

    def quit(self) -> None:
        super().quit()
        self._exporter.quit()

    # ---------------------------------------------------------------------------------------- the measuring

    def _opened(self, folder: ProfileFolder, measurements: tuple[CaseProfile, ...]) -> None:
        self._reading = ()
        self.state.show(folder.path.absolute(), folder.header, measurements)

    def _heard(self, message: Any) -> str:
        self.state.take_message(message)
        return ""

    def _written(self, cases: Sequence[CaseProfile]) -> None:
        for case in cases:
            if case.disposition not in ("ok", "cancelled"):
                self.message.emit(f"{case.case.words}: {case.reason or case.disposition.replace('_', ' ')}")
        self.state.settle(cases)

    def _closed(self, cancelled: bool, cases: Sequence[Any]) -> str:
        self.state.changed.emit()
        where = f"kept in {self.runs.name}/{self._folder.name}"
        return f"Cancelled; what was measured is {where}." if cancelled else f"Profile {where}."
