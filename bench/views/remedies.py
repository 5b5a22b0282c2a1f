"""What may be doubted of a comparison, as a list, and what mends it.

A doubt is a reason to distrust a figure, or why a verdict is not decided (bench.results.doubt, rows). Those
of a model that differ only in their figures are one entry. A remedy is a change of the job: the run starts
again with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from bench.results import doubt
from bench.results.records import Case, Job
from bench.results.rows import Row, title
from bench.run import chosen_rungs
from bench.views.charts.scoreboard import Scoreboard
from bench.views.tables.scoreboard import OPEN
from bench.words import orders, units

Remedy = Literal["longer", "quiet", "one-thread"]
WORDS: dict[Remedy, str] = {
    "longer": "Measure longer",
    "quiet": "Wait until the machine is quiet",
    "one-thread": "Use 1 thread",
}
CHANGES: dict[Remedy, str] = {
    "longer": "4 times the seconds for each case",
    "quiet": "as soon as no other program uses the machine",
    "one-thread": "with one thread, which other programs disturb least",
}
LONGER = 4.0  # times the budget: it halves an interval
# How a sentence begins, and what helps. The first that fits counts.
_HELPS: tuple[tuple[str, tuple[Remedy, ...]], ...] = (
    (r"only \d+ samples?|one sample|only one round|timed in .*: the budget|the interval", ("longer",)),
    (r"round by round it is one way|the fastest passes", ("longer", "quiet")),
    (r"other programs used [\d.]+ of", ("quiet", "one-thread")),
    (r"other programs used the GPU|the GPU (was held|ran at)", ("quiet",)),
    (f"{doubt.UNQUIET}|instances differ", ("quiet", "longer")),
    (r"from end to end the rate is known", ("longer", "quiet")),
)


@dataclass(frozen=True)
class Doubt:
    """One entry. model: as in its cases; who: the contenders and batch sizes, in words; what: "doubtful" or
    "not decided"; why: the sentence, of several alike that with the largest figures; cases: that it is about;
    remedies: what helps, the best first."""

    model: str
    who: str
    what: str
    why: str
    cases: tuple[Case, ...]
    remedies: tuple[Remedy, ...]


def helps(why: str) -> tuple[Remedy, ...]:
    """What mends a doubt, by its sentence; () if nothing that can be started from here does."""
    text = why.removeprefix(orders.NOT_DECIDED).lstrip(": ")
    return next((found for pattern, found in _HELPS if re.match(pattern, text)), ())


def doubts(items: Sequence[Row]) -> list[Doubt]:
    """The doubts of these rows, in the order in which they are met."""
    found: dict[tuple[str, str, str], dict[Case, str]] = {}
    for row in items:
        told = [("doubtful", text) for text in row.own_doubts]
        told += [(orders.NOT_DECIDED, row.undecided)] if row.undecided else []
        for what, text in told:
            alike = doubt.without_figures(text.partition(":")[0] if "interval" in text else text)
            found.setdefault((row.case.model, what, alike), {})[row.case] = text
    named = {row.case: row.contender for row in items}
    known: dict[str, set[int]] = {}
    for row in items:
        known.setdefault(row.case.model, set()).add(row.case.batch)
    return [
        Doubt(
            model,
            _who(cases, named, known[model]),
            what,
            why := doubt.worst(cases.values()),
            tuple(cases),
            helps(why),
        )
        for (model, what, _), cases in found.items()
    ]


def _who(cases: Iterable[Case], named: dict[Case, str], known: set[int]) -> str:
    batches: dict[str, set[int]] = {}
    for case in cases:
        batches.setdefault(named[case], set()).add(case.batch)
    return "; ".join(f"{who}, batch {units.spans(sizes, known)}" for who, sizes in batches.items())


def counted(boards: Iterable[Scoreboard], found: Sequence[Doubt]) -> str:
    """ "Doubts: 2 !, 1 ?": as many as these scoreboards have cells with each mark. "3 doubts" where they have
    none, because what is doubted is compared with nothing; "" for no doubts."""
    cells = [cell for board in boards for line in board.lines if not line.is_reference for cell in line.cells]
    marks = {
        doubt.MARK.strip(): sum(bool(cell.doubts) for cell in cells),
        OPEN: sum(cell.grade == "undecided" for cell in cells),
    }
    if told := ", ".join(f"{count:,} {mark}" for mark, count in marks.items() if count):
        return f"Doubts: {told}"
    return units.count(len(found), "doubt") if found else ""


_CHANGED: dict[Remedy, Callable[[Job], Job]] = {
    "longer": lambda job: msgspec.structs.replace(job, budget_s=LONGER * job.budget_s),
    "quiet": lambda job: job,
    "one-thread": lambda job: msgspec.structs.replace(job, threads=1),
}


def again(job: Job, found: Doubt, remedy: Remedy) -> Job:
    """The job that mends a doubt: the run's own, of the doubted model alone, with the changed setting."""
    models = tuple(name for name in job.models if name == found.model or title(name) == title(found.model))
    models = models or (found.model,)
    names = {*models, *map(title, models)}
    # What is said of a model that is not compared is a mistake.
    alone = msgspec.structs.replace(
        job,
        models=models,
        own_batches={name: value for name, value in job.own_batches.items() if name in names},
        own_images={name: value for name, value in job.own_images.items() if name in names},
        dims={
            name: size
            for name, size in job.dims.items()
            if ":" not in name or name.rpartition(":")[0] in names
        },
        rungs=chosen_rungs.compared(job.rungs, models, job.models),
        swaps=chosen_rungs.compared(job.swaps, models, job.models),
    )
    return _CHANGED[remedy](alone)
