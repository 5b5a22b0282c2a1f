"""What a rung gains, in one sentence that its own figures support: times, rates, and what the compiler and
the launch say of it and of the rung that it is held against. Nothing is called a cause that was not measured:
figures that changed are told as figures that changed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.ladder.records import Ladder
from bench.ladder.show.rows import RungRow, bound
from bench.results import doubt, stats
from bench.results.stats import Verdict
from bench.words import units

POINTS = 0.05  # of occupancy: a smaller change is not told
TIMES = 1.25  # by which a number of threads or blocks has to change to be told
NEAR_LIMIT = 0.5  # from here on it is told what the limit leaves


def sentence(ladder: Ladder, row: RungRow, rows: Sequence[RungRow]) -> str:
    """One sentence on a rung, to stand behind its name; `rows` are all of its ladder's."""
    if row.time is None:
        return _without_time(row)
    idea = _idea(row)
    time = units.duration(row.time.value)
    below = next((r for r in rows if r.name == row.below and r.time), None)
    if row.gain is None or below is None or below.time is None:
        doubted = f"; to be doubted: {doubt.in_short(row.doubts)}" if row.doubts else ""
        return f"takes {time}{_rate(row)}{_left(ladder, row)}{idea}{doubted}"
    good, bad, other = changes(row, below)
    figures = [f"{units.duration(below.time.value)} → {time}"]
    if row.flops_per_s and below.flops_per_s:
        figures.append(f"{units.si(below.flops_per_s, 'FLOP/s')} → {units.si(row.flops_per_s, 'FLOP/s')}")
    against = name(below) + (", the highest of the ladder in fp32" if row.beside else "")
    match _verdict(row, below):
        case Verdict.SLOWER:  # of the other's time over this one's: this one takes less
            head = f"is {_interval(row.gain)} as fast as {against}"
            figures += [*good, *other, *_despite(bad)]
        case Verdict.FASTER:
            head = f"is slower here, {_interval(row.gain)} as fast as {against}"
            figures += [*bad, *other] or ["no figure recorded here says why"]
            figures += _despite(good)
            idea = f", for all its idea{idea}" if idea else ""
        case Verdict.SAME:
            head = f"is as fast as {against} within {stats.SAME_BOUND:.0%}, {_interval(row.gain)}"
            figures += [*good, *bad, *other]
        case _:
            apart = row.gain.known and (row.gain.low > 1 or row.gain.high < 1)
            head = "differs little from" if apart else "cannot be told by these samples from"
            head += f" {against}, {_interval(row.gain)} its speed"
            figures += [*good, *bad, *other]
    doubted = f"; to be doubted: {doubt.in_short(row.gain_doubts)}" if row.gain_doubts else ""
    return f"{head} ({', '.join(figures)}){_left(ladder, row)}{idea}{doubted}"


def _verdict(row: RungRow, below: RungRow) -> Verdict:
    assert row.gain is not None
    told = stats.tells(row.measurement, below.measurement)
    return stats.verdict(row.gain) if told else Verdict.UNCLEAR


def _despite(words: Sequence[str]) -> list[str]:
    return [f"despite {words[0]}", *words[1:]] if words else []


def name(row: RungRow) -> str:
    """A rung in a sentence: "14 async_stages"."""
    return f"{row.case.number:02d} {row.name}"


def changes(row: RungRow, below: RungRow) -> tuple[list[str], list[str], list[str]]:
    """Figures of the compiler and the launch that differ: those that let a multiprocessor do more at once,
    those that let it do less, and those that say neither."""
    now, was = row.measurement.compiled, below.measurement.compiled
    good: list[str] = []
    bad: list[str] = []
    other: list[str] = []
    if (occupancy := _both(now, was, "occupancy")) and abs(occupancy[1] - occupancy[0]) >= POINTS:
        before, after = (units.percent(value, 0) for value in occupancy)
        grows = occupancy[1] > occupancy[0]
        (good if grows else bad).append(f"{'more' if grows else 'less'} occupancy ({before} → {after})")
    if (spills := _both(now, was, "spill_nbytes")) and spills[0] != spills[1]:
        grows = spills[1] > spills[0]
        words = (
            f"{'more' if grows else 'fewer'} bytes of spill stores and loads ({_span(spills, units.nbytes)})"
        )
        (bad if grows else good).append(words)
    elif (stack := _both(now, was, "stack_nbytes")) and stack[0] != stack[1]:  # of arrays, not of spills
        grows = stack[1] > stack[0]
        words = f"{'more' if grows else 'less'} stack a thread ({_span(stack, units.nbytes)})"
        (bad if grows else good).append(words)
    blocks = _blocks(below), _blocks(row)
    there = int(row.measurement.facts.get("multiprocessors", "0"))
    if blocks[1] and there and blocks[1] < there:
        bad.append(f"only {blocks[1]:,} block{'s' * (blocks[1] > 1)} for {there} multiprocessors")
    elif blocks[0] and blocks[1] and _apart(*blocks):
        if there and blocks[0] < there:
            good.append(f"{blocks[1]:,} blocks for {there} multiprocessors in place of {blocks[0]:,}")
        else:
            other.append(f"blocks {_span(blocks, '{:,.0f}'.format)}")
    if (threads := _both(now, was, "threads")) and _apart(*threads):
        other.append(f"threads a block {_span(threads, '{:,.0f}'.format)}")
    if (registers := _both(now, was, "registers")) and registers[0] != registers[1]:
        other.append(f"registers a thread {_span(registers, '{:.0f}'.format)}")
    if (shared := _both(now, was, "shared_nbytes")) and shared[0] != shared[1]:
        other.append(f"shared memory a block {_span(shared, units.nbytes)}")
    return good, bad, other


