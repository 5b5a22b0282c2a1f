"""What a course report published, and what has to be measured to fill it in: the words of data/*.toml.

The numbers are their machines', kept as they were published. Nothing in these files was measured here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from bench.commands import toml_files

FOLDER = Path(__file__).parent / "data"
Who = Literal["own", "reference"]


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A word that nobody reads is a mistake in the file."""


class Need(_Words, frozen=True, kw_only=True):
    """Something to measure, on one device. kind "comparison", "ladder" or "profile" is a run of that kind;
    "program" a whole program on the backend of `who`. batches: on a CPU those up to --largest. rungs: of a
    ladder (() all); all_calls: of a profile, one pass from creation to close, for the table by batch size."""

    name: str
    kind: Literal["comparison", "ladder", "profile", "program"]
    device: Literal["cpu", "cuda"]
    model: str
    who: Who = "own"
    batches: tuple[int, ...] = (1,)
    images: int = 0
    node: str = ""
    rungs: tuple[str, ...] = ()
    all_calls: bool = False


class Line(_Words, frozen=True, kw_only=True):
    """A published figure and what of ours stands beside it. published: in `unit`'s base unit (None: only
    ours is there). need: where ours comes from ("": we have nothing like it, and `note` says why); value: of
    bench.extras.reports.courses.values; the others choose among what a need measured."""

    what: str
    published: float | None = None
    unit: Literal["s", "fraction", "B", "count", "ratio"] = "s"
    need: str = ""
    value: str = ""
    who: Who = "own"
    batch: int = 0
    layer: str = ""
    rung: str = ""
    note: str = ""


class PublishedTable(_Words, frozen=True, kw_only=True):
    """Figures line by line."""

    title: str
    hardware: str
    lines: tuple[Line, ...]


class Ranked(_Words, frozen=True, kw_only=True):
    """What took most of the time, by rank: (name, fraction of the time, seconds; 0 where not published). of:
    the kernels of a pass, or all calls from creation to close."""

    title: str
    hardware: str
    need: str
    who: Who = "own"
    of: Literal["activities", "calls"] = "activities"
    rows: tuple[tuple[str, float, float], ...]


class Matrix(_Words, frozen=True, kw_only=True):
    """Seconds by batch size and column (bench.profile.show.course)."""

    title: str
    hardware: str
    need: str
    who: Who = "own"
    columns: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]  # the batch size, then milliseconds


class Figure(_Words, frozen=True, kw_only=True):
    """A picture: one of our charts of a need, or the total of a matrix beside ours."""

    title: str
    chart: Literal["timeline", "times", "breakdown", "cold", "ladder", "total"]
    need: str


class Claim(_Words, frozen=True, kw_only=True):
    """What a report says of two of its figures: that `first` is larger than `second`; same: that there is
    no difference. quote: in their words, letter by letter; "" where the report says nothing of it, and its
    figures alone do."""

    says: str
    first: str
    second: str
    same: bool = False
    quote: str = ""


class Course(_Words, frozen=True, kw_only=True):
    """One report. Lines are named by their `what` in claims."""

    title: str
    source: str
    needs: tuple[Need, ...]
    tables: tuple[PublishedTable, ...] = ()
    ranked: tuple[Ranked, ...] = ()
    matrices: tuple[Matrix, ...] = ()
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()

    def need(self, name: str) -> Need:
        return next(need for need in self.needs if need.name == name)

    def line(self, what: str) -> Line:
        return next(line for table in self.tables for line in table.lines if line.what == what)


def names() -> tuple[str, ...]:
    return toml_files.names(FOLDER)


def load(name: str) -> Course:
    """The report of that name. Raises InputError where there is none."""
    return toml_files.load(FOLDER, name, Course, "course report")
