"""What a rung gains, in one sentence that its own figures support: times, rates, and what the compiler and
the launch say of it and of the rung that it is held against. Nothing is called a cause that was not measured:
figures that changed are told as figures that changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench.results import doubt, stats
from bench.results.ladder_records import Ladder
from bench.results.ladder_rows import RungRow, bound
from bench.results.records import compared_in
from bench.results.stats import SAME_BOUND, Comparison, Verdict
from bench.views.sentences import limits
from bench.words import orders, units
from kernels.precision import EXACT

POINTS = 0.05  # of occupancy: a smaller change is not told
TIMES = 1.25  # by which a number of threads or blocks has to change to be told
FEW_WARPS = 0.5  # of those that a multiprocessor has room for
MOST_BUSY = 0.9  # from so many of the multiprocessors on it is no finding that the others have nothing to do
ONE_BLOCK = 512  # threads; a multiprocessor has room for three or four times as many


def sentence(ladder: Ladder, row: RungRow, rows: Sequence[RungRow]) -> str:
    """One sentence on a rung, to stand behind its name; `rows` are all of its ladder's."""
    if row.time is None:
        return _without_time(row)
    idea = _idea(row)
    time = units.duration(row.time.value)
    below = next((r for r in rows if r.name == row.below and r.time), None)
    if row.gain is None or below is None or below.time is None:
        doubted = f"; to be doubted: {doubt.in_short(row.doubts)}" if row.doubts else ""
        return f"takes {time}{_rate(row)}{_held(ladder, row)}{idea}{doubted}"
    good, bad, other = changes(row, below)
    figures = [f"{units.duration(below.time.value)} → {time}"]
    if row.flops_per_s and below.flops_per_s:
        figures.append(f"{units.si(below.flops_per_s, 'FLOP/s')} → {units.si(row.flops_per_s, 'FLOP/s')}")
    against = below.case.label + (", the highest of the ladder in fp32" if row.beside else "")
    head = orders.order(row.gain_verdict, row.gain, row.case.label, against, SAME_BOUND)
    if orders.decided(row.gain_verdict):
        head = f"is {head}"
    elif why := orders.reason(row.gain_undecided):
        figures.insert(0, why)
    match row.gain_verdict:
        case Verdict.FASTER:
            figures += [*good, *other, *_despite(bad)]
        case Verdict.SLOWER:
            figures += [*bad, *other] or ["no figure recorded here says why"]
            figures += _despite(good)
            idea = f", for all its idea{idea}" if idea else ""
        case _:
            figures += [*good, *bad, *other]
    held = _held(ladder, row, figures)
    doubted = f"; to be doubted: {doubt.in_short(row.gain_doubts)}" if row.gain_doubts else ""
    return f"{head} ({', '.join(figures)}){held}{idea}{doubted}"


def _despite(words: Sequence[str]) -> list[str]:
    return [f"despite {words[0]}", *words[1:]] if words else []


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
        bad.append(f"only {units.count(blocks[1], 'block')} for {there} multiprocessors")
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
    held = [r for r in rows if r.speedup and compared_in(r.case.precision) == row.case.precision]
    if (lead := leading(held)) is not None:
        words += f"; of the rungs held against it {lead.words}"
        best = lead.best
        if lead.decided and best.speedup is not None:
            who = best.case.label
            told = orders.order(best.verdict, best.speedup, who, "the reference", SAME_BOUND)
            words += f"; {f'{who} is {told}' if orders.decided(best.verdict) else told}"
            words += f", to be doubted: {doubt.in_short(best.speedup_doubts)}" if best.speedup_doubts else ""
    return words + "."


def whole(row: RungRow, model: RungRow | None, reference: str) -> str:
    """Why a rung that is faster than the reference at its node does not make the whole model faster; "" where
    it does, or nothing is known of it."""
    if model is None or model.time is None or row.verdict != Verdict.FASTER or not model.verdict:
        return ""
    if model.verdict == Verdict.FASTER or model.speedup is None:
        return ""
    told = orders.order(model.verdict, model.speedup, "the whole model with it", reference, SAME_BOUND)
    head = f"the whole model with it is {told}" if orders.decided(model.verdict) else told
    return (
        f"{head}, though the rung is faster at its node: what it gains there is small beside the model's "
        "other steps, or is lost in them, or in the state in which they leave the caches"
    )


