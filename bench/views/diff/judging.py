"""Ratios and verdicts of two runs' cases, by the one rule (bench.results.stats.verdict), and what a gate
fails on.

Cases are compared by their speed-ups: each over the reference that was timed in turns with it, which divides
out of it whatever the machine did to both. Times of two runs differ by more than their intervals say (over
ten identical runs the intervals of times overlapped in 49 of 90 pairs, those of speed-ups in all of 45), so
that a case without a reference beside it is compared by its time only on one machine, and is doubted.

What two runs differ by as a whole is in neither's interval. On a quiet machine that is little. Where rounds
moved a run's own ratio about (bench.measure.unrest) it is anything: of two identical runs on two cores that
ten programs shared one was "7 times slower" by its interval. No verdict follows from such a figure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from bench.results import doubt
from bench.results.rows import FAILURES
from bench.results.stats import ONE_ROUND, Interval, Verdict, across, verdict
from bench.views.diff.records import Change, Diff, Pair, Side
from bench.words import orders, units

FAIL_ON = ("slower", "wrong", "any")
ALONE = "by its time alone: from run to run times differ by more than their intervals say"


def judged(pair: Pair, bound: float, one_machine: bool, verdicts: bool = True) -> Change:
    """verdicts: whether one may follow at all."""
    a, b = pair.a, pair.b
    if a is None or b is None:
        return Change(pair, lost=_lost(pair))
    wrong, worse, lost = _wrong(a, b), _worse(a, b), _timeless(a, b)
    if a.disposition != "ok" or b.disposition != "ok":
        return Change(pair, wrong=wrong, worse=worse, lost=lost, apart=_ended(a, b))
    if a.speedup is not None and b.speedup is not None and not pair.reference:
        ratio = quotient(b.speedup, a.speedup)
        found = Change(pair, "speed-up", ratio, doubts=_doubts(a, b))
    elif a.time is not None and b.time is not None and one_machine:
        told = _doubts(a, b)
        found = Change(
            pair, "time", quotient(a.time, b.time), doubts=told if pair.reference else (*told, ALONE)
        )
    else:
        why = "" if pair.reference else "two machines, and no reference beside it in both"
        return Change(pair, wrong=wrong, worse=worse, lost=lost, apart=why or "two machines")
    decided, undecided = "", ""
    if verdicts and not pair.reference:
        assert found.ratio is not None
        decided, undecided = _verdict(found.ratio, _undecided(found, a, b), bound)
    return Change(pair, found.by, found.ratio, decided, undecided, found.doubts, wrong, worse, lost)


def _verdict(ratio: Interval, undecided: str, bound: float) -> tuple[str, str]:
    """And why it is UNCLEAR. undecided: what keeps the two from a verdict, whatever their ratio."""
    if undecided:
        return Verdict.UNCLEAR.value, undecided
    times = inverse(ratio)  # the rule is of times: below 1 takes less
    found = verdict(times, bound)
    return found.value, across(times, bound) if found is Verdict.UNCLEAR else ""


def _undecided(found: Change, a: Side, b: Side) -> str:
    for name, side in (("A", a), ("B", b)):
        if side.undecided:
            return f"{side.undecided} (of {name})"
    if not (a.has_rounds and b.has_rounds):
        return ONE_ROUND
    return f"{orders.NOT_DECIDED}: {doubt.UNQUIET}" if unquiet(found) else ""


def across_runs(undecided: str) -> str:
    """Of why a case is not decided against its reference, what keeps it from a verdict against another run,
    too: not that its own interval reaches across the bound."""
    return "" if orders.reason(undecided).startswith("the interval ") else undecided


def unquiet(change: Change) -> bool:
    """Whether its ratio is doubted for an unquiet machine."""
    return any(text.startswith(doubt.UNQUIET) for text in change.doubts)


def _doubts(a: Side, b: Side) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*doubt.of_other("A", a.doubts), *doubt.of_other("B", b.doubts))))


def _wrong(a: Side, b: Side) -> str:
    """A failure of B, whether A had it too or not; or a case that B refuses and A did not."""
    if b.disposition in FAILURES:
        before = "" if a.disposition == "ok" else f" (in A {_how(a.disposition)}, too)"
        return f"{_how(b.disposition)}{f': {b.reason}' if b.reason else ''}{before}"
    if b.disposition == "unsupported" and a.disposition == "ok":
        return f"refused{f': {b.reason}' if b.reason else ''}"
    return ""


def _worse(a: Side, b: Side) -> str:
    """Answers that are worse on the same images."""
    told = []
    for name, one, other in (("top-1", a.top1, b.top1), ("agreement", a.agreement, b.agreement)):
        if one is not None and other is not None and other < one:
            told.append(f"{name} {units.percent(one)} → {units.percent(other)}")
    return ", ".join(told)


def _timeless(a: Side, b: Side) -> str:
    if a.time is None or b.time is not None:
        return ""
    return f"it has no time in B ({_how(b.disposition)})"


def _lost(pair: Pair) -> str:
    if pair.b is None and pair.a is not None:
        return "B meant it and did not measure it" if pair.planned else "only in A"
    return ""


def _ended(a: Side, b: Side) -> str:
    how = [
        f"{_how(side.disposition)} in {name}"
        for name, side in (("A", a), ("B", b))
        if side.disposition != "ok"
    ]
    return " and ".join(how)


def _how(disposition: str) -> str:
    return disposition.replace("_", " ")


# ------------------------------------------------------------------------------------------------- the gate


def reason(change: Change, fail_on: Iterable[str]) -> str:
    """Why a case fails, "" where it does not. "slower" and "wrong" also fail on what was lost: a case that B
    meant to measure and that has no figure in it is neither fast nor right."""
    wanted = set(fail_on)
    if not wanted:
        return ""
    every = "any" in wanted
    told = []
    if change.wrong and (every or "wrong" in wanted):
        told.append(change.wrong)
    if change.verdict == Verdict.SLOWER.value and (every or "slower" in wanted):
        told.append(slower(change))
    if change.lost and not told and (every or change.matched or change.pair.planned):
        told.append(change.lost)
    if every and change.worse:
        told.append(change.worse)
    if every and change.unjudged and not told:
        told.append(f"not compared: {change.apart}")
    return "; ".join(told)


def slower(change: Change) -> str:
    """ "1.18× slower (1.15× to 1.20×)"."""
    return orders.interval_words(change.verdict, change.ratio, ends=True)


def cannot_fail(diff: Diff, gates: Collection[str]) -> str:
    """Why a gate could not fail, whatever B is; "" where it could."""
    if {"slower", "any"}.isdisjoint(gates):
        return ""
    head = f"--fail-on {','.join(gates)} has nothing to go by: "
    if diff.no_verdict:
        return head + diff.no_verdict
    judged_ = [change for change in diff.changes if change.verdict]
    if judged_ and all(unquiet(change) for change in judged_):
        return (
            f"{head}the machine was unquiet in every case, so that none can be decided; measure again while "
            "nothing else runs"
        )
    # Whatever their ratios are: of an interval that reaches across the bound another run may have less.
    kept = [across_runs(change.undecided) for change in judged_]
    if kept and all(kept):
        return f"{head}no case can be decided ({orders.reason(kept[0])})"
    figures = [change for change in diff.matched if change.pair.a and change.pair.a.time is not None]
    told = (change.verdict or change.lost or change.wrong for change in figures if not change.pair.reference)
    if not any(told):
        return (
            f"{head}no case of the two runs has a figure that can be compared; measure the reference beside "
            "the backend"
        )
    return ""


LEAST = 0.2  # of all that the layers changed by, from which on one is named
MOST = 3


def where(change: Change) -> str:
    """ "mostly conv2 +401 µs (rung tiled → naive)"; "" where nothing is known of layers, or they moved the
    other way.

    Layers are timed apart from the whole pass and not in turns with the reference, so that B's are told in
    proportion: as they would be if the reference had taken in B what it took in A. It is a hint; a profile is
    what tells where time goes.
    """
    a, b = change.pair.a, change.pair.b
    if a is None or b is None or change.verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return ""
    pace = _pace(a, b, change)
    both = [name for name in a.layers if name in b.layers]
    moved = {name: b.layers[name] * pace - a.layers[name] for name in both}
    total = sum(moved.values())
    way = 1 if change.verdict == Verdict.SLOWER else -1
    if not both or total * way <= 0:
        return ""
    largest = sorted(moved, key=lambda name: -way * moved[name])[:MOST]
    named = [
        f"{name} {units.change(moved[name])}{_rung(name, a, b)}"
        for name in largest
        if way * moved[name] >= LEAST * abs(total)
    ]
    proportion = "" if abs(pace - 1) < 0.02 else ", in proportion to the reference's time"
    return f"by its layers' own times mostly {', '.join(named)}{proportion}" if named else ""


def _pace(a: Side, b: Side, change: Change) -> float:
    """What B's times are multiplied by, so that the reference took as long in both."""
    if change.by != "speed-up" or not (a.time and b.time and a.speedup and b.speedup):
        return 1.0
    return a.time.value * a.speedup.value / (b.time.value * b.speedup.value)


