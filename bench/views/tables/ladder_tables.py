"""A ladder as a table for people, and as CSV, JSON and Markdown with every figure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.results import doubt
from bench.results.finding import Finding
from bench.results.ladder_records import OF_FUNCTION, OF_LIBRARY, Ladder
from bench.results.ladder_rows import RungRow
from bench.results.machine_limits import OF_BYTES, MachineLimits
from bench.views.sentences import ladder_story as story
from bench.views.sentences.limits import matrix_rates
from bench.views.tables import comparison_tables as tables
from bench.views.tables import count_columns
from bench.views.tables.grid import Grid
from bench.views.tables.table import Column, Output, Table, head, pick, records, row_type
from bench.words import orders, units

if TYPE_CHECKING:
    from rich.console import RenderableType

# Why something can be beyond what was measured as the limit.
ABOVE = (
    "the work was done with fewer operations than it counts (as Winograd's and Fourier's ways do), or by "
    "numbers that cost the units less power than the probe's random ones (zeros do), or its data lay nearer "
    "to the cores than the caches that were probed, or the machine was busy while it was probed"
)
WORDS = {"unsupported": "refused"} | tables.WORDS


def _interval(pick: Callable[[RungRow], Any], field: str, scale: float = 1.0) -> Callable[[RungRow], Any]:
    def value(row: RungRow) -> float | None:
        interval = pick(row)
        if interval is None or (field != "value" and not interval.known):
            return None
        return float(getattr(interval, field) * scale)

    return value


def compiled(name: str, text: Callable[[Any], str], title: str, tip: str) -> Column[RungRow]:
    """A figure that the compiler tells."""
    return Column(name, lambda r: r.measurement.compiled.get(name), text, title=title, tip=tip)


def _own(row: RungRow) -> tuple[str, ...]:
    return row.doubts


def _reference(row: RungRow) -> tuple[str, ...]:
    return row.speedup_doubts


def _below(row: RungRow) -> tuple[str, ...]:
    return row.gain_doubts


def _count(value: float) -> str:
    return f"{value:.0f}"


def _bound(row: RungRow) -> float | None:
    return row.measurement.error.bound if row.measurement.error else None


_word = partial(Column[RungRow], left=True)
COLUMNS: tuple[Column[RungRow], ...] = (
    Column("number", lambda r: r.case.number or None, title="#", tip="The rung's number"),
    _word("rung", lambda r: r.name, tip="Its name; your own are marked"),
    _word("whose", lambda r: "yours" if r.case.user else ""),
    _word("precision", lambda r: r.case.precision, title="in"),
    _word("side", lambda r: "library" if r.case.yardstick else "side" if r.case.side else ""),
    _word("disposition", lambda r: r.measurement.disposition, lambda name: WORDS.get(name, name),
          title="result", tip="Right, wrong, refused, or what goes on with it now"),
    Column("doubtful", lambda r: bool(r.all_doubts), lambda doubtful: doubt.MARK.strip() if doubtful else "",
           holds=bool),
    _word("warnings", lambda r: "; ".join(r.all_doubts) or None),
    _word("fault", lambda r: r.measurement.finding.fault if r.measurement.finding else None),
    Column("median_s", _interval(lambda r: r.time, "value", 1e-9), tables.seconds, _own, "time",
           "Median time of a pass"),
    Column("low_s", _interval(lambda r: r.time, "low", 1e-9), tables.seconds),
    Column("high_s", _interval(lambda r: r.time, "high", 1e-9), tables.seconds),
    Column("flops_per_s", lambda r: r.flops_per_s, partial(units.si, unit="FLOP/s"), _own, "FLOP/s",
           "Operations a second"),
    Column("bytes_per_s", lambda r: r.bytes_per_s, partial(units.si, unit="B/s"), _own, "B/s",
           "Bytes a second of what it reads and writes at least, weights as it keeps them"),
    Column("share_of_limit", lambda r: r.limit, partial(units.percent, decimals=1), _own, "of limit",
           "The time that the measured limits ask at least, over the time taken"),
    Column("rel_l2_error", lambda r: r.measurement.error.rel_l2 if r.measurement.error else None,
           units.exponent, title="error", tip="Relative L2 error against the float64 oracle"),
    Column("speedup", _interval(lambda r: r.speedup, "value"), units.times, _reference, "vs ref.",
           "Whether it is faster than the reference: the reference's time over this one's, round by round",
           cell=lambda r: orders.interval_words(r.verdict, r.speedup)),
    Column("speedup_low", _interval(lambda r: r.speedup, "low"), units.times),
    Column("speedup_high", _interval(lambda r: r.speedup, "high"), units.times),
    _word("verdict", lambda r: r.verdict or None),
    _word("gain_over", lambda r: r.below or None),
    Column("gain", _interval(lambda r: r.gain, "value"), units.times, _below,
           tip="Whether it is faster than the rung that is named: that one's time over this one's, round by "
           "round", cell=lambda r: gain(r)),
    Column("gain_low", _interval(lambda r: r.gain, "low"), units.times),
    Column("gain_high", _interval(lambda r: r.gain, "high"), units.times),
    _word("gain_verdict", lambda r: r.gain_verdict or None),
    compiled("registers", _count, "regs", "Registers a thread"),
    compiled("shared_nbytes", units.nbytes, "shared", "Shared memory a block"),
    compiled("stack_nbytes", units.nbytes, "stack",
             "Local memory a thread: arrays indexed at run time, and room for spills"),
    compiled("spill_nbytes", units.nbytes, "spills",
             "Bytes that instructions store and load for want of registers"),
    compiled("threads", _count, "threads", "Threads a block"),
    compiled("occupancy", partial(units.percent, decimals=0), "occ.", "Theoretical occupancy"),
    Column("checks", lambda r: r.measurement.checks or None),
    Column("samples", lambda r: len(r.measurement.samples_ns) or None),
    _word("idea", lambda r: r.measurement.case.idea or None),
    _word("reason", lambda r: r.measurement.reason or None, title="why", tip="Why it has no figures"),
    _word("language", lambda r: r.case.language or None, tip="What it is written in, but for CUDA C++"),
    Column("error_bound", _bound,
           units.exponent, title="bound", tip="The relative L2 error that its precision and method may have"),
    *count_columns.COLUMNS,
)  # fmt: skip
# Half the interval, which CSV has as its ends.
RELATIVE: Column[RungRow] = Column(
    "relative",
    lambda r: r.time.relative if r.time and r.time.known else None,
    units.half_width,
    title="±",
    tip="Half the 95 % interval of the median, relative",
)


def table(rows: Sequence[RungRow]) -> Table[RungRow]:
    return Table(COLUMNS, rows)


RUNG = row_type("LadderRung", COLUMNS, "A rung, or the reference.", finding=Finding | None)


class LadderOutput(Output, frozen=True, kw_only=True):
    """`ladder --format json`. line: which rung is the fastest, in words; rungs: as in CSV, with what is wrong
    with an answer; models: whole models with a rung in them."""

    title: str
    device: str
    precision: str | None
    flops: int
    nbytes: int
    reference: str
    limits: MachineLimits | None
    line: str
    rungs: tuple[RUNG, ...]  # type: ignore[valid-type]
    models: tuple[RUNG, ...]  # type: ignore[valid-type]


def output(ladder: Ladder, rungs: Sequence[RungRow], models: Sequence[RungRow]) -> LadderOutput:
    """The rungs, the whole models and what they were held against."""
    return LadderOutput(
        **head([ladder]),
        title=ladder.job.title,
        device=ladder.job.device,
        precision=ladder.job.precision or None,
        flops=ladder.flops,
        nbytes=ladder.nbytes,
        reference=ladder.reference,
        limits=ladder.reached,
        line=line(ladder, rungs),
        rungs=_with_findings(rungs),
        models=_with_findings(models),
    )


def line(ladder: Ladder, rungs: Sequence[RungRow]) -> str:
    """Which rung is the fastest, in a sentence."""
    return story.finding(ladder, rungs)


def _with_findings(rows: Sequence[RungRow]) -> tuple[dict[str, Any], ...]:
    found = zip(records(table(rows)), rows, strict=True)
    return tuple(record | {"finding": row.measurement.finding} for record, row in found)


def label(row: RungRow) -> str:
    """A rung in words, with whose it is: "90 mine (yours)"."""
    case = row.case
    if case.is_reference:
        return "reference"
    beside = "library" if case.yardstick else "side" if case.side else ""
    marks = [word for word in ("yours" if case.user else "", case.language, beside) if word]
    return case.label + (f" ({', '.join(marks)})" if marks else "")


def wrong(finding: Finding) -> str:
    """ "wrong: bias"; "wrong" where the mistake has no name of its own."""
    fault = finding.fault.replace("_", " ")
    return fault if fault == "wrong" else f"wrong: {fault}"


def result(row: RungRow) -> str:
    """How it ended, in a word or two; "!" where there is something to know of it."""
    m = row.measurement
    if m.finding is not None:
        return wrong(m.finding)
    return doubt.marked(WORDS.get(m.disposition, m.disposition), (*row.doubts, *m.notes))


_OVER = {"FASTER": "over", "SLOWER": "than", "SAME": "as"}


def gain(row: RungRow) -> str:
    """The gain, with what it is over: "2.00× over 01", "1.25× slower than 02", "same as 03", "not decided
    (03)"."""
    if row.gain is None or row.lower is None or not row.gain_verdict:
        return ""
    over, told = f"{row.lower.case.number:02d}", orders.interval_words(row.gain_verdict, row.gain)
    if row.gain_verdict not in _OVER:
        return f"{told} ({over})"
    return f"{told.removesuffix(' faster')} {_OVER[row.gain_verdict]} {over}"


