"""The page of speed: a table of what stands beside what, all that is behind a rival, and each processor's
cases with every rival's ratio."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.extras.reports import filled
from bench.extras.reports.filled import Page, Source
from bench.extras.reports.goals.judged import UNKNOWN
from bench.extras.reports.speed import lines
from bench.extras.reports.speed.lines import Line, Pair
from bench.extras.reports.speed.sitting import Rival, Sitting
from bench.results.doubt import marked
from bench.views.reports import report_form
from bench.views.tables.comparison_tables import seconds
from bench.views.tables.table import Column, Table
from bench.words import units
from bench.words.called import CALLED

TITLE = "Speed, measured"
NOTES = (
    "A ratio is a rival's time over ours: above 1× ours is faster. Behind it stands its 95 % interval, where "
    "that was kept; both were timed in turns in one process, and every answer was checked.",
    "Of each case the newest figure stands here. A rival that was measured before and not since has a line "
    "of that day.",
    "ort-cuda-tuned-strict is ONNX Runtime with the fastest of its options whose every layer stays within "
    "the bound of the precision. fp32-tc, which no rival has, stands beside fp32, and bf16 beside fp16 where "
    "a rival has none.",
    '"!" marks a figure that may be wrong, because something disturbed the measurement.',
)


def write(sittings: Sequence[Sitting], named: Sequence[Path], out: Path, heading: str = "") -> list[Path]:
    """Write it in the form of the file's ending; what was written. named: as the user named the sittings."""
    form = report_form.form_of(out)
    return form.write(filled.TEMPLATE, context(sittings, named, heading))


def context(sittings: Sequence[Sitting], named: Sequence[Path], heading: str = "") -> dict[str, object]:
    """What the template tells."""
    by = lines.by_processor(sittings)
    ordered = [sitting for several in by.values() for sitting in several]
    newest = {processor: lines.newest(several) for processor, several in by.items()}
    every = [pair for found in newest.values() for pair in lines.pairs(found)]
    tables: list[Table[Any]] = [_sittings(ordered), *_rivals(every), *_behind(every), *_refused(newest)]
    for processor, found in newest.items():
        for flowing in (False, True):
            tables += _cases(processor, [line for line in found if line.case.flowing == flowing], flowing)
    page = Page(
        command=" ".join(["speed", *(path.as_posix() for path in named)]),
        heading=TITLE,
        strip=[],
        notes=NOTES,
        tables=tables,
        figures=[],
        method="words_speed.j2",
        pictured=False,
    )
    return {
        "page": page,
        "heading": heading or page.heading,
        "records": units.count(len(ordered), "sitting"),
        "rivals": [],
        "machines": [],
        "sources": [source for one in ordered for source in _sources(one)],
        "missing": [],
    }


def _sources(sitting: Sitting) -> Iterator[Source]:
    """Its commands, the first below all that is known of where it was measured."""
    named = f"{sitting.processor}, {_days(sitting)}"
    known = (named, *sitting.machines, *sitting.versions, *sitting.rivals, sitting.source)
    for place, command in enumerate(sitting.commands):
        words = f"{named}, further" if place else " · ".join(filter(None, known))
        yield Source(words, f"{CALLED} {command}")


def _days(sitting: Sitting) -> str:
    return " to ".join(dict.fromkeys((sitting.first, sitting.last)))


# ------------------------------------------------------------------------------------------------- overview


def _counted(name: str) -> Column[Sitting]:
    def cell(sitting: Sitting) -> str:
        if not sitting.outcomes:
            return ""
        of = [one for one in sitting.outcomes if one.outcome == name]
        doubtful = sum(one.count for one in of if one.doubtful)
        return f"{sum(one.count for one in of):,}" + (f" ({doubtful:,} !)" if doubtful else "")

    return Column(name.replace(" ", "_"), cell=cell, title=name)


def _version(rival: str) -> str:
    """Without what names a build: "openvino 2026.4.1-22982-e213a147257" is its version 2026.4.1."""
    return rival.partition("-")[0] if rival.partition(" ")[2] else rival


def _goals(sitting: Sitting) -> str:
    every = sum(of.count for of in sitting.outcomes)
    return f"{sitting.goals}, {every:,}" if sitting.goals else ""


def _sittings(sittings: Sequence[Sitting]) -> Table[Sitting]:
    columns: tuple[Column[Sitting], ...] = (
        Column("processor", lambda one: one.processor, left=True),
        Column("days", _days, left=True),
        Column("rivals", lambda one: ", ".join(map(_version, one.rivals)), left=True, title="beside"),
        Column("goals", _goals, left=True),
        *map(_counted, ("reached", "not reached", "open", UNKNOWN)),
        Column("again", lambda one: one.again, left=True, title="second run"),
    )
    notes = ('"(4 !)": four of these goals are decided by a figure that is marked "!".',)
    return Table(columns, sittings, "Sittings", notes, key="sittings").telling()


