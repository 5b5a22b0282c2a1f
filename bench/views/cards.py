"""The three answers to a comparison of a model, each in a few words: is it right, how fast is it, what holds
it back. The window shows a model as one row of them; the whole sentences are the verdict's
(bench.views.sentences.verdicts).

An answer that is not decided has no number and no colour. Green is only for what is decided and right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bench.results.records import Case, Layer, Measurement, Run
from bench.results.rows import Row, label
from bench.views.charts import breakdown
from bench.views.charts.scoreboard import WRONG, Cell, Line
from bench.views.charts.series import most_images
from bench.views.sentences import limits
from bench.views.sentences.verdicts import Clause, ModelVerdict
from bench.words import orders, palette, units
from kernels.precision import of_layer

# What a colour says: "good" is decided and right, "bad" is wrong or slower, "warn" has gaps or doubts.
Role = Literal["good", "bad", "warn", ""]
RIGHT, FAST, HELD = "Right?", "How fast?", "Held back by"
NOTHING = "–"
NO_SPEED, IMPOSSIBLE = "wrong answers have no speed", "faster than the machine can be"
_DECIDED = ("faster", "same", "slower")
_OUTSIDE = {"sync": "waiting", "rest": "unexplained"}


@dataclass(frozen=True)
class Answer:
    """One answer. text: in a few words; detail: what belongs to it, in smaller letters; why: the sentences
    behind it, one a line; cases: the points that it is about (a comparison's cases, a ladder's keys,
    a layer's tensors), those that say most first; more: what the detail goes on with where there is room."""

    text: str
    detail: str = ""
    role: Role = ""
    why: str = ""
    cases: tuple[Any, ...] = ()
    more: str = ""


@dataclass(frozen=True)
class Card:
    """The answers of one model (or of one of its precisions), of the contender that is foremost."""

    verdict: ModelVerdict
    who: str
    right: Answer
    fast: Answer
    held: Answer

    @property
    def answers(self) -> dict[str, Answer]:
        """By the question, in the order in which they are read."""
        return {RIGHT: self.right, FAST: self.fast, HELD: self.held}

    @property
    def text(self) -> str:
        """All of it as text: the verdict's sentence, and what holds the contender back."""
        held = f"\n{HELD}: {self.held.text} {self.held.detail}".rstrip() if self.held.text != NOTHING else ""
        return (self.verdict.line or f"{self.verdict.subject}: nothing is measured yet.") + held


def cards(verdicts: Iterable[ModelVerdict], items: Sequence[Row], runs: Iterable[Run] = ()) -> list[Card]:
    """A card for each verdict. items: the rows of which the verdicts were made, and maybe others; runs: that
    they come from, which know what the machine reaches."""
    runs = tuple(runs)
    return [_card(verdict, items, runs) for verdict in verdicts]


def _card(verdict: ModelVerdict, items: Sequence[Row], runs: Sequence[Run]) -> Card:
    board = verdict.board
    shown = {(line.contender, cell.batch) for line in board.lines for cell in line.cells if cell.text}
    own = [r for r in items if r.case.model == board.model and (r.contender, r.case.batch) in shown]
    rows = {(row.contender, row.case.batch): row for row in most_images(own)}
    line = foremost(board.lines)
    who = line.contender if line is not None else ""
    cells = line.cells if line is not None else ()
    cases = {batch: row.case for (name, batch), row in rows.items() if name == who}
    right = _right(verdict, own, who)
    fast = _fast(verdict, line, cases) if line is not None else Answer(NOTHING)
    if right.role == "bad" and fast.role == "good":
        fast = replace(fast, role="")
    return Card(
        verdict,
        who,
        right,
        fast,
        _held(who, [rows[who, cell.batch] for cell in cells if (who, cell.batch) in rows], runs),
    )


def foremost(lines: Sequence[Line]) -> Line | None:
    """The contender that a card tells of: the first of our engine that has something to say, else the first
    of the others. None if there is none."""
    known = [line for line in lines if any(cell.grade not in ("absent", "pending") for cell in line.cells)]
    compared = [line for line in known if not line.is_reference] or known or list(lines)
    ours = [line for line in compared if line.backend.startswith("engine-")]
    judged = [line for line in ours if any(cell.grade not in ("none", "pending") for cell in line.cells)]
    return next(iter([*judged, *ours, *compared]), None)


def _told(clauses: Iterable[Clause]) -> str:
    return "; ".join(clause.text for clause in clauses)


# ------------------------------------------------------------------------------------------------- right?


def _right(verdict: ModelVerdict, items: Sequence[Row], who: str) -> Answer:
    known = {row.case.batch for row in items}
    if wrong := [row for row in items if row.measurement.disposition == "incorrect"]:
        named = list(dict.fromkeys(row.contender for row in wrong))
        where = units.spans((row.case.batch for row in wrong), known)
        why = "\n".join(dict.fromkeys(f"{row.contender}: {row.measurement.reason}" for row in wrong))
        cases = tuple(row.case for row in wrong)
        return Answer("✕ wrong", f"{orders.listed(named)}, batch {where}", "bad", why, cases)
    clauses = [
        clause for clause in verdict.clauses if not clause.who and clause.kind in ("answers", "differ")
    ]
    differ = [clause for clause in clauses if clause.kind == "differ"]
    if differ:
        first = differ[0]
        amount = first.stress.removesuffix(" unlike")
        return Answer(
            f"✕ {amount} differ", first.text.partition(" answers ")[0], "bad", _told(differ), first.cases
        )
    failed = [row for row in items if row.failed]
    lost = f"{units.count(len(failed), 'case')} failed" if failed else ""
    why = "\n".join(f"{r.contender}, batch {r.case.batch:,}: {r.measurement.reason}" for r in failed)
    sound = [row for row in items if row.measurement.disposition == "ok"]
    if not sound:
        return Answer(
            f"✕ {lost}" if lost else NOTHING, "", "bad" if lost else "", why, tuple(r.case for r in failed)
        )
    counts = units.spans({row.case.images for row in sound if _alike(row)}, ())
    if counts:
        text, on, said = "✓ same answers", f"{counts} images", _told(clauses)
    else:
        text, on = "✓ as float64", ""
        said = "each answer is within its bound of float64's; no answers to images were compared"
    told = "\n".join(filter(None, [said, _accuracy(sound), why]))
    cases = tuple(row.case for row in sorted(failed or sound, key=lambda row: row.contender != who))
    detail = ", ".join(filter(None, [on, lost or _accuracy(sound)]))
    return Answer(text, detail, "warn" if lost else "good", told, cases)


def _alike(row: Row) -> bool:
    found = row.measurement.accuracy
    return found is not None and bool(found.images) and found.agreement == 1.0


def _accuracy(rows: Sequence[Row]) -> str:
    """ "accuracy 97.78 %", where all that have labels agree on it."""
    found = {
        row.measurement.accuracy.top1
        for row in rows
        if row.measurement.accuracy is not None and row.measurement.accuracy.labelled
    }
    tops = sorted(top for top in found if top is not None)
    return f"accuracy {units.percent(tops[0])}" if len(tops) == 1 else ""


# ---------------------------------------------------------------------------------------------- how fast?


def _fast(verdict: ModelVerdict, line: Line, cases: dict[int, Case]) -> Answer:
    why = _told(verdict.clauses_of(line.contender)) or verdict.text
    known = [cell for cell in line.cells if cell.grade != "absent"]
    sure = [cell for cell in known if cell.grade in _DECIDED and not cell.doubts]
    wrong = [cell for cell in known if cell.grade == "wrong"]
    if wrong or not sure:
        others = wrong or [cell for cell in known if cell.grade not in ("pending",)]
        found = tuple(cases[cell.batch] for cell in others if cell.batch in cases)
        if line.is_reference or not line.reference:
            return Answer(NOTHING, "nothing to compare with" if found else "not measured yet", "", why, found)
        grades = {cell.grade for cell in others}
        if wrong:
            impossible = all(cell.text != WRONG["incorrect"] for cell in wrong)
            return Answer(NOTHING, IMPOSSIBLE if impossible else NO_SPEED, "", why, found)
        beside = f"{line.contender} beside {line.reference}"
        if "doubtful" in grades:
            return Answer("in doubt", beside, "warn", why, found)
        if "undecided" in grades:
            return Answer(orders.NOT_DECIDED, beside, "", why, found)
        return Answer(NOTHING, "no time" if grades else "not measured yet", "", why, found)
    text, link, role = _amount(sure)
    part = f", {len(sure)} of {len(known)} batch sizes" if len(sure) < len(known) else ""
    found = tuple(cases[cell.batch] for cell in sure if cell.batch in cases)
    return Answer(text, f"{line.contender} {link} {line.reference}{part}", role, why, found)


def _amount(sure: Sequence[Cell]) -> tuple[str, str, Role]:
    """The number, what links it to the reference, and the colour. sure: decided cells."""
    grades = {cell.grade for cell in sure}
    ratios = sorted(cell.speedup for cell in sure if cell.speedup)
    if grades == {"same"}:
        return "same", "as fast as", "good"
    if "slower" not in grades:
        return _between(ratios), "faster than", "good"
    if "faster" not in grades:
        return _between(sorted(1 / ratio for ratio in ratios)), "slower than", "bad"
    return f"{orders.speed(ratios[0])} to {orders.speed(ratios[-1])} faster", "beside", ""


def _between(factors: Sequence[float]) -> str:
    low, high = units.times(factors[0]), units.times(factors[-1])
    return low if low == high else f"{low.removesuffix('×')}–{high}"


# ------------------------------------------------------------------------------------------- held back by


def _held(who: str, rows: Sequence[Row], runs: Sequence[Run]) -> Answer:
    """What takes the most of a pass from host to host, its copies included, at the largest batch size; and if
    that is computing, how near its longest step is to a limit of the machine."""
    found = [(row, split) for row in rows if (split := breakdown.split(row.measurement)) is not None]
    if not found:
        return Answer(NOTHING)
    row, split = max(found, key=lambda item: item[0].case.batch)
    measurement, batch = row.measurement, f"batch {row.case.batch:,}"
    with_copies, how = _with_copies(row, split)
    key, ns = max(split.parts_ns.items(), key=lambda item: item[1])
    share = units.percent(ns / split.total_ns, 0)
    parts = ", ".join(
        f"{palette.CATEGORIES[name][0]} {units.percent(each / split.total_ns, 0)}"
        for name, each in split.parts_ns.items()
    )
    why = "\n".join(filter(None, [f"{who} at {batch}, a pass from host to host: {parts}", how]))
    cases = (row.case,)
    whole = f"{palette.CATEGORIES[key][0]}, {share}"
    if key in ("h2d", "d2h"):
        return Answer(whole, batch, "", why, cases, with_copies)
    timed = [layer for layer in measurement.layers if layer.time_ns]
    if key in _OUTSIDE:
        if timed and measurement.case.backend.endswith("-cuda"):
            mean = units.duration(sum(layer.time_ns or 0.0 for layer in timed) / len(timed), 2)
            text = f"launches: {units.count(len(timed), 'kernel')} of {mean}"
            why = f"{why}\nstarting and waiting for kernels takes {share}"
            return Answer(text, batch, "", why, cases, with_copies)
        return Answer(f"{_OUTSIDE[key]}, {share}", batch, "", why, cases, with_copies)
    if not timed:
        return Answer(whole, batch, "", why, cases, with_copies)
    longest = max(timed, key=lambda layer: layer.time_ns or 0.0)
    total = sum(layer.time_ns or 0.0 for layer in timed)
    name = longest.nodes[0] if longest.nodes else longest.op_type
    of_layers = f"{name}, {units.percent((longest.time_ns or 0.0) / total, 0)} of the layers' time"
    limit = limit_of(longest, measurement, runs)
    if limit is None:
        return Answer(whole, f"{name}, {batch}", "", f"{why}\n{of_layers}", cases, with_copies)
    reached, which = limit
    why = f"{why}\n{of_layers}, {limits.standing(reached, which)}"
    if limits.binds(reached):
        text = f"{limits.NAMES[which]}, {limits.percent(reached)} of the limit"
    else:
        text = whole
        batch = f"{name}: {limits.percent(reached)} of {limits.NAMES[which]}"
    return Answer(text, f"{name}, {batch}" if limits.binds(reached) else batch, "", why, cases)


def _with_copies(row: Row, split: breakdown.Split) -> tuple[str, str]:
    """How fast a case is beside its reference where copies count, in few words and in a sentence. A ratio is
    told where passes from end to end were timed in turns and decide it; else there are two times, which were
    not. "" where there is nothing to compare with."""
    flow = row.end_to_end
    if flow is not None and flow.speedup and orders.decided(flow.verdict) and not flow.speedup_doubts:
        few = orders.cell(flow.verdict, flow.speedup)
        ends = orders.cell(flow.verdict, flow.speedup, flow.speedup_low, flow.speedup_high)
        return f"{few} end to end", f"with copies, end to end, it is {ends} beside {flow.against}"
    theirs = breakdown.split(row.against) if row.against is not None else None
    if row.against is None or theirs is None:
        return "", ""
    other = label(row.against.case.backend, row.against.case.precision)
    own, others = units.duration(split.total_ns), units.duration(theirs.total_ns)
    return (
        f"{own}, {other} {others}",
        f"with copies it takes {own} and {other} {others}: not timed in turns, so no ratio is told",
    )


def limit_of(layer: Layer, measurement: Measurement, runs: Sequence[Run]) -> tuple[float, str] | None:
    """How near a layer comes to the nearer of the machine's limits (1: it is there), and which that is (a key
    of bench.views.sentences.limits.NAMES). None if nobody measured the limits, or nothing is known of its
    work."""
    device = "cuda" if measurement.case.backend.endswith("-cuda") else "cpu"
    known = next((run.limits[device] for run in runs if device in run.limits), None)
    if known is None or not layer.time_ns or layer.clock == "isolated":
        return None
    moved = layer.nbytes if layer.least_nbytes is None else layer.least_nbytes
    between = sum(each.nbytes for each in measurement.layers)
    rate = known.rate(of_layer(measurement.case.precision, layer.precision)) or known.flops_per_s
    computing, moving = layer.flops / rate, moved / known.moved_per_s(between)
    if not max(computing, moving):
        return None
    which = "arithmetic" if computing >= moving else "cache" if known.cached(between) else "memory"
    return max(computing, moving) * 1e9 / layer.time_ns, which
