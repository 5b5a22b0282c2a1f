"""Times that a course report published, beside ours: whose they are, and which of our rungs does the same."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.results.ladder_records import Ladder
from bench.results.ladder_rows import RungRow
from bench.results.rows import title
from bench.words import units

FILE = Path(__file__).with_suffix(".toml")


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One time of a report; see the file."""

    what: str
    seconds: float
    device: str
    rung: str


class CourseTimes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A report's times, and the node of ours that they are set beside."""

    source: str
    machine: str
    model: str
    batch: int
    times: tuple[Published, ...]


class Beside(msgspec.Struct, frozen=True):
    """A published time and what stands beside it: our time and its rung, in words ("": nothing does)."""

    what: str
    published: str
    ours: str
    rung: str


def load(path: Path = FILE) -> CourseTimes:
    """The times that come with the program. Raises msgspec.ValidationError where the file is not as above."""
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), CourseTimes)


def beside(
    course: CourseTimes, ladders: Sequence[tuple[Ladder, Sequence[RungRow]]]
) -> tuple[list[Ladder], list[Beside]]:
    """The ladders on the report's model at its batch size, and each published time beside theirs; nothing
    where there is no such ladder."""
    ours = [
        (ladder, rows)
        for ladder, rows in ladders
        if ladder.job.model and title(ladder.job.model) == course.model and ladder.job.batch == course.batch
    ]
    made: list[Beside] = []
    for published in course.times if ours else ():
        row = next(
            (like for ladder, rows in ours if (like := _like(published, ladder, rows)) is not None), None
        )
        made.append(
            Beside(
                published.what,
                units.si(published.seconds, "s", 4),
                units.duration(row.time.value) if row is not None and row.time else "",
                row.case.label if row is not None else "",
            )
        )
    return [ladder for ladder, _ in ours], made


def _like(published: Published, ladder: Ladder, rows: Sequence[RungRow]) -> RungRow | None:
    """The rung of a ladder that does what was published."""
    if ladder.job.device != published.device:
        return None
    timed = [
        row
        for row in rows
        if row.time
        and row.case.precision == "fp32"
        and not (row.case.is_reference or row.case.yardstick or row.case.user)
    ]
    if published.rung == "fastest":
        return min(timed, key=lambda row: row.time.value if row.time else 0.0, default=None)
    return next((row for row in timed if row.name == published.rung), None)