def _rivals(every: Sequence[Pair]) -> list[Table[list[Pair]]]:
    """One line for each rival on each processor."""
    groups: dict[tuple[str, str, bool], list[Pair]] = {}
    for pair in every:
        key = pair.line.sitting.processor, pair.beside.name, pair.line.case.flowing
        groups.setdefault(key, []).append(pair)

    def count(order: int) -> Callable[[list[Pair]], int]:
        return lambda several: sum(lines.order(pair.beside) == order for pair in several)

    columns: tuple[Column[list[Pair]], ...] = (
        Column("processor", lambda several: several[0].line.sitting.processor, left=True),
        Column("rival", lambda several: several[0].beside.name, left=True),
        Column("of", lambda several: _what(several[0].line.case.flowing), left=True, title="what"),
        Column("cases", len),
        Column("ahead", count(1)),
        Column("undecided", count(0), title="not decided"),
        Column("behind", count(-1)),
        Column("mean", _mean, units.times, title="mean ratio"),
        Column("range", cell=_range, title="from … to", left=True),
    )
    notes = (
        "A case is one model in one precision at one batch size. Ours is ahead or behind where the whole "
        "interval says so; without an interval, beyond 2 %. The mean is the geometric one.",
    )
    return [Table(columns, list(groups.values()), "Ahead and behind", notes, key="rivals")] if groups else []


def _what(flowing: bool) -> str:
    return "end to end" if flowing else "forward pass"


def _mean(several: Sequence[Pair]) -> float:
    return math.exp(sum(math.log(pair.beside.ratio) for pair in several) / len(several))


def _range(several: Sequence[Pair]) -> str:
    ratios = [pair.beside.ratio for pair in several]
    return f"{units.times(min(ratios))} … {units.times(max(ratios))}"


# ---------------------------------------------------------------------------------------------- what it loses

_OF_CASE: tuple[Column[Line], ...] = (
    Column("model", lambda line: line.case.model, left=True),
    Column("precision", lambda line: line.case.precision, left=True),
    Column("batch", lambda line: line.case.batch),
)
_TIME: Column[Line] = Column(
    "ours_s",
    lambda line: None if line.case.ns is None else line.case.ns * 1e-9,
    seconds,
    lambda line: (line.case.doubts,) if line.case.doubts else (),
    title="ours",
)
_DAY: Column[Line] = Column("day", lambda line: line.day, left=True)


def _of(column: Column[Line]) -> Column[Pair]:
    return column.through(lambda pair: pair.line)


def _behind(every: Sequence[Pair]) -> list[Table[Pair]]:
    """All cases where a rival is ahead; of each processor the furthest first."""
    order = list(dict.fromkeys(pair.line.sitting.processor for pair in every))
    found = sorted(
        (pair for pair in every if lines.order(pair.beside) < 0),
        key=lambda pair: (order.index(pair.line.sitting.processor), pair.beside.ratio),
    )
    columns: tuple[Column[Pair], ...] = (
        Column("processor", lambda pair: pair.line.sitting.processor, left=True),
        *map(_of, _OF_CASE),
        Column("of", lambda pair: _what(pair.line.case.flowing), left=True, title="what"),
        _of(_TIME),
        Column("rival", lambda pair: pair.beside.name, left=True),
        Column("theirs_s", lambda pair: pair.beside.ns * 1e-9, seconds, title="theirs"),
        Column("ratio", cell=lambda pair: _ratio(pair.beside)),
        _of(_DAY),
    )
    notes = () if found else ("No rival is ahead in any case that was measured.",)
    return [Table(columns, found, "Where a rival is ahead", notes, key="behind")]


def _refused(newest: dict[str, list[Line]]) -> list[Table[Line]]:
    """What has no time of ours; none where there is no such case."""
    found = [line for several in newest.values() for line in several if line.own and line.case.ns is None]
    columns: tuple[Column[Line], ...] = (
        Column("processor", lambda line: line.sitting.processor, left=True),
        *_OF_CASE,
        Column("reason", lambda line: line.case.reason, left=True),
        _DAY,
    )
    return [Table(columns, found, "Without a time", key="refused")] if found else []


# ------------------------------------------------------------------------------------------------------ cases


def _ratio(beside: Rival) -> str:
    told = units.times(beside.ratio)
    if beside.low is not None and beside.high is not None:
        told += f" ({units.times(beside.low)} to {units.times(beside.high)})"
    return marked(told, (beside.doubts,) if beside.doubts else ())


def _cases(processor: str, among: Sequence[Line], flowing: bool) -> list[Table[Line]]:
    """A column for each rival; none where nothing was measured."""
    names = dict.fromkeys(one.name for line in among for one in line.case.beside)
    images: Column[Line] = Column(
        "images_per_s",
        lambda line: None if line.case.ns is None else line.case.batch * 1e9 / line.case.ns,
        units.si,
        _TIME.doubts,
        title="ours, images/s",
    )

    def rival(name: str) -> Column[Line]:
        def cell(line: Line) -> str:
            return next((_ratio(one) for one in line.case.beside if one.name == name), "")

        return Column(name, cell=cell)

    columns = (
        *_OF_CASE,
        images if flowing else _TIME,
        *map(rival, names),
        Column("error", lambda line: line.case.error or None, left=True, title="error"),
        _DAY,
    )
    what = "from images on the host to answers there" if flowing else "forward pass"
    shown = [line for line in among if line.case.ns is not None]
    return [Table(columns, shown, f"{processor}: {what}", key="cases").telling()] if shown else []
