"""The tables of a course report: what was published, and ours beside it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bench.extras.reports.courses.presets import Course, Line, Matrix, PublishedTable, Ranked, Remark, Took
from bench.extras.reports.courses.values import ours
from bench.extras.reports.figures import Figure
from bench.extras.reports.needs import NEEDS_GPU, NOT_MEASURED, Taken
from bench.results import doubt
from bench.views.tables.table import Column, Table
from bench.words import orders, units

if TYPE_CHECKING:
    from bench.views.tables.event_lines import By

_TEXT = {
    "s": lambda value: units.si(value, "s", 4),
    "fraction": lambda value: units.percent(value, 2),
    "B": units.nbytes,
    "count": lambda value: f"{value:,.0f}",
    "ratio": units.times,
}


def shown(found: Figure, line: Line) -> str:
    """A figure of ours without its interval; or why there is none."""
    return found.why if found.value is None else doubt.marked(_TEXT[line.unit](found.value), found.doubts)


@dataclass(frozen=True)
class Beside:
    """A line with ours."""

    line: Line
    ours: Figure

    @property
    def published(self) -> str:
        return "" if self.line.published is None else _TEXT[self.line.unit](self.line.published)

    @property
    def own(self) -> str:
        found, text = self.ours, shown(self.ours, self.line)
        if found.value is None:
            return text
        if found.low is not None and found.high is not None:
            text += f" ({' to '.join(_TEXT[self.line.unit](end) for end in (found.low, found.high))})"
        return f"{text}, of {found.few:,} images" if found.few else text

    @property
    def times(self) -> str:
        """Theirs over ours, of times of the same work."""
        if self.ours.few or self.line.unit != "s" or not self.line.published or not self.ours.value:
            return ""
        speed = orders.speed(self.line.published / self.ours.value)
        return doubt.marked(f"{speed} faster" if speed.endswith("×") else speed, self.ours.doubts)


_LINES: tuple[Column[Beside], ...] = (
    Column("what", lambda row: row.line.what, title="figure", left=True),
    Column("published", lambda row: row.line.published, cell=lambda row: row.published, title="published"),
    Column("ours", lambda row: row.ours.value, cell=lambda row: row.own, title="here (95 % interval)"),
    Column("theirs_over_ours", cell=lambda row: row.times, title="here beside published"),
    Column("rung", lambda row: row.ours.rung, title="our rung", left=True),
)


def of_lines(course: Course, table: PublishedTable, taken: Taken) -> Table[Beside]:
    rows = [Beside(line, ours(course, line, taken)) for line in table.lines]
    return Table(_LINES, rows, table.title, (_whose(table.hardware, taken),), key="lines")


@dataclass(frozen=True)
class Rank:
    """What stands at a rank, theirs and ours."""

    rank: int
    published: Took | None
    here: Took | None


_OF_TIME = {
    "share": "share",
    "seconds": "time",
    "calls": "calls",
    "mean": "mean",
    "least": "shortest",
    "most": "longest",
}


def _took(whose: str, end: str, names: Iterable[str]) -> tuple[Column[Rank], ...]:
    """The columns of theirs or ours."""

    def column(name: str) -> Column[Rank]:
        def value(row: Rank) -> Any:
            found: Took | None = getattr(row, whose)
            return None if found is None else getattr(found, name) or None

        text = _TEXT[{"share": "fraction", "calls": "count"}.get(name, "s")]
        return Column(f"{whose}_{name}", value, text, title=_OF_TIME[name] + end)

    def called(row: Rank) -> Any:
        found: Took | None = getattr(row, whose)
        return None if found is None else found.name

    return (Column(whose, called, title=whose, left=True), *map(column, names))


MOST = 0.9
WHOLE = 0.99


def of_ranks(course: Course, ranked: Ranked, taken: Taken) -> Table[Rank]:
    """By rank: names differ from program to program, and what takes most is what is asked. Where a report
    lists all there was, all of ours stands beside it."""
    own, why = own_took(course, ranked, taken)
    pairs = itertools.zip_longest(ranked.rows, [Took(why, 0.0)] if why else own)
    rows = [Rank(place, *pair) for place, pair in enumerate(pairs, 1)]
    each = any(row.calls for row in ranked.rows)
    names = [name for name in _OF_TIME if each or name in ("share", "seconds")]
    columns = (
        Column[Rank]("rank"),
        *_took("published", "", names),
        *_took("here", " here", () if why else names),
    )
    most = f"Here those are listed that take {MOST:.0%} of the time together."
    notes = (_whose(ranked.hardware, taken), *(() if why or _whole(ranked) else (most,)))
    return Table(columns, rows, ranked.title, notes, key="ranks")


def _whole(ranked: Ranked) -> bool:
    """Whether a report lists all there was, and not only what took most of the time."""
    return sum(row.share for row in ranked.rows) >= WHOLE


def own_took(course: Course, ranked: Ranked, taken: Taken) -> tuple[list[Took], str]:
    """Ours, from the top: all of it beside a whole list, else until most of the time is told; or why there is
    nothing."""
    from bench.results import kernel_names as names

    share = 1.0 if _whole(ranked) else MOST
    found, why = profiled_table(course, ranked, taken, ranked.of)
    own: list[Took] = []
    so_far = 0.0
    for row in found:
        if so_far >= share:
            break
        so_far += row["share"]
        times = (row[f"{name}_ns"] * 1e-9 for name in ("mean", "min", "max"))
        own.append(
            Took(names.short(row["name"], 60), row["share"], row["time_ns"] * 1e-9, row["calls"], *times)
        )
    return own, why


def profiled_table(
    course: Course,
    shown: Ranked | Remark,
    taken: Taken,
    of: Literal["activities", "calls"],
    window: str = "",
    by: By = "name",
) -> tuple[Sequence[Mapping[str, Any]], str]:
    """The lines of a profile's table of kernels or of calls (window "": of a pass, or from creation to
    close); or none, and why."""
    from bench.results.event_files import events_in
    from bench.views.tables import profile_tables

    if shown.need in taken.why:
        return (), taken.why[shown.need]
    made = next(iter(profiled(course, shown, taken)), None)
    if made is None:
        return (), NOT_MEASURED
    events = events_in(taken.run(shown.need).path, made)
    if of == "activities":
        return profile_tables.activities(made, events, by, window or "pass").rows, ""
    if not events.calls:
        return (), NEEDS_GPU
    return profile_tables.calls(made, events, window or "all").rows, ""


def profiled(course: Course, shown: Ranked | Matrix | Remark, taken: Taken) -> list[Any]:
    """The profiles that were taken of a table's backend."""
    wanted = course.need(shown.need).backend(shown.who)
    measured = taken.run(shown.need).measurements()
    return [made for made in measured if made.case.backend == wanted and made.disposition == "ok"]


