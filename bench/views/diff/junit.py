"""A diff as tests of a CI server: a test a case, which fails where the gate does."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bench.results.stats import Verdict
from bench.views import junit
from bench.views.diff.records import Change, Diff
from bench.views.junit import Case
from bench.views.sentences import diff_sentences as sentences
from bench.words import orders

COMMAND = "runs diff"


def to_xml(diff: Diff, failing: Mapping[str, str], gates: Collection[str] = (), error: str = "") -> str:
    """failing: the cases that the gates fail on, by key, with the reason; error: why these could not judge,
    which is of every other case. A case that is not decided passes no gate of how fast it is."""
    wanted = not {"slower", "any"}.isdisjoint(gates)
    skipped = {
        change.pair.key: "only in B" if not change.matched else change.undecided
        for change in diff.changes
        if not change.matched or (wanted and change.verdict == Verdict.UNCLEAR)
    }
    skipped = {} if error else {key: why for key, why in skipped.items() if key not in failing}
    errors = {change.pair.key for change in diff.changes if error} - failing.keys()
    tests = [
        _test(
            diff,
            change,
            failing.get(change.pair.key, ""),
            error if change.pair.key in errors else "",
            skipped.get(change.pair.key, ""),
        )
        for change in diff.changes
    ]
    return junit.to_xml(
        COMMAND,
        f"{diff.a.name} → {diff.b.name}",
        tests,
        diff.b.created_at,
        [
            ("A", diff.a.words),
            ("B", diff.b.words),
            ("bound", f"{diff.bound:g}"),
            *(("differs", difference.words) for difference in diff.differences),
        ],
        "\n".join([*sentences.heading(diff), *sentences.differences(diff), sentences.verdict(diff)]),
    )


def _test(diff: Diff, change: Change, failure: str, error: str, skipped: str) -> Case:
    b = change.pair.b
    return Case(
        of=f"{diff.kind}.{change.pair.model or change.pair.who}",
        name=change.pair.words,
        time_s=b.time.value * 1e-9 if b is not None and b.time is not None else 0.0,
        failure=failure,
        error="" if failure else error,
        skipped="" if failure or error or not skipped else change.lost or skipped,
        kind="wrong" if change.wrong else change.verdict or "lost",
        text=(b.left if b is not None else "") if failure else told(change),
    )


def told(change: Change) -> str:
    """What came of a case, in a line."""
    parts = [
        orders.interval_words(change.verdict, change.ratio, ends=True),
        orders.reason(change.undecided),
        change.apart,
    ]
    return "; ".join(filter(None, (*parts, change.worse, *change.doubts)))