def error(row: RungRow) -> float | None:
    """Of what is right."""
    m = row.measurement
    return m.error.rel_l2 if m.error and m.disposition == "ok" else None


def style(row: RungRow) -> str:
    """Of how it ended."""
    return {"ok": "", "unsupported": "dim"}.get(row.measurement.disposition, "bold red")


def _giga(name: str, title: str) -> Column[RungRow]:
    (column,) = pick(COLUMNS, name)
    return replace(column, text=lambda rate: units.digits(rate / 1e9), title=title)


_KNOWN = {column.name: column for column in COLUMNS}
LABEL: Column[RungRow] = _word("label", cell=label, title="rung")
RESULT: Column[RungRow] = _word("result", cell=result)
ERROR: Column[RungRow] = replace(_KNOWN["rel_l2_error"], value=error)
_TERMINAL = pick(
    COLUMNS,
    replace(LABEL, style=lambda row: "bold" if row.case.is_reference else ""),
    "precision",
    replace(RESULT, style=style),
    "median_s",
    RELATIVE,
    _giga("flops_per_s", "GFLOP/s"),
    _giga("bytes_per_s", "GB/s"),
    "share_of_limit",
    ERROR,
    replace(_KNOWN["error_bound"], value=lambda row: _bound(row) if error(row) else None),
    "speedup",
    "gain",
    *("registers", "shared_nbytes", "stack_nbytes", "spill_nbytes", "occupancy"),
    *count_columns.SHOWN,
)
_OF_RUNGS = {
    "flops_per_s",
    "bytes_per_s",
    "share_of_limit",
    "rel_l2_error",
    "error_bound",
}  # a whole model has none


