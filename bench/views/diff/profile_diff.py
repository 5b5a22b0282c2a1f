"""Two profiles held against each other (bench.views.diff): their cases, and where the time went."""

from __future__ import annotations

from bench.results import stats
from bench.results.event_files import events_in
from bench.results.profile_records import CaseProfile
from bench.results.records import stem
from bench.results.rows import label
from bench.run.kinds.profile import ProfileFolder
from bench.views.diff import differs
from bench.views.diff import profile_waterfall as waterfall
from bench.views.diff.differs import matched
from bench.views.diff.records import Compared, Pair, Side, Waterfall

_CASES = ("model", "backends", "batches", "precision")
OTHER_WORK = (
    "each profile is of another number of images a pass, which is other work, and no verdict follows: "
    "profile both at the same batch size"
)
NO_VERDICT = (
    "no case has its passes in several rounds in both profiles, and from one round no verdict follows: "
    "profile again those that are older or began cold (a comparison gives a verdict, too)"
)


def compared(one: ProfileFolder, other: ProfileFolder) -> Compared:
    """A case is the same where backend, precision and batch size are; where one of each is left over, also
    where the precision differs, the batch size, or the backend."""
    a, b = one.measurements(), other.measurements()
    found = matched(
        a,
        b,
        (
            lambda made: (stem(made.case.model), made.case.backend, made.case.precision, made.case.batch),
            lambda made: (stem(made.case.model), made.case.backend, made.case.batch),
            lambda made: (stem(made.case.model), made.case.backend),
            lambda made: stem(made.case.model),
        ),
    )
    meant = {case.key for case in other.cases}
    falls: list[Waterfall] = []
    for ours, theirs in found:
        if ours is not None and theirs is not None and "ok" == ours.disposition == theirs.disposition:
            made = waterfall.between(ours, events_in(one.path, ours), theirs, events_in(other.path, theirs))
            falls += [made] if made is not None else []
    pairs = [_pair(ours, theirs, meant) for ours, theirs in found]
    told = any(all(side is not None and side.has_rounds for side in (pair.a, pair.b)) for pair in pairs)
    in_rounds = any(all(made is not None and len(made.pass_rounds) > 1 for made in pair) for pair in found)
    return Compared(
        pairs=pairs,
        differences=(*differs.models(one.header, other.header), *differs.jobs(one.job, other.job, _CASES)),
        waterfalls=falls,
        no_verdict="" if told else OTHER_WORK if in_rounds else NO_VERDICT,
    )


def _pair(a: CaseProfile | None, b: CaseProfile | None, meant: set[str]) -> Pair:
    made = b or a
    assert made is not None
    case = made.case
    # A pass over another number of images is other work: neither is as fast as the other.
    alike = a is None or b is None or a.case.batch == b.case.batch
    return Pair(
        key=case.key,
        words=f"{stem(case.model)} on {label(case.backend, case.precision)}, batch {case.batch:,}",
        model=stem(case.model),
        who=label(case.backend, case.precision),
        batch=case.batch,
        a=_side(a, alike),
        b=_side(b, alike),
        planned=b is None and case.key in meant,
        other=_other(a, b),
    )


def _other(a: CaseProfile | None, b: CaseProfile | None) -> str:
    if a is None or b is None:
        return ""
    fields = ("backend", "precision", "batch")
    differ = [name for name in fields if getattr(a.case, name) != getattr(b.case, name)]
    sides = (", ".join(f"{name} {getattr(made.case, name)}" for name in differ) for made in (a, b))
    return " → ".join(sides) if differ else ""


def _side(made: CaseProfile | None, alike: bool) -> Side | None:
    """alike: whether the other has as much to do."""
    if made is None:
        return None
    times, rounds = (made.pass_ns, made.pass_rounds) if made.pass_ns else (made.samples_ns, ())
    return Side(
        disposition=made.disposition,
        reason=made.reason,
        time=stats.median_interval(times, rounds) if times else None,
        has_rounds=alike and len(rounds) > 1,
        doubts=(made.unrest,) if made.unrest else (),
        facts=made.facts,
        rungs={op.nodes[0]: op.rung for op in made.operators if op.rung and op.nodes},
        clock_mhz=made.telemetry.sm_clock_mhz,
    )