@dataclass(frozen=True)
class BatchLine:
    """One batch size, theirs or ours. seconds: by column; why: where there is none."""

    batch: int
    whose: str
    seconds: dict[str, float | None]
    why: dict[str, str]


def of_matrix(course: Course, matrix: Matrix, taken: Taken) -> Table[BatchLine]:
    """Two lines a batch size, theirs and ours."""
    from bench.results import api_calls as api

    own, why = own_seconds(course, matrix, taken), taken.why.get(matrix.need, "")
    rows = []
    for batch, *numbers in matrix.rows:
        published = dict(zip(matrix.columns, (ms * 1e-3 for ms in numbers), strict=True))
        rows.append(BatchLine(int(batch), "published", dict(published), {}))
        found = own.get(int(batch))
        reason = why or (f"left out; --largest {int(batch)} takes it" if found is None else "")
        reasons = {matrix.columns[0]: reason} if reason else {}  # once a line
        if found is not None and course.need(matrix.need).device == "cpu":
            reasons = {c: NEEDS_GPU for c in matrix.columns if c in api.FAMILIES or c in ("htod", "dtoh")}
        rows.append(BatchLine(int(batch), "here", dict(found or {}), reasons))
    columns: list[Column[BatchLine]] = [Column("batch"), Column("whose", title="whose", left=True)]
    columns += [_column(name) for name in matrix.columns]
    fused = sorted({words for row in _course_rows(course, matrix, taken) for words in row["fused"]})
    notes = (_whose(matrix.hardware, taken), *fused)
    return Table(columns, rows, matrix.title, notes, key="matrix")


def _column(name: str) -> Column[BatchLine]:
    return Column(
        name,
        lambda row: row.seconds.get(name),
        cell=lambda row: _seconds(row, name),
        title=_HEADS.get(name, name),
    )


_HEADS = {"htod": "HtoD", "dtoh": "DtoH", "maxpool": "max-pool"}


def _seconds(row: BatchLine, name: str) -> str:
    if name in row.why:
        return row.why[name]
    value = row.seconds.get(name)
    return "" if value is None else units.si(value, "s", 4)


def _course_rows(course: Course, matrix: Matrix, taken: Taken) -> list[dict[str, Any]]:
    from bench.results.event_files import events_in
    from bench.views.tables import course_report as profile_course

    if matrix.need in taken.why:
        return []
    path = taken.run(matrix.need).path
    return [profile_course.row(made, events_in(path, made)) for made in profiled(course, matrix, taken)]


def own_seconds(course: Course, matrix: Matrix, taken: Taken) -> dict[int, dict[str, float | None]]:
    """Ours by batch size and column."""
    return {
        row["batch"]: {name: row[f"{name}_ns"] * 1e-9 for name in matrix.columns}
        for row in _course_rows(course, matrix, taken)
    }


_ADDED = ("htod", "conv", "fc", "dtoh", "maxpool")  # what a pass consists of, on their machine and ours


def totals(course: Course, matrix: Matrix, taken: Taken) -> tuple[dict[int, float], dict[int, float]]:
    """Seconds of a pass by batch size, theirs and ours: kernels and copies together."""
    named = [name for name in matrix.columns if name in _ADDED]
    theirs = {int(batch): dict(zip(matrix.columns, ms, strict=True)) for batch, *ms in matrix.rows}
    return (
        {batch: sum(found[name] * 1e-3 for name in named) for batch, found in theirs.items()},
        {
            batch: sum(found[name] or 0.0 for name in named)
            for batch, found in own_seconds(course, matrix, taken).items()
        },
    )


def _whose(hardware: str, taken: Taken) -> str:
    env = taken.environment
    here = " and ".join(filter(None, (env.gpu, env.cpu))) or "this machine"
    return f"{f'Published: {hardware}' if hardware else 'The report has no such table'}. Here: {here}."
