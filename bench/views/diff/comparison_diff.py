"""Two comparisons held against each other (bench.views.diff): their cases, and what differs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from bench.results import stats
from bench.results.records import Case, EndToEnd, stem
from bench.results.rows import Row, label, rows, title
from bench.results.stats import Interval
from bench.run.kinds.comparison import RunFolder
from bench.views.diff import differs
from bench.views.diff.bisect import left
from bench.views.diff.differs import matched
from bench.views.diff.judging import across_runs
from bench.views.diff.records import Compared, Pair, Side

# Settings that say which cases there are: what only one run has is told case by case.
_CASES = ("models", "backends", "precisions", "batches", "own_batches", "images", "own_images")


def compared(one: RunFolder, other: RunFolder) -> Compared:
    """A case is the same in both where model, backend, precision and batch size are; times do not depend on
    how many images an accuracy is of. Then also where all but the precision is."""
    a, b = (rows(folder.measurements()) for folder in (one, other))
    meant = set(map(_key, other.cases))
    found = matched(
        a,
        b,
        (
            lambda row: (_key(row.case), row.case.images),
            lambda row: _key(row.case),
            lambda row: (stem(row.case.model), row.case.backend, row.case.batch),
        ),
    )
    return Compared(
        pairs=[
            *(_pair(ours, theirs, meant) for ours, theirs in found),
            *(_end_to_end(ours, theirs) for ours, theirs in found if ours and theirs and _both(ours, theirs)),
        ],
        differences=(
            *differs.models(one.header, other.header),
            *differs.jobs(one.job, other.job, _CASES),
        ),
    )


def _key(case: Case) -> tuple[Hashable, ...]:
    return stem(case.model), case.backend, case.precision, case.batch


def _pair(a: Row | None, b: Row | None, meant: set[tuple[Hashable, ...]]) -> Pair:
    row = a or b
    assert row is not None
    case = row.case
    other = ""
    if a is not None and b is not None and a.case.precision != b.case.precision:
        other = f"{a.case.precision} → {b.case.precision}"
    who = label(case.backend, case.precision) if not other else case.backend
    return Pair(
        key=case.key,
        words=f"{title(case.model)} on {who}, batch {case.batch:,}",
        model=title(case.model),
        who=who,
        batch=case.batch,
        a=_side(a),
        b=_side(b),
        planned=b is None and _key(case) in meant,
        reference=row.is_reference,
        other=other,
    )


def _both(a: Row, b: Row) -> bool:
    """Whether both have that clock, with the same to carry there and back."""
    ours, theirs = a.end_to_end, b.end_to_end
    if ours is None or theirs is None or a.case.precision != b.case.precision:
        return False
    return _carried(ours.record) == _carried(theirs.record)


def _carried(found: EndToEnd) -> tuple[str, int, int]:
    return found.carries, found.nbytes_in, found.top_k


def _end_to_end(a: Row, b: Row) -> Pair:
    """The same case by its other clock: host images to host answers."""
    plain = _pair(a, b, set())
    who = f"{plain.who}, end to end"
    return replace(
        plain,
        key=f"{plain.key}-end-to-end",
        words=f"{plain.words}, end to end",
        who=who,
        a=_side_end_to_end(a),
        b=_side_end_to_end(b),
    )


def _side_end_to_end(row: Row) -> Side:
    found = row.end_to_end
    assert found is not None
    return Side(
        disposition=row.measurement.disposition,
        reason=row.measurement.reason,
        time=_interval(found.ns, found.low_ns, found.high_ns),
        speedup=_interval(found.speedup, found.speedup_low, found.speedup_high),
        against=found.against,
        has_rounds=len(found.record.rounds) > 1,
        undecided=across_runs(found.undecided),
        doubts=found.speedup_doubts if found.against else found.doubts,
    )


def _side(row: Row | None) -> Side | None:
    if row is None:
        return None
    found, accuracy = row.measurement, row.measurement.accuracy
    against = row.against
    return Side(
        disposition=found.disposition,
        reason=found.reason,
        time=_interval(row.median_ns, row.low_ns, row.high_ns),
        speedup=_interval(row.speedup, row.speedup_low, row.speedup_high),
        against=label(against.case.backend, against.case.precision) if against is not None else "",
        has_rounds=stats.has_rounds(found, against or found) if found.samples_ns else False,
        undecided=across_runs(row.undecided),
        doubts=(*(row.speedup_doubts if against is not None else row.own_doubts), *row.ratio_unsteady),
        error=accuracy.output if accuracy is not None else None,
        top1=accuracy.top1 if accuracy is not None else None,
        agreement=accuracy.agreement if accuracy is not None and not row.is_reference else None,
        facts=found.facts,
        rungs={layer.nodes[0]: layer.rung for layer in found.layers if layer.rung and layer.nodes},
        layers={layer.nodes[0]: layer.time_ns for layer in found.layers if layer.time_ns and layer.nodes},
        clock_mhz=found.telemetry.sm_clock_mhz,
        left=left(found),
    )


def _interval(value: float | None, low: float | None, high: float | None) -> Interval | None:
    if value is None:
        return None
    if low is None or high is None:
        return Interval(value, value, value, known=False)
    return Interval(value, low, high)
