"""A profile on the disk: a folder with `profile.json`, `results.jsonl` (a CaseProfile a line), the worker's
log, and `events/<case>.jsonl.gz` (an event a line)."""

from __future__ import annotations

import contextlib
import gzip
import io
from pathlib import Path

import msgspec

from bench.profile.events import Activity, AnyEvent, ApiCall, Events, Interval, Mark
from bench.profile.records import SCHEMA, CaseProfile, Profile, ProfileLimits, ProfileModel
from bench.results import reading
from bench.results.claim import LOCK_FILE, Claim
from bench.results.inside import inside
from bench.results.records import Hello
from bench.results.results_file import ResultsFile
from bench.results.store import (
    CHARTS,
    LOG_FILE,
    PROFILE_FILE,
    RESULTS_FILE,
    instead,
    read_record,
    write_atomically,
)
from kernels.errors import InputError

EVENTS = "events"
OWN = (PROFILE_FILE, RESULTS_FILE, LOG_FILE, LOCK_FILE, EVENTS, CHARTS)  # what a profile consists of


class ProfileFolder:
    """One profile's folder; `create` a new one or `open` one to read."""

    def __init__(self, path: Path, profile: Profile) -> None:
        self.path = path
        self.profile = profile
        self._results = ResultsFile(path / RESULTS_FILE, CaseProfile)
        self._claim = Claim(path)

    @classmethod
    def create(cls, path: Path, profile: Profile) -> ProfileFolder:
        """A new or empty folder. Raises InputError where it holds something or cannot be written."""
        path = Path(path)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if any(path.iterdir()):
                raise InputError(f"{path} holds something already; name an empty or a new folder")
        made = cls(path, profile)
        made._write()
        return made

    @classmethod
    def open(cls, path: Path) -> ProfileFolder:
        """Raises InputError where there is no profile, its file is broken or of a newer version."""
        path = Path(path)
        try:
            profile = read_record(path, PROFILE_FILE, Profile, SCHEMA, OWN)
        except OSError as error:
            words = instead(path) or f" ({(error.strerror or '').lower()})"
            raise InputError(f"{path} holds no profile{words}") from error
        return cls(path, profile)

    @property
    def log(self) -> Path:
        """Where the worker's standard error goes."""
        return self.path / LOG_FILE

    def heard(self, message: object) -> None:
        """Keep what a message of the worker tells of the profile. Raises InputError."""
        changed = self.profile
        if isinstance(message, Hello):
            changed = msgspec.structs.replace(changed, environment=message.environment)
        elif isinstance(message, ProfileModel):
            changed = msgspec.structs.replace(changed, model=message.model)
        elif isinstance(message, ProfileLimits):
            limits = changed.limits | {message.limits.device: message.limits}
            changed = msgspec.structs.replace(changed, limits=limits)
        if changed != self.profile:
            self.profile = changed
            self._write()

    def append(self, measurement: CaseProfile) -> None:
        """Write one case and sync it. On failure nothing of it stays; raises InputError."""
        self._results.append(measurement)

    def measurements(self) -> tuple[CaseProfile, ...]:
        """All cases that are done, the last line of each, in the order of the profile's cases;
        damaged lines are left out and told. Raises InputError where they cannot be read."""
        found = self._results.read()
        return tuple(found[case.key] for case in self.profile.cases if case.key in found)

    def events(self, measurement: CaseProfile) -> Events:
        """The events of a case, none where it has no file. Raises InputError for a file that is broken or
        lies outside the folder."""
        return read_events(inside(self.path, measurement.file)) if measurement.file else Events()

    def claim(self) -> None:
        """Before writing: nobody else is to, until `close`. Raises InputError where somebody does."""
        self._claim.take()

    def close(self) -> None:
        """Let others write."""
        self._claim.release()

    def _write(self) -> None:
        data = msgspec.json.format(msgspec.json.encode(self.profile), indent=2)
        write_atomically(self.path / PROFILE_FILE, data)


def is_profile(path: Path) -> bool:
    """Whether a folder holds a profile, and not a run."""
    return (Path(path) / PROFILE_FILE).is_file()


def write_events(folder: Path, key: str, events: Events) -> str:
    """Write the events of a case; the file's name in the folder. Raises InputError."""
    encoder = msgspec.json.Encoder()
    data = io.BytesIO()
    # The same events make the same bytes: no time of writing in the header.
    with gzip.GzipFile(fileobj=data, mode="wb", mtime=0, compresslevel=6) as stream:
        for event in (*events.marks, *events.calls, *events.activities, *events.intervals):
            stream.write(encoder.encode(event) + b"\n")
    name = f"{EVENTS}/{key}.jsonl.gz"
    write_atomically(folder / name, data.getvalue())
    return name


def read_events(file: Path) -> Events:
    """Raises InputError, in a sentence, where the file is missing, cut short or no list of events."""
    try:
        data = io.BytesIO(reading.unpacked(file))
    except reading.Refused as error:
        raise InputError(f"{file} is broken or cut short ({error}): profile the case again") from error
    except OSError as error:
        raise InputError(f"{file} cannot be read ({reading.words(error)})") from error
    decoder = msgspec.json.Decoder(AnyEvent)
    found: list[AnyEvent] = []
    at = 0
    try:
        for number, line in reading.lines(data):
            at = number
            found.append(reading.decoded(line or b"", decoder))
    except reading.Refused as error:
        raise InputError(
            f"{file}, line {at} is no event of a profile ({error}): profile the case again"
        ) from error
    return events_of(found)


def events_of(found: list[AnyEvent]) -> Events:
    """Events of all kinds in one list → by kind, each in order of its start."""
    found.sort(key=lambda event: (event.start_ns, -event.end_ns))
    return Events(
        activities=tuple(event for event in found if isinstance(event, Activity)),
        calls=tuple(event for event in found if isinstance(event, ApiCall)),
        intervals=tuple(event for event in found if isinstance(event, Interval)),
        marks=tuple(event for event in found if isinstance(event, Mark)),
    )