def terminal(ladder: Ladder, rungs: Sequence[RungRow], models: Sequence[RungRow] = ()) -> RenderableType:
    """Which rung is the fastest in a sentence, and the table for people; why a rung has no figures stands
    below it."""
    from rich.console import Group
    from rich.text import Text

    several = units.instances(row.measurement.instances for row in rungs if row.time)
    heading = ", ".join(filter(None, (ladder.job.title, several)))
    made: list[RenderableType] = [Text(line(ladder, rungs)), Text()]
    made += [Text(heading, style="bold"), _grid(rungs)]
    made += [Text(line, style="dim") for line in remarks(ladder, rungs)]
    if models:
        heading = f"{ladder.job.model} as a whole, each rung in it at {ladder.job.node}"
        made += [Text(heading, style="bold"), _grid(models, _OF_RUNGS)]
        made += [Text(line, style="dim") for line in (*_reasons(models), *over_all(ladder, rungs, models))]
    return Group(*made)


def _grid(rows: Sequence[RungRow], without: Collection[str] = ()) -> Grid:
    """Compiled rungs have figures of their own, and local memory a thread where there is any."""
    left_out = set(without)
    if len({row.case.precision for row in rows}) == 1:
        left_out.add("precision")
    facts = [row.measurement.compiled for row in rows]
    if not any(facts):
        left_out |= {"registers", "shared_nbytes", "occupancy"}
    left_out |= {name for name in ("stack_nbytes", "spill_nbytes") if not any(f.get(name) for f in facts)}
    if not any(row.measurement.counted for row in rows):
        left_out |= set(count_columns.SHOWN)
    return Grid(Table([column for column in _TERMINAL if column.name not in left_out], rows), below=True)