def _rung(name: str, a: Side, b: Side) -> str:
    one, other = a.rungs.get(name, ""), b.rungs.get(name, "")
    return f" (rung {one} → {other})" if one != other and one and other else ""


def quotient(over: Interval, under: Interval) -> Interval:
    """The one over the other. Not known where one of them is not. ValueError for what is not above 0.

    What was timed in turns is compared round by round (bench.results.stats.compare). Two runs have no rounds
    in common, so for each there is only its value and its interval. The interval of their ratio follows from
    these: with logarithms, the distance to the lower end is √(a² + b²), where a is how far the one interval
    reaches down and b how far the other reaches up (G. Y. Zou and A. Donner, "Construction of confidence
    limits about effect measures: a general approach", Statistics in Medicine 27, 2008). This assumes that the
    two are independent. It cannot see what differs between two runs as a whole; that is why runs are compared
    by their ratios to a reference, and not by times.
    """
    if over.value <= 0 or under.value <= 0:
        raise ValueError("a ratio needs values above 0")
    value = over.value / under.value
    down = math.hypot(_reach(over.value, over.low), _reach(under.high, under.value))
    up = math.hypot(_reach(over.high, over.value), _reach(under.value, under.low))
    low, high = value * math.exp(-min(down, _FAR)), value * math.exp(min(up, _FAR))
    return Interval(value, min(low, value), max(high, value), over.known and under.known)


def inverse(ratio: Interval) -> Interval:
    """One over it."""
    high = 1 / ratio.low if ratio.low > 0 else math.inf
    return Interval(1 / ratio.value, 1 / ratio.high, high, ratio.known)


_FAR = 300.0  # as a logarithm, beyond which an end says nothing


def _reach(high: float, low: float) -> float:
    """How far apart two ends are, as a logarithm."""
    return _FAR if low <= 0 or not math.isfinite(high) else math.log(high / low)
