"""Two ladders of one operator held against each other (bench.views.diff), rung by rung."""

from __future__ import annotations

from bench.results import stats
from bench.results.ladder_records import LadderJob
from bench.results.ladder_rows import RungRow, rows
from bench.results.records import stem
from bench.run.kinds.ladder import LadderFolder
from bench.views.diff import differs
from bench.views.diff.differs import matched
from bench.views.diff.judging import across_runs
from bench.views.diff.records import Compared, Pair, Side
from kernels.errors import InputError

# What makes two ladders ladders of different things; and settings that only say which rungs there are.
_SAME = ("op", "params", "device", "batch")
_CASES = ("rungs", "title", "model", "node", "precision", "whole_model")


def compared(one: LadderFolder, other: LadderFolder) -> Compared:
    """Raises InputError where the two are of different operators or shapes."""
    for name in _SAME:
        if getattr(one.job, name) != getattr(other.job, name):
            raise InputError(
                f"{one.path} is a ladder of {_of(one.job)}, {other.path} of {_of(other.job)}: "
                "only ladders of one operator at one shape can be compared"
            )
    a, b = (
        [row for scope in ("rung", "model") for row in rows(folder.header, folder.measurements(), scope)]
        for folder in (one, other)
    )
    meant = {case.key for case in other.cases}
    pairs = [_pair(ours, theirs, meant) for ours, theirs in matched(a, b, (lambda row: row.case.key,))]
    return Compared(pairs, tuple(differs.jobs(one.job, other.job, (*_SAME, *_CASES))), who="rung")


def _of(job: LadderJob) -> str:
    where = f" of {stem(job.model)}'s {job.node}" if job.model else f" of {job.title or job.params}"
    return f"{job.op}{where} at batch {job.batch:,} on {job.device}"


def _pair(a: RungRow | None, b: RungRow | None, meant: set[str]) -> Pair:
    row = a or b
    assert row is not None
    return Pair(
        key=row.case.key,
        words=row.case.words,
        who=row.name,
        a=_side(a),
        b=_side(b),
        planned=b is None and row.case.key in meant,
        reference=row.case.is_reference,
    )


def _side(row: RungRow | None) -> Side | None:
    if row is None:
        return None
    found = row.measurement
    finding = found.finding
    return Side(
        disposition=found.disposition,
        reason=found.reason or (finding.reason if finding is not None else ""),
        time=row.time,
        speedup=row.speedup,
        against="" if row.reference is None else row.reference.case.words,
        has_rounds=stats.has_rounds(found, row.reference or found) if found.samples_ns else False,
        undecided=across_runs(row.undecided),
        doubts=(*(row.speedup_doubts if row.speedup is not None else row.doubts), *row.ratio_unsteady),
        error=found.error,
        facts=found.facts,
        clock_mhz=found.telemetry.sm_clock_mhz,
    )
