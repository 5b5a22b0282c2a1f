"""The three answers to a ladder (bench.views.cards): of the user's own kernel beside the fastest rung, or
without one of the fastest rung beside the reference."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from bench.results import doubt, stats
from bench.results.ladder_records import Ladder
from bench.results.ladder_rows import RungRow, bound
from bench.results.stats import Comparison
from bench.views.cards import FAST, HELD, IMPOSSIBLE, NO_SPEED, NOTHING, RIGHT, Answer, Role
from bench.views.sentences import ladder_story, limits
from bench.views.tables import ladder_tables
from bench.words import orders, units
from kernels.precision import EXACT

ALIKE = 0.1  # of the words of two ideas, from which on one is near the other
_WORD = re.compile(r"[a-z]{4,}")


def answers(ladder: Ladder, rows: Sequence[RungRow]) -> tuple[str, dict[str, Answer]]:
    """Whom it is about (a rung's label, "" if nothing is measured), and the answers by their question. Their
    `cases` are the keys of rungs' cases."""
    rungs = [row for row in rows if not row.case.is_reference]
    tried = [row for row in rungs if row.measurement.disposition != "cancelled"]
    others = [row for row in tried if not row.case.user]
    exact = [row for row in others if row.case.precision in EXACT]
    lead = ladder_story.leading(exact or others)
    own = next((row for row in reversed(tried) if row.case.user), None)
    if own is not None:
        best = lead.best if lead is not None else None
        return own.case.label, {
            RIGHT: _own_right(own, others),
            FAST: _beside(ladder, own, best),
            HELD: _held(ladder, own),
        }
    found = {RIGHT: _all_right(tried, rungs), FAST: Answer(NOTHING), HELD: Answer(NOTHING)}
    if lead is None:
        return "", found
    found[FAST] = _beside_reference(ladder, lead)
    if lead.decided:
        found[HELD] = _held(ladder, lead.best)
    return lead.best.case.label if lead.decided else "", found


def text(ladder: Ladder, rows: Sequence[RungRow]) -> str:
    """The same as one sentence."""
    who, found = answers(ladder, rows)
    parts = [
        f"{each.text} {each.detail}".strip() if question == FAST
        else f"{f'{HELD.lower()}: ' * (question == HELD)}{each.text}{f' ({each.detail})' * bool(each.detail)}"
        for question, each in found.items()
        if each.text != NOTHING
    ]  # fmt: skip
    return f"{who}: " * bool(who) + "; ".join(parts)


# ------------------------------------------------------------------------------------------------- right?


def _own_right(own: RungRow, others: Sequence[RungRow]) -> Answer:
    measured, cases = own.measurement, (own.case.key,)
    near = nearest_idea(own, others)
    detail = f"nearest rung by idea: {near.case.label}" if near is not None else ""
    if measured.disposition == "ok":
        return Answer("✓ right", detail, "good", own.case.idea, cases)
    wrong = measured.disposition == "incorrect"
    why = measured.reason or measured.disposition.replace("_", " ")
    if measured.disposition == "unsupported":
        return Answer("refused", detail, "", why, cases)
    told = measured.disposition.replace("_", " ")
    if wrong:
        told = ladder_tables.wrong(measured.finding) if measured.finding is not None else "wrong"
    return Answer(f"✕ {told}", detail, "bad", why, cases)


def _all_right(tried: Sequence[RungRow], rungs: Sequence[RungRow]) -> Answer:
    able = [row for row in tried if row.measurement.disposition != "unsupported"]
    right = [row for row in able if row.measurement.disposition == "ok"]
    wrong = [row for row in able if row.measurement.disposition != "ok"]
    if not able:
        return Answer(NOTHING)
    refused, left = len(tried) - len(able), len(rungs) - len(tried)
    detail = ", ".join(
        f"{count} {what}" for count, what in ((refused, "refused"), (left, "not measured")) if count
    )
    if wrong:
        why = "\n".join(f"{row.case.label}: {row.measurement.reason}" for row in wrong)
        names = orders.listed([row.case.label for row in wrong])
        return Answer(
            f"✕ {len(wrong)} of {len(able)} rungs not right",
            names,
            "bad",
            why,
            tuple(r.case.key for r in wrong),
        )
    role: Role = "good" if not left else ""
    return Answer(
        f"✓ {len(right)} of {len(able)} rungs right", detail, role, "", tuple(r.case.key for r in right)
    )


def nearest_idea(own: RungRow, others: Sequence[RungRow]) -> RungRow | None:
    """The rung whose idea shares most of its words with this one's. A word counts the less, the more rungs
    use it. None if no idea shares ALIKE of what all words count."""
    ours, every = _words(own), {row.name: _words(row) for row in others}
    used = Counter(word for words in (ours, *every.values()) for word in words)

    def weight(words: Iterable[str]) -> float:
        return sum(1 / used[word] for word in words)

    scores = {name: weight(ours & words) / max(weight(ours | words), 1e-9) for name, words in every.items()}
    best = max(others, key=lambda row: scores[row.name], default=None)
    return best if best is not None and scores[best.name] >= ALIKE else None


def _words(row: RungRow) -> set[str]:
    """The words of a rung's idea and name, without the ends that a plural and a tense have."""
    found = _WORD.findall(f"{row.case.idea} {row.name.replace('_', ' ')}".lower())
    return {re.sub(r"(ing|ed|es|s)$", "", word) for word in found}


# ---------------------------------------------------------------------------------------------- how fast?


def _beside(ladder: Ladder, own: RungRow, best: RungRow | None) -> Answer:
    """Beside the fastest rung; beside the reference as long as no rung is measured."""
    cases = (own.case.key,)
    if own.measurement.disposition in ("incorrect", "invalid"):
        told = NO_SPEED if own.measurement.disposition == "incorrect" else IMPOSSIBLE
        return Answer(NOTHING, told, "", own.measurement.reason, cases)
    if own.time is not None and best is None and own.speedup is not None and own.reference is not None:
        found = stats.compare(own.measurement, own.reference)
        return _told(own.verdict, found, ladder.reference, own.speedup_doubts, cases)
    if own.time is None or best is None or best.time is None:
        return Answer(NOTHING, "no time" if own.time is None else "nothing to compare with", "", "", cases)
    found = ladder_story.compared(own, best)
    doubts = (*own.doubts, *doubt.of_other(best.case.label, best.doubts))
    return _told(found.verdict.value, found, best.case.label, doubts, (own.case.key, best.case.key))


def _beside_reference(ladder: Ladder, lead: ladder_story.Leading) -> Answer:
    best, cases = lead.best, (lead.best.case.key,)
    if not lead.decided:
        named = (best, *lead.undecided)
        return Answer(orders.NOT_DECIDED, f"which is fastest of {len(named)}", "", lead.words, cases)
    if best.speedup is None or best.reference is None:
        return Answer(units.duration(best.time.value) if best.time else NOTHING, "the fastest", "", "", cases)
    found = stats.compare(best.measurement, best.reference)
    return _told(best.verdict, found, ladder.reference, best.speedup_doubts, cases)


def _told(
    verdict: str, found: Comparison, other: str, doubts: Sequence[str], cases: tuple[str, ...]
) -> Answer:
    why = "\n".join(
        filter(None, [orders.interval_words(verdict, found.ratio.inverse, True), *doubts, found.undecided])
    )
    if not orders.decided(verdict):
        return Answer(orders.NOT_DECIDED, f"beside {other}", "", why, cases)
    if doubts:
        return Answer("in doubt", f"beside {other}", "warn", why, cases)
    if verdict == "SAME":
        return Answer("as fast", f"as {other}", "good", why, cases)
    factor = units.times(orders.above_one(found.ratio.inverse.value))
    role: Role = "good" if verdict == "FASTER" else "bad"
    return Answer(factor, f"{orders.WORDS[verdict]} than {other}", role, why, cases)


# ------------------------------------------------------------------------------------------- held back by


def _held(ladder: Ladder, row: RungRow) -> Answer:
    which = bound(ladder, row.case.precision)
    if row.limit is None or not which or row.measurement.disposition != "ok":
        return Answer(NOTHING)
    known = ladder_story.holding(row)
    told = limits.standing(row.limit, which, known)
    name, cases = limits.NAMES[which], (row.case.key,)
    if limits.binds(row.limit):
        return Answer(f"{name}, {limits.percent(row.limit)} of the limit", row.case.label, "", told, cases)
    share = f"{limits.percent(row.limit)} of the limit of {name}"
    return Answer(known[0] if known else "no limit is near", share, "", told, cases)
