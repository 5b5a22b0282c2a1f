"""The tables of a course report: what was published, and ours beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.extras.reports.courses.needs import NEEDS_GPU, Taken, backend
from bench.extras.reports.courses.presets import Course, Line, Matrix, PublishedTable, Ranked
from bench.extras.reports.courses.values import Ours, ours
from bench.results import doubt
from bench.show.table import Column, Table
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
    ours: Ours

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


@dataclass(frozen=True)
class Rank:
    """What stands at a rank: a name, the share of the time, the time in words; theirs and ours."""

    rank: int
    theirs: tuple[str, float, float] | None
    ours: tuple[str, float, float] | None


def _part(which: str, place: int) -> Any:
    def value(row: Rank) -> Any:
        found = getattr(row, which)
        return None if found is None or (place == 2 and not found[2]) else found[place]

    return value


_RANKS: tuple[Column[Rank], ...] = (
    Column("rank"),
    Column("published", _part("theirs", 0), title="published", left=True),
    Column("published_share", _part("theirs", 1), lambda v: units.percent(v, 2), title="share"),
    Column("published_s", _part("theirs", 2), lambda v: units.si(v, "s", 4), title="time"),
    Column("here", _part("ours", 0), title="here", left=True),
    Column("here_share", _part("ours", 1), lambda v: units.percent(v, 2), title="share here"),
    Column("here_s", _part("ours", 2), lambda v: units.si(v, "s", 4), title="time here"),
)
MOST = 0.9


def of_ranks(course: Course, ranked: Ranked, taken: Taken) -> Table[Rank]:
    """By rank: names differ from program to program, and what takes most is what is asked."""
    own, why = _own_lines(course, ranked, taken)
    count = max(len(ranked.rows), len(own))
    rows = [
        Rank(
            place + 1,
            ranked.rows[place] if place < len(ranked.rows) else None,
            own[place] if place < len(own) else ((why, 0.0, 0.0) if place == 0 and why else None),
        )
        for place in range(max(count, 1 if why else 0))
    ]
    if why:
        columns = tuple(c for c in _RANKS if not c.name.startswith("here_"))
        return Table(columns, rows, ranked.title, (_whose(ranked.hardware, taken),), key="ranks")
    notes = (
        _whose(ranked.hardware, taken),
        f"Here those are listed that take {MOST:.0%} of the time together.",
    )
    return Table(_RANKS, rows, ranked.title, notes, key="ranks")


def _own_lines(course: Course, ranked: Ranked, taken: Taken) -> tuple[list[tuple[str, float, float]], str]:
    from bench.profile.event_files import events_in
    from bench.profile.show import names
    from bench.profile.show import tables as profile_tables

    need = course.need(ranked.need)
    if need.name in taken.why:
        return [], taken.why[need.name]
    folder = taken.runs[need.name]
    wanted = backend(need, ranked.who)
    made = next(
        (m for m in folder.measurements() if m.case.backend == wanted and m.disposition == "ok"), None
    )
    if made is None:
        return [], "not measured"
    events = events_in(folder.path, made)
    if ranked.of == "calls":
        if not events.calls:
            return [], NEEDS_GPU
        found = profile_tables.calls(made, events, "all")
    else:
        found = profile_tables.activities(made, events)
    own: list[tuple[str, float, float]] = []
    so_far = 0.0
    for row in found.rows:
        if so_far >= MOST:
            break
        so_far += row["share"]
        own.append((names.short(row["name"], 60), row["share"], row["time_ns"] * 1e-9))
    return own, ""


@dataclass(frozen=True)
class BatchLine:
    """One batch size, theirs or ours. seconds: by column; why: where there is none."""

    batch: int
    whose: str
    seconds: dict[str, float | None]
    why: dict[str, str]


def of_matrix(course: Course, matrix: Matrix, taken: Taken) -> Table[BatchLine]:
    """Two lines a batch size, theirs and ours."""
    from bench.profile import api

    own, why = own_seconds(course, matrix, taken)
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
    notes = (_whose(matrix.hardware, taken), *_fused(course, matrix, taken))
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
    from bench.profile.event_files import events_in
    from bench.profile.show import course as profile_course

    folder = taken.runs[matrix.need]
    wanted = backend(course.need(matrix.need), matrix.who)
    return [
        profile_course.row(made, events_in(folder.path, made))
        for made in folder.measurements()
        if made.case.backend == wanted and made.disposition == "ok"
    ]


def own_seconds(
    course: Course, matrix: Matrix, taken: Taken
) -> tuple[dict[int, dict[str, float | None]], str]:
    """Ours by batch size and column; or why there is nothing."""
    if matrix.need in taken.why:
        return {}, taken.why[matrix.need]
    return {
        row["batch"]: {name: row[f"{name}_ns"] * 1e-9 for name in matrix.columns}
        for row in _course_rows(course, matrix, taken)
    }, ""


def _fused(course: Course, matrix: Matrix, taken: Taken) -> Sequence[str]:
    if matrix.need in taken.why:
        return ()
    return sorted({words for row in _course_rows(course, matrix, taken) for words in row["fused"]})


def _whose(hardware: str, taken: Taken) -> str:
    env = taken.environment
    here = " and ".join(filter(None, (env.gpu, env.cpu))) or "this machine"
    return f"Published: {hardware}. Here: {here}."