def _without_time(row: RungRow) -> str:
    m = row.measurement
    reason = m.reason.rstrip(".")
    if m.disposition == "unsupported":
        return f"is refused here, as it {reason}{_idea(row)}"
    return f"was not timed ({m.disposition.replace('_', ' ')}: {reason}){_idea(row)}"


def _idea(row: RungRow) -> str:
    return f": “{row.case.idea}”" if row.case.idea else ""


def _rate(row: RungRow) -> str:
    """The rate, where it is known."""
    if row.flops_per_s:
        return f", {units.si(row.flops_per_s, 'FLOP/s')}"
    return f", {units.si(row.bytes_per_s, 'B/s')}" if row.bytes_per_s else ""


def _held(ladder: Ladder, row: RungRow, told: Sequence[str] = ()) -> str:
    """What holds a rung back (bench.views.sentences.limits). told: what its sentence has said already."""
    if row.limit is None:
        return ""
    known = [words for words in holding(row) if not any(words in figure for figure in told)]
    return f", {limits.standing(row.limit, bound(ladder, row.case.precision), known)}"


def holding(row: RungRow) -> list[str]:
    """What the compiler and the launch say of a rung that is far from its limits."""
    found = row.measurement.compiled
    there, blocks = int(row.measurement.facts.get("multiprocessors", "0")), _blocks(row)
    said = []
    threads = int(found.get("threads", 0))
    if blocks and there and blocks < there:
        if blocks < MOST_BUSY * there or not threads:
            said.append(f"only {units.count(blocks, 'block')} for {there} multiprocessors")
        elif threads <= ONE_BLOCK:  # nearly all have one: it is not their number that is missing
            said.append(f"one block of {threads} threads a multiprocessor")
    if spills := found.get("spill_nbytes"):
        said.append(f"{units.nbytes(spills)} of spill stores and loads a thread")
    if (occupancy := found.get("occupancy")) and occupancy < FEW_WARPS:
        share = units.percent(occupancy, 0)
        said.append(f"occupancy {share}, so that few warps are there to work while others wait")
    return said


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


@dataclass(frozen=True)
class Leading:
    """best: the rung of the least median; alike: those as fast within the bound; undecided: those that may
    be the faster, and why this is not decided, in short."""

    best: RungRow
    alike: tuple[RungRow, ...] = ()
    undecided: tuple[RungRow, ...] = ()
    why: str = ""

    @property
    def decided(self) -> bool:
        return not self.undecided

    @property
    def words(self) -> str:
        """ "03 tiled is the fastest", or that it is not decided between which."""
        if self.undecided:
            names = [row.case.label for row in (self.best, *self.undecided)]
            why = f" ({self.why})" if self.why else ""
            return f"the fastest is {orders.undecided_between(names)}{why}"
        if self.alike:
            few = orders.listed([row.case.label for row in self.alike])
            which = f"which {'is' if len(self.alike) == 1 else 'are'} as fast"
            within = units.percent(SAME_BOUND, 0)
            return f"{self.best.case.label} is the fastest but for {few}, {which} within {within}"
        return f"{self.best.case.label} is the fastest"


def leading(rows: Sequence[RungRow]) -> Leading | None:
    """Of the rungs that are right and have more than one sample; None where there is none.

    It is said to be the fastest only where its paired ratio to every other is decided, and where the medians
    that stand beside it say the same.
    """
    timed = [row for row in rows if eligible(row)]
    if not timed:
        return None
    best, *others = sorted(timed, key=lambda row: row.time.value if row.time else 0.0)
    found = [(row, compared(best, row)) for row in others]
    undecided = [(row, it) for row, it in found if it.verdict not in (Verdict.FASTER, Verdict.SAME)]
    reasons = dict.fromkeys(orders.reason(it.undecided) for _, it in undecided)
    return Leading(
        best,
        tuple(row for row, it in found if it.verdict is Verdict.SAME),
        tuple(row for row, _ in undecided),
        next(iter(reasons)) if len(reasons) == 1 else "",
    )


def eligible(row: RungRow) -> bool:
    """Whether anything may be said of how fast a rung is: what is wrong or impossible is never ranked."""
    right = row.measurement.disposition == "ok" and not row.case.is_reference
    return right and row.beyond != "impossible" and row.time is not None and row.time.known


def compared(one: RungRow, other: RungRow) -> Comparison:
    """FASTER where `one` takes less time than `other`, which was timed in the same rounds."""
    return stats.compare(one.measurement, other.measurement)


