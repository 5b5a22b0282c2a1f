"""The tables of a course report: what was published, and ours beside it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.extras.reports.courses.presets import Course, Line, Matrix, PublishedTable, Ranked
from bench.extras.reports.courses.values import ours
from bench.extras.reports.figures import Figure
from bench.extras.reports.needs import NEEDS_GPU, NOT_MEASURED, Taken
from bench.results import doubt
from bench.views.tables.table import Column, Table
from bench.words import orders, units

_TEXT = {
    "s": lambda value: units.si(value, "s", 4),
    "fraction": lambda value: units.percent(value, 2),
    "B": units.nbytes,
    "count": lambda value: f"{value:,.0f}",
    "ratio": units.times,
}


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
        found = self.ours
        if found.value is None:
            return found.why
        text = doubt.marked(_TEXT[self.line.unit](found.value), found.doubts)
        if found.low is not None and found.high is not None:
            text += f" ({' to '.join(_TEXT[self.line.unit](end) for end in (found.low, found.high))})"
        return f"{text}, of {found.few:,} images" if found.few else text

    @property
    def times(self) -> str:
        """Theirs over ours, of times of the same work."""
        if self.ours.few or self.line.unit != "s" or not self.line.published or not self.ours.value:
            return ""
        return doubt.marked(orders.speed(self.line.published / self.ours.value), self.ours.doubts)


_LINES: tuple[Column[Beside], ...] = (
    Column("what", lambda row: row.line.what, title="figure", left=True),
    Column("published", lambda row: row.line.published, cell=lambda row: row.published, title="published"),
    Column("ours", lambda row: row.ours.value, cell=lambda row: row.own, title="here (95 % interval)"),
    Column("theirs_over_ours", cell=lambda row: row.times, title="published over here"),
    Column("rung", lambda row: row.ours.rung, title="our rung", left=True),
)


def of_lines(course: Course, table: PublishedTable, taken: Taken) -> Table[Beside]:
    rows = [Beside(line, ours(course, line, taken)) for line in table.lines]
    return Table(_LINES, rows, table.title, (_whose(table.hardware, taken),), key="lines")


Ranking = tuple[str, float, float]  # a name, the share of the time, seconds (0: not known)


@dataclass(frozen=True)
class Rank:
    """What stands at a rank, theirs and ours."""

    rank: int
    published: Ranking | None
    here: Ranking | None


def _ranked(whose: str, end: str) -> tuple[Column[Rank], ...]:
    """The columns of theirs or ours."""

    def part(place: int) -> Callable[[Rank], Any]:
        def value(row: Rank) -> Any:
            found: Ranking | None = getattr(row, whose)
            return None if found is None or (place == 2 and not found[2]) else found[place]

        return value

    return (
        Column(whose, part(0), title=whose, left=True),
        Column(f"{whose}_share", part(1), lambda v: units.percent(v, 2), title=f"share{end}"),
        Column(f"{whose}_s", part(2), lambda v: units.si(v, "s", 4), title=f"time{end}"),
    )


MOST = 0.9


def of_ranks(course: Course, ranked: Ranked, taken: Taken) -> Table[Rank]:
    """By rank: names differ from program to program, and what takes most is what is asked."""
    own, why = _own_lines(course, ranked, taken)
    pairs = itertools.zip_longest(ranked.rows, [(why, 0.0, 0.0)] if why else own)
    rows = [Rank(place, *pair) for place, pair in enumerate(pairs, 1)]
    here = _ranked("here", " here")
    columns = (Column[Rank]("rank"), *_ranked("published", ""), *(here[:1] if why else here))
    most = f"Here those are listed that take {MOST:.0%} of the time together."
    notes = (_whose(ranked.hardware, taken), *(() if why else (most,)))
    return Table(columns, rows, ranked.title, notes, key="ranks")


def _own_lines(course: Course, ranked: Ranked, taken: Taken) -> tuple[list[Ranking], str]:
    from bench.results import kernel_names as names
    from bench.results.event_files import events_in
    from bench.views.tables import profile_tables

    if ranked.need in taken.why:
        return [], taken.why[ranked.need]
    folder = taken.run(ranked.need)
    made = next(iter(_profiled(course, ranked, taken)), None)
    if made is None:
        return [], NOT_MEASURED
    events = events_in(folder.path, made)
    if ranked.of == "calls" and not events.calls:
        return [], NEEDS_GPU
    calls = ranked.of == "calls"
    found = profile_tables.calls(made, events, "all") if calls else profile_tables.activities(made, events)
    own: list[Ranking] = []
    so_far = 0.0
    for row in found.rows:
        if so_far >= MOST:
            break
        so_far += row["share"]
        own.append((names.short(row["name"], 60), row["share"], row["time_ns"] * 1e-9))
    return own, ""


def _profiled(course: Course, shown: Ranked | Matrix, taken: Taken) -> list[Any]:
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
        reason = why or ("left out on a CPU: --largest" if found is None else "")
        reasons = dict.fromkeys(matrix.columns, reason) if reason else {}
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
    return [profile_course.row(made, events_in(path, made)) for made in _profiled(course, matrix, taken)]


def own_seconds(course: Course, matrix: Matrix, taken: Taken) -> dict[int, dict[str, float | None]]:
    """Ours by batch size and column."""
    return {
        row["batch"]: {name: row[f"{name}_ns"] * 1e-9 for name in matrix.columns}
        for row in _course_rows(course, matrix, taken)
    }


def _whose(hardware: str, taken: Taken) -> str:
    env = taken.environment
    here = " and ".join(filter(None, (env.gpu, env.cpu))) or "this machine"
    return f"Published: {hardware}. Here: {here}."