def remarks(ladder: Ladder, rows: Sequence[RungRow]) -> list[str]:
    """Reasons, warnings, the reference and the limits, in sentences."""
    lines = _reasons(rows)
    if ladder.reference.startswith(OF_FUNCTION.partition("{")[0]):
        lines.append(f"{ladder.reference}: it says what is right; a pass is one answer, in float64")
    elif ladder.reference == OF_LIBRARY:
        lines.append(f"reference: {ladder.reference}, the same work by functions of that library")
    elif ladder.reference:
        same = "the same model" if ladder.job.op == "net" else "the same work as a model"
        lines.append(f"reference: {ladder.reference}, {same}")
    for row in rows:  # of a whole net: how much of it is one kernel, or one call
        facts = row.measurement.facts
        lines += [f"{label(row)}: {words}" for key in ("one_kernel", "calls") if (words := facts.get(key))]
    lines += [
        f"{label(row)}: {row.measurement.facts['tuned']}" for row in rows if "tuned" in row.measurement.facts
    ]
    if any(row.measurement.counted for row in rows):
        lines.append(f"counted on the CPU, and not by this GPU: {count_columns.MEANING}")
    if any(row.all_doubts for row in rows):
        lines.append(doubt.MEANING)
    lines += limit_lines(ladder)
    if any(row.limit and row.limit > 1 for row in rows):
        lines.append(f"a share above 100 %: {ABOVE}")
    return lines


def over_all(ladder: Ladder, rungs: Sequence[RungRow], models: Sequence[RungRow]) -> list[str]:
    """Where a rung is faster than the reference and the whole model with it is not, that, and why that can
    be."""
    own = {(row.name, row.case.precision): row for row in rungs}
    reference = f"{ladder.reference}'s whole model"
    found = ((row, own.get((row.name, row.case.precision))) for row in models)
    return [
        f"{label(model)}: {words}"
        for model, row in found
        if row is not None and (words := story.whole(row, model, reference))
    ]


def limit_lines(ladder: Ladder) -> list[str]:
    """What the machine was measured to reach, by what, in sentences; none where it is not known."""
    limits = ladder.reached
    if limits is None:
        return []
    lines = [
        f"limits measured here: {units.si(limits.flops_per_s, 'FLOP/s')} ({limits.multiplied_by}), "
        f"{units.si(limits.bytes_per_s, 'B/s')} ({limits.copied_by})"
    ]
    if ladder.cached("fp32"):
        rate = units.si(limits.cache_bytes_per_s, "B/s")
        lines.append(f"a pass has room in the caches: its bytes count at their rate, {rate} as measured")
    rates = matrix_rates(limits)
    if rates and limits.device == "cuda":
        lines.append(f"limits of the matrix units measured here: {', '.join(rates)} ({limits.matrix_by})")
    elif rates and ladder.job.op in OF_BYTES:
        lines.append(f"limit of eight-bit products measured here: {rates[0]} ({limits.matrix_by})")
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