def beside(one: RungRow, other: RungRow, ends: bool = False) -> str:
    """What is said of a rung beside another, behind "is" (bench.words.orders)."""
    found = compared(one, other)
    return orders.order(
        found.verdict, found.ratio.inverse, one.case.label, other.case.label, SAME_BOUND, ends=ends
    )


def finding(ladder: Ladder, rows: Sequence[RungRow]) -> str:
    """The fastest rung of each precision, of those that were timed by more than one sample: said where that
    is decided, else between which it is not (bench.views.sentences.ladder_story)."""
    timed = [row for row in rows if row.time and not row.case.is_reference]
    right = [row for row in timed if row.time and row.time.known]
    if not timed:
        return "No rung could be timed."
    if not right:
        return "No rung was timed by more than one sample: none can be said to be the fastest."
    exact = [row for row in right if row.case.precision in EXACT]
    words = [_best(ladder, exact or right, next(filter(eligible, right), None))]
    for precision in dict.fromkeys(row.case.precision for row in right if exact):
        if precision not in EXACT:
            there = [row for row in right if row.case.precision == precision]
            if told := _best(ladder, there, None):
                words.append(f"in {precision} {told}")
    for row in (row for row in rows if row.case.is_reference and row.time and row.doubts):
        who = f"{ladder.reference}{in_precision(row.case.precision)}"
        words.append(f"the time of {who} is doubtful: {doubt.in_short(row.doubts)}")
    if left := len(timed) - len(right):
        words.append(f"{left} timed by one sample alone {'is' if left == 1 else 'are'} left out")
    said = "; ".join(filter(None, words))
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def role(rows: Sequence[RungRow]) -> orders.Role:
    """What the colour of that sentence may say: of the fastest rung beside the reference, where it is decided
    which that is."""
    right = [row for row in rows if eligible(row)]
    exact = [row for row in right if row.case.precision in EXACT]
    lead = leading(exact or right)
    if lead is None:
        return ""
    best = lead.best
    return orders.role(best.verdict, best.speedup_doubts) if lead.decided else "undecided"


def _best(ladder: Ladder, right: Sequence[RungRow], first: RungRow | None) -> str:
    """first: the plainest rung, which the fastest is held against, too."""
    lead = leading(right)
    if lead is None:
        return ""
    best = lead.best
    words = [lead.words + (f" ({best.case.precision})" if len({r.case.precision for r in right}) > 1 else "")]
    if not lead.decided:
        alike = {row.verdict for row in (best, *lead.undecided)}
        if len(alike) == 1 and alike <= {"FASTER", "SLOWER"}:
            words.append(f"each of them is {orders.WORDS[alike.pop()]} than {ladder.reference}")
        return "; ".join(words)
    if first is not None and first is not best:
        words.append(beside(best, first))
    if best.speedup is not None and best.reference is not None:
        told = orders.order(
            best.verdict, best.speedup, best.case.label, ladder.reference, SAME_BOUND, ends=False
        )
        why = orders.reason(best.undecided)
        doubtful = doubt.MARK if best.speedup_doubts and orders.decided(best.verdict) else ""
        words.append(f"{told}{doubtful}" + (f" ({why})" if why else ""))
    said = words[0]
    for more in words[1:]:
        said += f"{'; ' if more.startswith(orders.NOT_DECIDED) else ', '}{more}"
    return said


def standing_best(ladder: Ladder, shown: Sequence[RungRow]) -> str:
    """Where the best rung of each precision stands under the nearer of its limits; of the first, what else is
    known: with that of all, the sentence would be cut where a chart has room for three lines."""
    words: list[str] = []
    for best in best_of_each(shown):
        precision = best.case.precision
        if best.limit and (limit := bound(ladder, precision)):
            told = limits.standing(best.limit, limit, () if words else holding(best))
            words.append(f"{best.case.label}{in_precision(precision)} is {told}.")
    return " ".join(words)


def best_of_each(shown: Sequence[RungRow]) -> list[RungRow]:
    """The fastest rung of each precision."""
    best: dict[str, RungRow] = {}
    for row in shown:
        now = best.get(row.case.precision)
        if not row.case.is_reference and (now is None or (row.flops_per_s or 0) > (now.flops_per_s or 0)):
            best[row.case.precision] = row
    return list(best.values())


def in_precision(precision: str) -> str:
    return "" if precision == "fp32" else f" in {precision}"