def reference(ladder: Ladder, row: RungRow, rows: Sequence[RungRow]) -> str:
    """The line to beat in one precision, and the rung that comes nearest to it or passes it."""
    assert row.time is not None
    error = row.measurement.error
    time = doubt.marked(units.duration(row.time.value), row.doubts)
    words = f"{ladder.reference} in {row.case.precision}: {time}{_rate(row)}"
    words += f", error {error.rel_l2:.1e}" if error else ""
    # What rests on one sample is not said to be the fastest.
    rungs = [r for r in rows if r.speedup and r.speedup.known and r.time and not r.case.is_reference]
    held = [r for r in rungs if r.case.precision == row.case.precision]
    if row.case.precision == "fp32":
        held += [r for r in rungs if r.case.precision == "fp32-tc"]
    if held:
        best = min(held, key=lambda r: r.time.value if r.time else math.inf)
        assert best.speedup is not None
        words += f"; the fastest rung held against it, {name(best)}, has {_interval(best.speedup)} its speed"
        words += f", to be doubted: {doubt.in_short(best.speedup_doubts)}" if best.speedup_doubts else ""
    return words + "."


def _without_time(row: RungRow) -> str:
    m = row.measurement
    reason = m.reason.rstrip(".")
    if m.disposition == "unsupported":
        return f"is refused here, as it {reason}{_idea(row)}"
    return f"was not timed ({m.disposition.replace('_', ' ')}: {reason}){_idea(row)}"


def _idea(row: RungRow) -> str:
    return f": “{row.case.idea}”" if row.case.idea else ""


def _rate(row: RungRow) -> str:
    """The rate, and its share of the limit, where they are known."""
    rate = f", {units.si(row.flops_per_s, 'FLOP/s')}" if row.flops_per_s else ""
    if not rate and row.bytes_per_s:
        rate = f", {units.si(row.bytes_per_s, 'B/s')}"
    return rate + (f", {units.percent(row.limit, 1)} of the limit" if row.limit else "")


def _left(ladder: Ladder, row: RungRow) -> str:
    """What the limit leaves, where a rung has come near it."""
    if row.limit is None or row.limit < NEAR_LIMIT:
        return ""
    what = bound(ladder, row.case.precision)
    share = units.percent(row.limit, 0)
    left = f", which leaves {units.times(1 / row.limit)} at most" if row.limit < 0.95 else ""
    return f", at {share} of the limit of {what}{left}"


def _interval(ratio: stats.Interval) -> str:
    if not ratio.known:
        return units.times(ratio.value)
    return f"{units.times(ratio.value)} ({units.digits(ratio.low)} to {units.digits(ratio.high)})"


def _both(now: dict[str, float], was: dict[str, float], key: str) -> tuple[float, float] | None:
    return (was[key], now[key]) if key in now and key in was else None


def _span(values: tuple[float, float], shown: object) -> str:
    assert callable(shown)
    return f"{shown(values[0])} → {shown(values[1])}"


def _apart(was: float, now: float) -> bool:
    return max(was, now) >= TIMES * min(was, now) and was != now


def _blocks(row: RungRow) -> int:
    """Blocks that the rung's kernel is started with; 0 where not known."""
    grid = row.measurement.facts.get("grid", "")
    try:
        return math.prod(int(part) for part in grid.split("×")) if grid else 0
    except ValueError:
        return 0
