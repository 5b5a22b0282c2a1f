"""The scoreboard: a table that says how fast each contender is compared with its reference. It has one line
for each contender and one column for each batch size. A contender is a backend in one precision.

Each cell has a grade. Only a decided grade has a colour, and only if nothing speaks against it: from blue
(faster) over the paper's own colour (same) to red (slower). A cell that is not decided is grey and shows no
number. A cell that is doubtful is grey and shows its number with a mark.

The scoreboard is made here once. The terminal, Markdown, HTML and the window show it as a table
(bench.views.tables.scoreboard). Files show it as a picture (`chart`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Literal

import msgspec

from bench.results import doubt
from bench.results.records import Case, Run
from bench.results.rows import Row, contenders, label, title
from bench.results.stats import SAME_BOUND
from bench.views.charts.definitions import Axis, Chart, Panel, Tile
from bench.views.charts.series import failures, most_images
from bench.words import orders, palette, units
from kernels.precision import MIXED

Grade = Literal[
    "faster", "same", "slower", "doubtful", "undecided", "wrong", "none", "reference", "pending", "absent"
]
NO_TIME = "–"
WRONG = {"incorrect": "wrong", "invalid": "invalid"}
FULL, LEAST = 8.0, 0.15  # the ratio at which a colour is full; how far the smallest stands from the paper
UNDECIDED = ("#E3E3E3", "#3A4049")  # on light paper and on dark
MEANING = (
    "Each cell says how fast a backend is beside its reference, both timed in turns. 2.00×: it is twice as "
    "fast. 2.00× slower: it takes twice as long. "
    f"same: within {SAME_BOUND * 100:.0f} %. {orders.NOT_DECIDED}: the measurement does not tell which is "
    f"faster. {NO_TIME}: it has no time."
)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One case, compared with its reference.

    - grade: "faster", "same" and "slower" are decided. "doubtful": decided, but something speaks against it.
      "undecided": compared, without a decision. "wrong": the answers are wrong or invalid. "none": no time,
      or no reference to compare with. "reference": the reference itself. "pending": not measured yet.
      "absent": not to be measured.
    - text: what the cell shows.
    - speedup, low, high: the reference's time divided by this case's (above 1: faster), and its 95 %
      interval; None if nothing was compared.
    - why: the numbers and reasons behind the cell, one sentence on each line.
    - doubts: what speaks against the number; if there is something, the number is marked.
    """

    batch: int
    grade: Grade
    text: str = ""
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""
    doubts: tuple[str, ...] = ()


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One contender with its cells, one for each batch size of the scoreboard. reference: the name of the
    contender that it is compared with ("": none). is_reference: it is itself a reference, and its cells show
    its times."""

    contender: str
    backend: str
    precision: str
    reference: str
    is_reference: bool
    cells: tuple[Cell, ...]

    def at(self, batch: int) -> Cell:
        """The cell of a batch size. Raises KeyError if the scoreboard does not have that batch size."""
        return {cell.batch: cell for cell in self.cells}[batch]


class Scoreboard(msgspec.Struct, frozen=True, kw_only=True):
    """The scoreboard of one model. precision: not empty if it holds only the contenders that are compared in
    that precision. batches: the batch sizes, ascending. lines: first the contenders that are compared, then
    the references with their own times."""

    model: str
    precision: str
    batches: tuple[int, ...]
    lines: tuple[Line, ...]

    @property
    def references(self) -> tuple[str, ...]:
        """The names of all references, each once."""
        return tuple(dict.fromkeys(line.reference for line in self.lines if line.reference))

    @property
    def title(self) -> str:
        """The heading of the scoreboard."""
        of = f", {self.precision}" if self.precision else ""
        beside = f" beside {self.references[0]}" if len(self.references) == 1 else " beside its reference"
        return f"{title(self.model)}{of}, forward pass: each backend{beside}, by batch size"

    @property
    def has_comparisons(self) -> bool:
        """Whether it has a contender that is compared with a reference, or is to be."""
        return any(not line.is_reference for line in self.lines)


def scoreboard(model: str, items: Sequence[Row], runs: Iterable[Run] = (), precision: str = "") -> Scoreboard:
    """Make the scoreboard of one model. items: rows of this model alone. runs: the runs that they come from;
    a case that a run plans and that has no row yet becomes "pending". precision: only copied into the result;
    filter the rows before. If cases differ only in their number of images, the one with the most images is
    shown."""
    runs = tuple(runs)
    shown = {(*_contender(row.case), row.case.batch): row for row in most_images(items)}
    cases = [case for run in runs for case in run.cases if case.model == model]
    planned = {(*_contender(case), case.batch) for case in cases}
    batches = tuple(sorted({key[2] for key in (*shown, *planned)}))
    own = {key[:2] for key, row in shown.items() if row.is_reference}
    known = {info.name: info.reference for run in runs for info in run.environment.backends}
    own |= {key[:2] for key in planned if known.get(key[0]) == key[0]}
    order = dict.fromkeys((*contenders(shown.values()), *(_contender(case) for case in cases)))
    places = {name: place for place, name in enumerate(palette.BACKENDS)}
    lines = [
        _line(
            who,
            "" if who in own else known.get(who[0], ""),
            who in own,
            [shown.get((*who, batch)) for batch in batches],
            batches,
            planned,
        )
        for who in sorted(order, key=lambda who: (who in own, places.get(who[0], len(places))))
    ]
    return Scoreboard(model=model, precision=precision, batches=batches, lines=tuple(lines))


def _contender(case: Case) -> tuple[str, str]:
    return case.backend, case.precision


def _line(
    who: tuple[str, str],
    expected: str,
    is_reference: bool,
    rows: Sequence[Row | None],
    batches: Sequence[int],
    planned: set[tuple[str, str, int]],
) -> Line:
    """The line of the contender `who`. expected: the reference's name if nothing of the contender is measured
    yet. rows: one for each batch size, None if not measured. planned: (backend, precision, batch)."""
    against = [row.against.case for row in rows if row is not None and row.against is not None]
    named = [row.measurement.reference for row in rows if row is not None and not row.is_reference]
    reference = label(*_contender(against[0])) if against else next(iter(named), expected)
    cells = []
    for batch, row in zip(batches, rows, strict=True):
        if row is not None:
            cells.append(cell(row))
        elif (*who, batch) in planned:
            cells.append(Cell(batch=batch, grade="pending", why="not measured yet"))
        else:
            cells.append(Cell(batch=batch, grade="absent"))
    return Line(
        contender=label(*who),
        backend=who[0],
        precision=who[1],
        reference=reference,
        is_reference=is_reference,
        cells=tuple(cells),
    )


def cell(row: Row) -> Cell:
    """The cell of one case."""
    made, measurement = partial(Cell, batch=row.case.batch), row.measurement
    if measurement.disposition in WRONG:
        why = measurement.reason or "its answers are wrong"
        return made(grade="wrong", text=WRONG[measurement.disposition], why=why)
    if measurement.disposition != "ok":
        ended = measurement.disposition.replace("_", " ")
        why = f"{ended}: {measurement.reason}" if measurement.reason else ended
        return made(grade="none", text=NO_TIME, why=why)
    if row.is_reference:
        why = "\n".join([f"the time of a pass: {_time(row, True)}", *row.own_doubts])
        text = doubt.marked(_time(row), row.own_doubts)
        return made(grade="reference", text=text, why=why, doubts=row.own_doubts)
    if row.speedup is None or row.against is None:
        why = "\n".join([f"{measurement.reference} has no time to compare with", *_mixed(row)])
        return made(grade="none", text=NO_TIME, why=why)
    return _compared(row, row.speedup, label(*_contender(row.against.case)))


def _compared(row: Row, speedup: float, reference: str) -> Cell:
    """The cell of a case that has a ratio. reference: its label."""
    verdict = "UNCLEAR" if row.undecided else row.verdict
    doubts = row.speedup_doubts if orders.decided(verdict) else ()
    ratio = orders.cell(verdict, speedup, row.speedup_low, row.speedup_high)
    told = [f"beside {reference}: {ratio}; a pass: {_time(row, True)}"]
    if not orders.decided(verdict):
        told.insert(0, row.undecided or orders.NOT_DECIDED)
        text = orders.NOT_DECIDED
    else:
        text = doubt.marked("same" if verdict == "SAME" else orders.speed(speedup), doubts)
    return Cell(
        batch=row.case.batch,
        grade=orders.role(verdict, doubts) or "undecided",
        text=text,
        speedup=speedup,
        low=row.speedup_low,
        high=row.speedup_high,
        why="\n".join([*told, *_mixed(row), *row.speedup_doubts]),
        doubts=doubts,
    )


def _mixed(row: Row) -> list[str]:
    """What the layers of a mixed precision compute in."""
    facts = row.measurement.facts
    return [facts[MIXED]] if MIXED in facts else []


def _time(row: Row, interval: bool = False) -> str:
    """The median time in words; interval: with its 95 % interval."""
    if row.median_ns is None:
        return NO_TIME
    text = units.duration(row.median_ns)
    if interval and row.low_ns is not None and row.high_ns is not None:
        text += f" ({units.duration(row.low_ns)} to {units.duration(row.high_ns)})"
    return text


def fill(found: Cell, dark: bool = False) -> str:
    """The colour of a cell as "#RRGGBB"; "" if it has none of its own. dark: for a dark background."""
    if found.grade in ("undecided", "doubtful"):
        return UNDECIDED[dark]
    if found.grade == "same":
        return palette.DIVERGING[dark][2]
    if found.grade not in ("faster", "slower") or not found.speedup:
        return ""
    far = LEAST + (1 - LEAST) * min(1.0, abs(math.log(found.speedup)) / math.log(FULL))
    return palette.blend(palette.DIVERGING[dark], 0.5 + (far if found.grade == "slower" else -far) / 2)


def chart(shown: str, items: Sequence[Row], board: Scoreboard) -> Chart | None:
    """The scoreboard as a picture, or None if it compares nothing. shown: the title of the model. items: the
    rows of the model, which tell of failures below the picture."""
    if not board.has_comparisons:
        return None
    several = len(board.references) > 1
    names = [
        f"{line.contender}, time" if line.is_reference
        else f"{line.contender} beside {line.reference}" if several and line.reference
        else line.contender
        for line in board.lines
    ]  # fmt: skip
    tiles = tuple(
        Tile(x=found.batch, row=row, text=found.text, colour=fill(found), grade=found.grade,
             value=found.speedup, low=found.low, high=found.high, doubts=found.doubts, why=found.why)
        for row, line in enumerate(board.lines)
        for found in line.cells
        if found.text
    )  # fmt: skip
    panel = Panel(
        title="",
        x=Axis(label="batch size", unit="images", ticks=tuple(map(float, board.batches))),
        y=Axis(label="", unit="×", ticks=tuple(map(float, range(len(names)))), labels=tuple(names)),
        tiles=tiles,
    )
    beside = board.references[0] if len(board.references) == 1 else "its reference"
    doubted = dict.fromkeys(text for tile in tiles for text in tile.doubts)
    marks = (f"! To be doubted: {doubt.in_short(doubted)}.",) if doubted else ()
    return Chart(
        name=f"{title(board.model)}-scoreboard",
        model=board.model,
        title=f"{shown}: each backend beside {beside}",
        finding="",  # the verdict, which knows the whole run (bench.views.sentences.verdicts)
        panels=(panel,),
        notes=(MEANING, *marks, *failures(items)),
    )
