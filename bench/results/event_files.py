"""The events of a profile's cases on the disk: `events/<case>.jsonl.gz`, an event a line."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import msgspec

from bench.results import reading
from bench.results.events import Activity, AnyEvent, ApiCall, Events, HostSpan, Mark
from bench.results.inside import inside
from bench.results.profile_records import CaseProfile
from bench.results.store import write_atomically
from kernels.errors import InputError

EVENTS = "events"  # the folder of their files


def events_in(folder: Path, measurement: CaseProfile) -> Events:
    """The events of a case of the profile in `folder`, none where it has no file. Raises InputError for a
    file that is broken or lies outside the folder."""
    return read_events(inside(folder, measurement.file)) if measurement.file else Events()


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
    except reading.Unreadable as error:
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
    except reading.Unreadable as error:
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
        intervals=tuple(event for event in found if isinstance(event, HostSpan)),
        marks=tuple(event for event in found if isinstance(event, Mark)),
    )
