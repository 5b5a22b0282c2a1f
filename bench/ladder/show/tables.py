"""A ladder as a table for people, and as CSV, JSON and Markdown with every figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bench.ladder.records import Ladder
from bench.ladder.show.rows import RungRow
from bench.results import doubt
from bench.show import tables
from bench.words import units

if TYPE_CHECKING:
    from rich.console import RenderableType

# Why something can be beyond what was measured as the limit.
ABOVE = (
    "the work was done with fewer operations than it counts (as Winograd's and Fourier's ways do), or by "
    "units of which the probe asks less (mma.sync does not reach what wgmma does), or the machine was busy "
    "while it was probed"
)
WORDS = {"unsupported": "refused"} | tables.WORDS


def _interval(pick: Callable[[RungRow], Any], field: str, scale: float = 1.0) -> Callable[[RungRow], Any]:
    def value(row: RungRow) -> float | None:
        interval = pick(row)
        if interval is None or (field != "value" and not interval.known):
            return None
        return float(getattr(interval, field) * scale)

    return value


def _compiled(name: str) -> Callable[[RungRow], Any]:
    return lambda row: row.measurement.compiled.get(name)


# Name as in CSV and JSON, its value of a row, and how Markdown shows that.
Column = tuple[str, Callable[[RungRow], Any], Callable[[Any], str]]
COLUMNS: tuple[Column, ...] = (
    ("number", lambda r: r.measurement.case.number or None, str),
    ("rung", lambda r: r.name, str),
    ("whose", lambda r: "yours" if r.measurement.case.user else "", str),
    ("precision", lambda r: r.case.precision, str),
    ("side", lambda r: "library" if r.case.yardstick else "side" if r.case.side else "", str),
    ("disposition", lambda r: r.measurement.disposition, str),
    (
        "doubtful",
        lambda r: bool(r.all_doubts),
        lambda v: doubt.MARK.strip() if v else "",
    ),
    ("warnings", lambda r: "; ".join(r.all_doubts) or None, str),
    ("fault", lambda r: r.measurement.finding.fault if r.measurement.finding else None, str),
    ("median_s", _interval(lambda r: r.time, "value", 1e-9), lambda v: units.si(v, "s")),
    ("low_s", _interval(lambda r: r.time, "low", 1e-9), lambda v: units.si(v, "s")),
    ("high_s", _interval(lambda r: r.time, "high", 1e-9), lambda v: units.si(v, "s")),
    ("flops_per_s", lambda r: r.flops_per_s, lambda v: units.si(v, "FLOP/s")),
    ("bytes_per_s", lambda r: r.bytes_per_s, lambda v: units.si(v, "B/s")),
    ("share_of_limit", lambda r: r.limit, lambda v: units.percent(v, 1)),
    ("rel_l2_error", lambda r: r.measurement.error.rel_l2 if r.measurement.error else None, tables.exponent),
    ("speedup", _interval(lambda r: r.speedup, "value"), units.times),
    ("speedup_low", _interval(lambda r: r.speedup, "low"), units.times),
    ("speedup_high", _interval(lambda r: r.speedup, "high"), units.times),
    ("gain_over", lambda r: r.below or None, str),
    ("gain", _interval(lambda r: r.gain, "value"), units.times),
    ("gain_low", _interval(lambda r: r.gain, "low"), units.times),
    ("gain_high", _interval(lambda r: r.gain, "high"), units.times),
    ("registers", _compiled("registers"), lambda v: f"{v:.0f}"),
    ("shared_nbytes", _compiled("shared_nbytes"), units.nbytes),
    ("stack_nbytes", _compiled("stack_nbytes"), units.nbytes),
    ("spill_nbytes", _compiled("spill_nbytes"), units.nbytes),
    ("threads", _compiled("threads"), lambda v: f"{v:.0f}"),
    ("occupancy", _compiled("occupancy"), lambda v: units.percent(v, 0)),
    ("checks", lambda r: r.measurement.checks or None, str),
    ("samples", lambda r: len(r.measurement.samples_ns) or None, str),
    ("idea", lambda r: r.measurement.case.idea or None, str),
    ("reason", lambda r: r.measurement.reason or None, str),
)
# The columns whose figures are marked where something speaks against them, and what does.
DOUBTS: dict[str, Callable[[RungRow], tuple[str, ...]]] = {
    **dict.fromkeys(("median_s", "flops_per_s", "bytes_per_s", "share_of_limit"), lambda r: r.doubts),
    "speedup": lambda r: r.speedup_doubts,
    "gain": lambda r: r.gain_doubts,
}


def marked(name: str, text: str, row: RungRow) -> str:
    """A figure of the column `name`, with a mark where it is to be doubted."""
    return doubt.marked(text, DOUBTS[name](row)) if name in DOUBTS else text


def records(rows: Sequence[RungRow]) -> list[dict[str, Any]]:
    """One dictionary a row: plain numbers in base units, None for what is not known."""
    return [{name: value(row) for name, value, _ in COLUMNS} for row in rows]


def to_csv(rows: Sequence[RungRow]) -> str:
    return tables.to_csv(records(rows), [name for name, _, _ in COLUMNS])


def to_json(ladder: Ladder, rungs: Sequence[RungRow], models: Sequence[RungRow]) -> str:
    """The rungs, the whole models and what they were held against."""
    limits = ladder.limits
    found = {
        "title": ladder.job.title,
        "device": ladder.job.device,
        "precision": ladder.job.precision or None,
        "flops": ladder.flops,
        "nbytes": ladder.nbytes,
        "reference": ladder.reference,
        "limits": limits,
        "rungs": records(rungs),
        "models": records(models),
    }
    return tables.to_json(found)


def to_markdown(rows: Sequence[RungRow], columns: Sequence[Column] = COLUMNS) -> str:
    """A pipe table of every column that has a value somewhere."""

    def cell(column: Column, row: RungRow) -> str:
        name, value, text = column
        found = value(row)
        return "" if found is None else marked(name, text(found), row)

    kept = [column for column in columns if any(cell(column, row) for row in rows)]
    lines = [[name.replace("_", " ") for name, _, _ in kept], ["---"] * len(kept)]
    lines += [[cell(column, row) for column in kept] for row in rows]
    return tables.pipes(lines)


def terminal(ladder: Ladder, rungs: Sequence[RungRow], models: Sequence[RungRow] = ()) -> RenderableType:
    """The table for people; ideas and why a rung has no figures stand below it."""
    from rich.console import Group
    from rich.text import Text

    several = units.instances(row.measurement.instances for row in rungs if row.time)
    heading = ", ".join(filter(None, (ladder.job.title, several)))
    made: list[RenderableType] = [Text(heading, style="bold"), _table(rungs)]
    made += [Text(line, style="dim") for line in remarks(ladder, rungs)]
    if models:
        heading = f"{ladder.job.model} as a whole, each rung in it at {ladder.job.node}"
        made += [Text(heading, style="bold"), _table(models, whole=True)]
        made += [Text(line, style="dim") for line in _reasons(models)]
    return Group(*made)


def _table(rows: Sequence[RungRow], whole: bool = False) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cuda = any(row.measurement.compiled for row in rows)
    several = len({row.case.precision for row in rows}) > 1
    names = ["rung", *(["in"] if several else []), "result", "time", "±"]
    if not whole:
        names += ["GFLOP/s", "GB/s", "of limit", "error"]
    names += ["vs ref.", "gain"]
    # Local memory a thread, where there is any.
    local = [
        name
        for name in ("stack_nbytes", "spill_nbytes")
        if any(r.measurement.compiled.get(name) for r in rows)
    ]
    words = ["stack" if name == "stack_nbytes" else "spills" for name in local]
    names += ["regs", "shared", *words, "occ."] if cuda else []
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    room = {name for name, doubts in DOUBTS.items() if any(doubts(row) for row in rows)}

    def figure(name: str, text: str, row: RungRow) -> str:
        """Where a column has a mark, figures without one stay below the others."""
        shown = marked(name, text, row)
        return text + " " * len(doubt.MARK) if text and shown == text and name in room else shown

    for name in names:
        left = name in ("rung", "in", "result")
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for row in rows:
        m = row.measurement
        right = m.disposition == "ok"
        style = "" if right else "dim" if m.disposition == "unsupported" else "bold red"
        outcome = Text(result(row), style=style)
        cells: list[str | Text] = [Text(label(row), style="bold" if m.case.is_reference else "")]
        cells += [m.case.precision, outcome] if several else [outcome]
        cells.append(figure("median_s", units.duration(row.time.value) if row.time else "", row))
        cells.append(units.half_width(row.time.relative) if row.time and row.time.known else "")
        if not whole:
            flops = units.digits(row.flops_per_s / 1e9) if row.flops_per_s else ""
            cells.append(figure("flops_per_s", flops, row))
            nbytes = units.digits(row.bytes_per_s / 1e9) if row.bytes_per_s else ""
            cells.append(figure("bytes_per_s", nbytes, row))
            cells.append(figure("share_of_limit", units.percent(row.limit, 1) if row.limit else "", row))
            cells.append(tables.exponent(m.error.rel_l2) if m.error and right else "")
        cells.append(figure("speedup", units.times(row.speedup.value) if row.speedup else "", row))
        gain = units.times(row.gain.value) + ("*" if row.beside else "") if row.gain else ""
        cells.append(figure("gain", gain, row))
        if cuda:
            facts = m.compiled
            cells.append(f"{facts['registers']:.0f}" if "registers" in facts else "")
            cells += [
                units.nbytes(facts[name]) if name in facts else "" for name in ("shared_nbytes", *local)
            ]
            cells.append(units.percent(facts["occupancy"], 0) if "occupancy" in facts else "")
        table.add_row(*cells)
    return table


def label(row: RungRow) -> str:
    """A rung in words, with whose it is: "90 mine (yours)"."""
    case = row.case
    if case.is_reference:
        return "reference"
    beside = "library" if case.yardstick else "side" if case.side else ""
    marks = [word for word in ("yours" if case.user else "", beside) if word]
    return f"{case.number:02d} {case.rung}" + (f" ({', '.join(marks)})" if marks else "")


def result(row: RungRow) -> str:
    """How it ended, in a word or two; "!" where there is something to know of it."""
    m = row.measurement
    if m.finding is not None:
        return m.finding.fault.replace("_", " ")
    return doubt.marked(WORDS.get(m.disposition, m.disposition), (*row.doubts, *m.notes))


def remarks(ladder: Ladder, rows: Sequence[RungRow]) -> list[str]:
    """Reasons, warnings, the reference and the limits, in sentences."""
    lines = _reasons(rows)
    lines.append(f"reference: {ladder.reference}, the same work as a model of one node")
    if beside := next((row for row in rows if row.beside), None):
        lines.append(f"* beside the ladder: over {beside.below}, the highest rung that is right in fp32")
    if any(row.all_doubts for row in rows):
        lines.append(doubt.MEANING)
    lines += limit_lines(ladder)
    if any(row.limit and row.limit > 1 for row in rows):
        lines.append(f"a share above 100 %: {ABOVE}")
    return lines


def limit_lines(ladder: Ladder) -> list[str]:
    """What the machine was measured to reach, by what, in sentences; none where it is not known."""
    limits = ladder.limits
    if limits is None:
        return []
    lines = [
        f"limits measured here: {units.si(limits.flops_per_s, 'FLOP/s')} ({limits.multiplied_by}), "
        f"{units.si(limits.bytes_per_s, 'B/s')} ({limits.copied_by})"
    ]
    if rates := limits.matrix_flops_per_s:
        told = ", ".join(f"{units.si(rate, 'FLOP/s')} in {precision}" for precision, rate in rates.items())
        lines.append(f"limits of the matrix units measured here: {told} ({limits.matrix_by})")
    if limits.matrix_missing:
        lines.append(f"no limit is known for the matrix units: {limits.matrix_missing}")
    return lines


def _reasons(rows: Sequence[RungRow]) -> list[str]:
    lines = []
    for row in rows:
        m = row.measurement
        if m.reason:
            lines.append(f"{label(row)}: {m.reason}")
        lines += [f"{label(row)}: ! {text}" for text in dict.fromkeys((*row.doubts, *m.notes))]
    return lines
