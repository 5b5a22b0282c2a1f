"""What a course report published: the words of data/*.toml.

The numbers are their machines', kept as they were published. Nothing in these files was measured here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from bench.extras.reports import presets
from bench.extras.reports.needs import Limits
from bench.extras.reports.presets import Need, Report, Who, Words

ALL_IMAGES = 10_000  # of the data set, which all of the courses ran
FOLDER = Path(__file__).parent / "data"


class Line(Words, frozen=True, kw_only=True):
    """A published figure and what of ours stands beside it. published: in `unit`'s base unit (None: only
    ours is there). need: where ours comes from ("": we have nothing like it, and `note` says why); value: of
    courses.values; the others choose among what a need measured (model: "" is its first)."""

    what: str
    published: float | None = None
    unit: Literal["s", "fraction", "B", "count", "ratio"] = "s"
    need: str = ""
    value: str = ""
    who: Who = "own"
    model: str = ""
    batch: int = 0
    layer: str = ""
    rung: str = ""
    note: str = ""


class PublishedTable(Words, frozen=True, kw_only=True):
    """Figures line by line."""

    title: str
    hardware: str
    lines: tuple[Line, ...]


class Took(msgspec.Struct, frozen=True, array_like=True):
    """A kernel or a call: its share of the time of all, as a fraction; seconds of all its calls together; how
    many calls, and of one the mean, the shortest and the longest, in seconds. 0 where not published."""

    name: str
    share: float
    seconds: float = 0.0
    calls: int = 0
    mean: float = 0.0
    least: float = 0.0
    most: float = 0.0


class Ranked(Words, frozen=True, kw_only=True):
    """What took most of the time, by rank. of: the kernels of a pass, or all calls from creation to close.
    Without rows it is ours alone; then hardware is ""."""

    title: str
    hardware: str
    need: str
    who: Who = "own"
    of: Literal["activities", "calls"] = "activities"
    rows: tuple[Took, ...]


class Matrix(Words, frozen=True, kw_only=True):
    """Seconds by batch size and column (bench.views.tables.course_report)."""

    title: str
    hardware: str
    need: str
    who: Who = "own"
    columns: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]  # the batch size, then milliseconds


class Figure(Words, frozen=True, kw_only=True):
    """A picture: one of our charts of a need, or the total of a matrix beside ours."""

    title: str
    chart: Literal["timeline", "times", "breakdown", "cold", "ladder", "total"]
    need: str


class Claim(Words, frozen=True, kw_only=True):
    """What a report says of two of its figures: that `first` is larger than `second`; same: that there is
    no difference. quote: in their words, letter by letter; "" where the report says nothing of it, and its
    figures alone do."""

    says: str
    first: str
    second: str
    same: bool = False
    quote: str = ""


class Remark(Words, frozen=True, kw_only=True):
    """What a report says that no two of its figures decide, answered with ours: of: one of courses.remarks;
    need: a profile."""

    says: str
    quote: str
    of: str
    need: str
    who: Who = "own"


class Course(Report, frozen=True, kw_only=True):
    """One report. Lines are named by their `what` in claims."""

    source: str
    tables: tuple[PublishedTable, ...] = ()
    ranked: tuple[Ranked, ...] = ()
    matrices: tuple[Matrix, ...] = ()
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    remarks: tuple[Remark, ...] = ()

    @property
    def names_images(self) -> bool:
        """Whether something of it is of all images."""
        return any(ALL_IMAGES in (need.images, *need.batches) for need in self.needs)

    def line(self, what: str) -> Line:
        return next(line for table in self.tables for line in table.lines if line.what == what)

    def batches(self, need: Need, limits: Limits) -> tuple[int, ...]:
        """The largest size is of tables by batch size on a CPU; no batch has more images than are taken."""
        if need.device == "cpu" and need.all_calls:
            return super().batches(need, limits) or need.batches[:1]
        return tuple(dict.fromkeys(min(batch, limits.images or batch) for batch in need.batches))


def names() -> tuple[str, ...]:
    return presets.names(FOLDER)


def load(name: str) -> Course:
    """The report of that name, with trained weights where a need names some and they were imported. Raises
    InputError where there is none."""
    from models import names as known

    course = presets.load(FOLDER, name, Course, "course report")
    there = {need.trained for need in course.needs if need.trained} & set(known.models())
    if not there:
        return course
    needs = tuple(
        msgspec.structs.replace(need, models=(need.trained,)) if need.trained in there else need
        for need in course.needs
    )
    notes = (*course.notes, f"Here with the weights of {' and '.join(sorted(there))}, which were imported.")
    return msgspec.structs.replace(course, needs=needs, notes=notes)
