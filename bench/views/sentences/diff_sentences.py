"""What is said of two runs, in sentences: which they are, what else differs, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.results import doubt
from bench.views.diff.judging import where
from bench.views.diff.records import Change, Diff, Difference, Waterfall
from bench.words import orders, units

NAMED = 3  # cases that are named, where they are no more
MOST = 12  # differences in a summary
LEAST = 0.01  # of the change, from which on a step is told
PLACES = 4  # cases of which it is told which layers made the difference
LIKELY = 5  # steps of a waterfall in its sentence


def heading(diff: Diff) -> list[str]:
    """Which two they are."""
    return [f"A  {diff.a.words}", f"B  {diff.b.words}"]


def differences(diff: Diff) -> list[str]:
    """What else is not the same, and how they can be compared therefore; said before any figure."""
    lines = [difference.words for difference in diff.differences]
    if not lines:
        lines = ["All else is the same in both runs: machine, versions, settings, clocks, kernels."]
    else:
        lines = [f"What else differs: {lines[0]}", *(f"                   {line}" for line in lines[1:])]
    return [*lines, *how(diff)]


def how(diff: Diff) -> list[str]:
    """By what they are compared, where that is not what one expects."""
    if not diff.one_machine:
        return [
            "The two were measured on different machines: their times are not compared, but the speed-up of "
            "each over the reference that ran beside it."
        ]
    if any(change.by == "speed-up" for change in diff.changes):
        return ["Compared by speed-up over the reference that ran beside each; times differ from run to run."]
    return []


def verdict(diff: Diff, who: str = "B") -> str:
    """What came of it: "B is 1.20× faster in 2 of 8 cases (…); as fast in 5 (within 2 %); …". who: what B is
    called there."""
    judged = [change for change in diff.changes if change.verdict]
    parts = []
    if diff.waterfalls:
        largest = max(diff.waterfalls, key=lambda found: abs(found.change_ns))
        name = f"{largest.words}: " if len(diff.waterfalls) > 1 else ""
        parts.append(f"{name}{waterfall(largest).removesuffix('.')}")
    whole = True
    for name in orders.WORDS:
        if found := [change for change in judged if change.verdict == name]:
            told = _group(name, found, judged if whole else (), diff)
            if whole and orders.decided(name):
                told = f"{who} is {told}"
            elif whole:
                told = told.replace(orders.NOT_DECIDED, orders.undecided_between(("A", who)), 1)
            parts.append(told)
            whole = False
    for what, found in (
        ("wrong", [change for change in diff.changes if change.wrong]),
        ("worse in its answers", [change for change in diff.changes if change.worse and not change.wrong]),
        ("mended", [change for change in diff.changes if change.mended]),
        ("not compared", [change for change in diff.changes if change.unjudged]),
        ("in A alone", [change for change in diff.changes if change.pair.b is None]),
        ("in B alone", [change for change in diff.changes if change.pair.a is None]),
    ):
        if found:
            parts.append(f"{len(found)} {what}{_named(found)}")
    doubted = sum(bool(change.doubts) and orders.decided(change.verdict) for change in judged)
    if doubted:
        parts.append(f"{doubted} doubtful ({doubt.MARK.strip()})")
    return f"{'; '.join(parts)}." if parts else "No case could be compared."


def _group(verdict: str, found: Sequence[Change], of: Sequence[Change], diff: Diff) -> str:
    """ "1.20× faster in 2 of 8 cases (…)". of: all of them, where it is said how many these are."""
    amount = orders.range_words(verdict, [change.ratio.value if change.ratio else None for change in found])
    where = f" in {len(found)}" + (f" of {len(of)} cases" if len(of) > 1 else "")
    if verdict == "SAME":
        return f"{amount}{where} (within {units.digits(diff.bound * 100, 2).removesuffix('.0')} %)"
    if verdict == "UNCLEAR":
        alike: dict[str, list[str]] = {}
        for why in filter(None, (orders.reason(change.undecided) for change in found)):
            alike.setdefault(doubt.without_figures(why), []).append(why)
        told = ", ".join(map(doubt.spanned, alike.values()))
        return f"{amount}{where} ({told})" if told else f"{amount}{where}"
    return f"{amount}{where}{_named(found)}"


def _named(found: Sequence[Change]) -> str:
    return f" ({'; '.join(change.pair.words for change in found)})" if len(found) <= NAMED else ""


def remarks(diff: Diff) -> list[str]:
    """Below the table: why cases have no ratio, what is wrong and where it begins, doubts."""
    lines: dict[str, None] = {}
    for change in diff.changes:
        lost = change.lost if change.matched and not change.wrong else ""
        for text in (change.wrong, change.worse, lost):
            if text:
                lines[f"{change.pair.words}: {text}"] = None
        b = change.pair.b
        if change.wrong and b is not None and b.left:
            lines[f"{change.pair.words}: {b.left}."] = None
    told = [(change, where(change)) for change in diff.changes]
    for change, text in sorted((item for item in told if item[1]), key=_most)[:PLACES]:
        lines[f"{change.pair.words}: {orders.WORDS[change.verdict]}, {text}"] = None
    grouped: dict[str, list[tuple[str, str, Change]]] = {}
    for change in diff.changes:
        for text in change.doubts:
            alone, side = _sided(text)
            grouped.setdefault(doubt.without_figures(alone), []).append((alone, side, change))
    for found in grouped.values():
        who = _and(dict.fromkeys(change.pair.who or change.pair.words for _, _, change in found))
        sides = _and(sorted({side for _, side, _ in found if side}) or [""])
        of = f" (of {sides})" if sides else ""
        lines[f"! {who}: {doubt.worst(text for text, _, _ in found)}{of}"] = None
    if grouped:
        lines[doubt.MEANING] = None
    if diff.no_verdict:
        lines[f"{diff.no_verdict[:1].upper()}{diff.no_verdict[1:]}."] = None
    return list(lines)


def _most(item: tuple[Change, str]) -> float:
    """The largest change first."""
    ratio = item[0].ratio
    return -orders.above_one(ratio.value) if ratio is not None else 0.0


def _sided(text: str) -> tuple[str, str]:
    """A doubt, and of which of the two it is ("" where of both)."""
    for side in "AB":
        if text.endswith(f" (of {side})"):
            return text.removesuffix(f" (of {side})"), side
    return text, ""


def waterfall(found: Waterfall) -> str:
    """ "From 1.53 ms to 2.02 ms a pass (+490 µs): conv2 +401 µs (rung tiled → naive), …; 98 % of it has a
    name"."""
    change = found.change_ns
    way = f"From {units.duration(found.a_ns)} to {units.duration(found.b_ns)} a pass ({units.change(change)})"
    if not change:
        return f"{way}."
    told = [step for step in found.steps if step.named and abs(step.change_ns) >= LEAST * abs(change)]
    parts = [
        f"{step.label} {units.change(step.change_ns)}{'' if step.sure else doubt.MARK}"
        + (f" ({step.note})" if step.note else "")
        for step in told[:LIKELY]
    ]
    if len(told) > LIKELY:
        parts.append(
            f"{len(told) - LIKELY} more steps {units.change(sum(step.change_ns for step in told[LIKELY:]))}"
        )
    if not parts:
        parts = ["no step that has a name makes up a hundredth of it"]
    return f"{way}: {', '.join(parts)}; {units.percent(found.explained or 0.0, 1)} of the change has a name."


def summary(diff: Diff) -> str:
    """A fresh run beside its baseline, in the few words that are read when it has ended."""
    told = f"Against the baseline {diff.a.name}: {verdict(diff, 'this run')}"
    if diff.differences:
        told += f" What else differs: {in_short(diff.differences)}."
    return told


def in_short(found: Sequence[Difference]) -> str:
    whats = dict.fromkeys(difference.what for difference in found)
    counts = {what: sum(difference.what == what for difference in found) for what in whats}
    return ", ".join(
        f"{what}{f' ({count})' if count > 1 else ''}" for what, count in list(counts.items())[:MOST]
    )


def _and(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
