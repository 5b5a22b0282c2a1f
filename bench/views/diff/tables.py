"""A diff as tables (bench.views.tables): its cases, what differs, the steps of a waterfall; and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from bench.results.stats import Interval, Verdict, verdict
from bench.views.diff.judging import inverse, where
from bench.views.diff.records import Change, Diff, Difference, Side, Step, Waterfall
from bench.views.sentences import diff_sentences as sentences
from bench.views.tables.comparison_tables import WORDS, seconds
from bench.views.tables.table import Column, Table, pick, records
from bench.words import orders, units

UNSURE = "no more than the passes of one profile differ by"


def _side(which: str, get: Callable[[Side], Any]) -> Callable[[Change], Any]:
    def value(change: Change) -> Any:
        side: Side | None = getattr(change.pair, which)
        return None if side is None else get(side)

    return value


def _end(which: str, field: str, end: str = "value", scale: float = 1.0) -> Callable[[Change], float | None]:
    def get(side: Side) -> float | None:
        found: Interval | None = getattr(side, field)
        if found is None or (end != "value" and not found.known):
            return None
        return float(getattr(found, end)) * scale

    return _side(which, get)


def _ratio(end: str) -> Callable[[Change], float | None]:
    def value(change: Change) -> float | None:
        found = change.ratio
        return None if found is None or (end != "value" and not found.known) else float(getattr(found, end))

    return value


def _doubts(change: Change) -> tuple[str, ...]:
    return change.doubts


def ended(change: Change) -> str:
    """How it ended in B, and in A where that is another way."""
    a, b = change.pair.a, change.pair.b
    if a is None or b is None:
        return f"only in {'A' if b is None else 'B'}"
    names = [WORDS.get(side.disposition, side.disposition) for side in (a, b)]
    return names[0] if names[0] == names[1] else " → ".join(names)


def said(change: Change) -> str:
    """What B is beside A, as one reads it: "1.20× faster"; of what is compared by its time alone, that. Of
    what has no verdict, as a reference, the range of the ratio."""
    ratio = change.ratio
    if ratio is None:
        return ""
    told = orders.interval_words(change.verdict, ratio)
    if not told:
        told = orders.span(ratio.low, ratio.high) if ratio.known else orders.NOT_DECIDED
    return ", ".join(filter(None, (told, "by time" if change.by == "time" else "")))


def _beside(which: str) -> Callable[[Change], str]:
    """A side's own speed-up over the reference beside it."""

    def words(change: Change) -> str:
        side: Side | None = getattr(change.pair, which)
        if side is None or side.speedup is None:
            return ""
        told = verdict(inverse(side.speedup)) if side.has_rounds and not side.undecided else Verdict.UNCLEAR
        return orders.interval_words(told, side.speedup)

    return words


def _arrow(get: Callable[[Side], float | None], text: Callable[[float], str]) -> Callable[[Change], str]:
    """A figure of both, once where people read the same of both."""

    def words(change: Change) -> str:
        told = ["" if (v := _side(which, get)(change)) is None else text(v) for which in ("a", "b")]
        return told[0] if told[0] == told[1] else " → ".join(each or "none" for each in told)

    return words


_word = partial(Column[Change], left=True)
COLUMNS: tuple[Column[Change], ...] = (
    _word("case", lambda c: c.pair.words),
    _word("model", lambda c: c.pair.model or None),
    _word("who", lambda c: c.pair.who, title="backend"),
    Column("batch", lambda c: c.pair.batch or None),
    _word(
        "result",
        ended,
        style=lambda c: "bold red" if c.wrong else "" if c.matched else "dim",
    ),
    Column("a_s", _end("a", "time", scale=1e-9), seconds, title="time A"),
    Column("a_low_s", _end("a", "time", "low", 1e-9), seconds),
    Column("a_high_s", _end("a", "time", "high", 1e-9), seconds),
    Column("b_s", _end("b", "time", scale=1e-9), seconds, title="time B"),
    Column("b_low_s", _end("b", "time", "low", 1e-9), seconds),
    Column("b_high_s", _end("b", "time", "high", 1e-9), seconds),
    Column(
        "a_speedup",
        _end("a", "speedup"),
        units.times,
        title="speed-up A",
        tip="Over the reference beside it",
        cell=_beside("a"),
    ),
    Column("a_speedup_low", _end("a", "speedup", "low"), units.times),
    Column("a_speedup_high", _end("a", "speedup", "high"), units.times),
    Column(
        "b_speedup",
        _end("b", "speedup"),
        units.times,
        title="speed-up B",
        tip="Over the reference beside it",
        cell=_beside("b"),
    ),
    Column("b_speedup_low", _end("b", "speedup", "low"), units.times),
    Column("b_speedup_high", _end("b", "speedup", "high"), units.times),
    _word("by", lambda c: c.by or None, tip="What the ratio is of: speed-ups, or times alone"),
    Column(
        "ratio",
        _ratio("value"),
        units.times,
        _doubts,
        "B beside A",
        "Whether B takes less time than A, and by how much",
        left=True,
        cell=lambda c: said(c),
        style=lambda c: orders.STYLES[orders.role(c.verdict, c.doubts)],
        holds=float,
    ),
    Column("ratio_low", _ratio("low"), units.times, title="from"),
    Column("ratio_high", _ratio("high"), units.times, title="to"),
    _word("verdict", lambda c: c.verdict or None, lambda name: orders.SHORT[name]),
    _word("undecided", lambda c: c.undecided or None),
    Column("a_error", _side("a", lambda s: s.error and s.error.rel_l2), units.exponent, title="error A"),
    Column("b_error", _side("b", lambda s: s.error and s.error.rel_l2), units.exponent, title="error B"),
    Column("a_top1", _side("a", lambda s: s.top1), units.percent),
    Column("b_top1", _side("b", lambda s: s.top1), units.percent),
    Column("a_agreement", _side("a", lambda s: s.agreement), units.percent),
    Column("b_agreement", _side("b", lambda s: s.agreement), units.percent),
    _word("wrong", lambda c: c.wrong or None),
    _word("worse", lambda c: c.worse or None),
    _word("lost", lambda c: c.lost or None),
    _word("not_compared", lambda c: c.apart or None),
    _word("doubts", lambda c: "; ".join(c.doubts) or None),
    _word("where", lambda c: where(c) or None, tip="Which layers made the difference, by their own times"),
    _word("leaves", lambda c: (c.pair.b.left or None) if c.pair.b is not None else None),
)
_INTERVAL: Column[Change] = Column(
    "interval",
    cell=lambda c: (
        orders.span(c.ratio.low, c.ratio.high)
        if c.ratio and c.ratio.known and orders.decided(c.verdict)
        else ""
    ),
    title="95 %",
)
_ANSWERS = (
    Column[Change]("error", cell=_arrow(lambda s: s.error.rel_l2 if s.error else None, units.exponent)),
    Column[Change]("top1", cell=_arrow(lambda s: s.top1, units.percent), title="top-1"),
    Column[Change]("agreement", cell=_arrow(lambda s: s.agreement, units.percent), title="agree"),
)
READ = pick(
    COLUMNS,
    *("model", "who", "batch", "result", "ratio", _INTERVAL),
    *("a_speedup", "b_speedup", "a_s", "b_s"),
    *_ANSWERS,
)


def cases(diff: Diff) -> Table[Change]:
    """Every figure of every case."""
    return Table(COLUMNS, diff.changes, key="cases")


def readable(diff: Diff) -> Table[Change]:
    """What people read."""
    models = {change.pair.model for change in diff.changes}
    columns = [
        replace(column, title=diff.who) if column.name == "who" else column
        for column in READ
        if column.name != "model" or len(models) > 1
    ]
    return Table(columns, diff.changes, "Cases", key="cases")


DIFFERENCES: tuple[Column[Difference], ...] = (
    Column("what", left=True),
    Column("of", left=True),
    Column("a", left=True, title="A"),
    Column("b", left=True, title="B"),
)


def differences(diff: Diff) -> Table[Difference]:
    return Table(DIFFERENCES, diff.differences, "What else differs", sentences.how(diff), key="differences")


def _ns(name: str) -> Callable[[Step], float | None]:
    return lambda step: None if (found := getattr(step, name)) is None else found * 1e-9


def _of(change_ns: float) -> Callable[[Step], float | None]:
    return lambda step: step.change_ns / change_ns if change_ns else None


def steps(found: Waterfall) -> Table[Step]:
    """From A's time to B's."""
    columns: tuple[Column[Step], ...] = (
        Column("what", left=True),
        Column("label", left=True, title="step"),
        Column("a_s", _ns("a_ns"), seconds, title="A"),
        Column("b_s", _ns("b_ns"), seconds, title="B"),
        Column(
            "change_s",
            _ns("change_ns"),
            lambda s: units.change(s * 1e9),
            lambda step: () if step.sure else (UNSURE,),
            "change",
        ),
        Column(
            "margin_s", _ns("margin_ns"), seconds, title="±", tip="How far the change may be off, at 95 %"
        ),
        Column("share", _of(found.change_ns), _share, title="of the change"),
        Column("note", lambda step: step.note or None, left=True, title="what changed"),
    )
    notes = (sentences.waterfall(found), *found.notes)
    return Table(columns, found.steps, f"From A to B: {found.words}", notes, key=f"waterfall-{found.key}")


def _share(share: float) -> str:
    text = units.percent(abs(share), 1)
    return f"−{text}" if share < 0 and text != "0.0 %" else text


READ_STEPS = ("label", "a_s", "b_s", "change_s", "margin_s", "share", "note")


def readable_steps(found: Waterfall, said: bool = True) -> Table[Step]:
    """said: with the sentence, where it does not stand above it all."""
    table = steps(found)
    notes = table.notes if said else found.notes
    return Table(pick(table.columns, *READ_STEPS), table.rows, table.title, notes, table.key)


def output(diff: Diff, failing: dict[str, str], fail_on: Sequence[str]) -> dict[str, Any]:
    """All of it. failing: the cases that the gate fails on, by key, with the reason."""
    return {
        "kind": diff.kind,
        "a": _named(diff, "a"),
        "b": _named(diff, "b"),
        "bound": diff.bound,
        "one_machine": diff.one_machine,
        "verdict": sentences.verdict(diff),
        "differences": records(differences(diff)),
        "cases": [
            {"key": change.pair.key, **record}
            for change, record in zip(diff.changes, records(cases(diff)), strict=True)
        ],
        "waterfalls": [
            {
                "case": found.words,
                "a_s": found.a_ns * 1e-9,
                "b_s": found.b_ns * 1e-9,
                "explained": found.explained,
                "sentence": sentences.waterfall(found),
                "steps": records(steps(found)),
            }
            for found in diff.waterfalls
        ],
        "fail_on": list(fail_on),
        "failing": failing,
    }


def _named(diff: Diff, which: str) -> dict[str, str]:
    found = getattr(diff, which)
    return {
        "run": str(found.path),
        "name": found.name,
        "created_at": found.created_at,
        "machine": found.machine,
        "command": found.command,
    }
