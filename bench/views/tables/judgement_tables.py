"""What came of one kernel that was judged: `judge --format json`, and what `judge --serve` answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from bench.results import stats
from bench.results.finding import Finding
from bench.results.ladder_records import COUNTS, REFERENCE, Ladder, RungMeasurement
from bench.results.ladder_rows import RungRow, rows
from bench.results.records import Disposition
from bench.results.stats import SAME_BOUND, Interval
from bench.views.diff import differs, judging
from bench.views.diff.records import Pair, Side
from bench.views.tables.table import Output, head
from bench.words import orders
from kernels.errors import InputError

BASELINE = "baseline"  # what a kernel is held against where an earlier judgement is given

Grade = Literal["faster", "same", "slower", "undecided", "doubtful", "wrong", "none"]
# How it ended → whether it is right. What is not among them is not known to be either.
RIGHT: dict[str, bool] = {
    "ok": True,
    "incorrect": False,
    "failed": False,
    "crashed": False,
    "timed_out": False,
}


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel was timed beside.

    - name: "reference", a rung's name, or "baseline", an earlier judgement; title: in words.
    - time_s: the median of a pass, with its 95 % interval; null where it was not timed, as `reason` says.
    - speedup: its time over the kernel's, round by round, with its 95 % interval: above 1 the kernel is
      faster.
    - verdict: of the kernel, FASTER, SLOWER, SAME or UNCLEAR; "" where nothing was compared. undecided: why
      it is UNCLEAR. grade: the verdict, or "doubtful" where something speaks against it, as `doubts` says.
    """

    name: str
    title: str
    time_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    verdict: str = ""
    undecided: str = ""
    grade: Grade = "none"
    doubts: tuple[str, ...] = ()
    reason: str = ""


class JudgementOutput(Output, frozen=True, kw_only=True):
    """`judge --format json`: what came of one kernel.

    - name, op, device, precision: of the kernel; title: what it was judged on, in words.
      l2, threads: as they were asked for; l2 is "" in judgements from before it was told.
    - right: whether its answers are right; null where that is not known (it was refused, or the memory did
      not suffice). outcome: how it ended: "ok", "incorrect", "crashed", "timed_out", "failed" (it does not
      compile, or raises an error), "unsupported" (refused), "out_of_memory", "invalid" (no time that can be
      believed) or "cancelled". why: the reason, in a sentence; "" where it is right.
    - finding: what is wrong with its answers: the fault by name, the first wrong element, what was expected.
    - time_s: the median of a pass, with its 95 % interval; null where it was not timed.
    - against: what it was timed beside, the reference first. grade: of the first of these; "wrong" where it
      is not right, "none" where there is nothing to compare.
    - doubts: what speaks against its own time. unsteady: why the comparison with the reference is unsteady:
      another judgement is not compared with such a one. notes: what is to be known of a right answer.
    - rel_l2_error, error_bound: the relative L2 error against float64, and what it may be.
    - checks: passes whose answers were judged; samples: of its time.
    - compiled: registers, shared_nbytes, stack_nbytes and spill_nbytes of a CUDA kernel, its threads and
      occupancy; empty where the compiler tells nothing.
    - took_s: how long the judgement took, from the request to the answer.
    - simulated: it ran on the CPU, without a GPU, and has no times. counted: what a pass has cost in warp
      instructions, sectors of global memory, wavefronts of shared memory and so on, by name; costs: the
      same in sentences, with the lines that cost most.
    """

    name: str
    op: str
    device: str
    precision: str
    title: str
    l2: str = ""
    threads: int | None = None
    right: bool | None
    outcome: Disposition
    why: str
    grade: Grade
    finding: Finding | None
    time_s: float | None
    low_s: float | None
    high_s: float | None
    against: tuple[Against, ...]
    doubts: tuple[str, ...]
    unsteady: tuple[str, ...]
    notes: tuple[str, ...]
    rel_l2_error: float | None
    error_bound: float | None
    checks: int
    samples: int
    compiled: dict[str, float]
    took_s: float
    simulated: bool = False
    counted: dict[str, int] = msgspec.field(default_factory=dict)
    costs: tuple[str, ...] = ()


def judgement(
    ladder: Ladder, measurements: Sequence[RungMeasurement], rung: str, took_s: float
) -> JudgementOutput:
    """Of the rung called `rung`, one of the measurements."""
    shown = rows(ladder, measurements)
    own = next(row for row in shown if row.name == rung)
    m = own.measurement
    right = RIGHT.get(m.disposition)
    against = tuple(_against(ladder, own, other) for other in _first_the_reference(shown) if other is not own)
    time_s, low_s, high_s = _seconds(own.time)
    return JudgementOutput(
        **head([ladder]) | {"commands": ()},
        name=own.case.label,
        op=ladder.job.op,
        device=ladder.job.device,
        precision=own.case.precision,
        title=ladder.job.title,
        l2=ladder.job.l2,
        threads=ladder.job.threads,
        right=right,
        outcome=m.disposition,
        why=m.reason,
        grade="wrong" if right is False else against[0].grade if against and right else "none",
        finding=m.finding and msgspec.structs.replace(m.finding, map=""),  # which nobody keeps
        time_s=time_s,
        low_s=low_s,
        high_s=high_s,
        against=against,
        doubts=own.doubts,
        unsteady=own.ratio_unsteady,
        notes=m.notes,
        rel_l2_error=m.error.rel_l2 if m.error else None,
        error_bound=m.error.bound if m.error else None,
        checks=m.checks,
        samples=len(m.samples_ns),
        compiled=dict(m.compiled),
        took_s=took_s,
        simulated=ladder.job.simulated,
        counted=dict(m.counted),
        costs=tuple(m.facts.get(COUNTS, "").splitlines()),
    )


def no_kernel(name: str, op: str, device: str, why: str, took_s: float) -> JudgementOutput:
    """Of a text that is no kernel, and so was not run."""
    return JudgementOutput(
        **head([]),
        name=name,
        op=op,
        device=device,
        precision="",
        title="",
        right=False,
        outcome="failed",
        why=why,
        grade="wrong",
        finding=None,
        time_s=None,
        low_s=None,
        high_s=None,
        against=(),
        doubts=(),
        unsteady=(),
        notes=(),
        rel_l2_error=None,
        error_bound=None,
        checks=0,
        samples=0,
        compiled={},
        took_s=took_s,
    )


def check_baseline(earlier: JudgementOutput, ladder: Ladder, precision: str) -> None:
    """Raises InputError where an earlier judgement is of other work than a ladder's, in another precision, or
    was timed in another way."""
    job = ladder.job
    theirs = earlier.op, earlier.device, earlier.title, earlier.precision
    if theirs != (job.op, job.device, job.title, precision):
        raise InputError(
            f"the baseline is of {earlier.title} on {earlier.device} in {earlier.precision}, the "
            f"kernel of {job.title} on {job.device} in {precision}: only the same work can be compared"
        )
    if earlier.l2 and (earlier.l2, earlier.threads) != (job.l2, job.threads):
        before, now = (_timed(it.l2, it.threads) for it in (earlier, job))
        raise InputError(f"the baseline was timed with {before}, this kernel is with {now}: give the same")


def _timed(l2: str, threads: int | None) -> str:
    return f"--l2 {l2} and {f'--threads {threads}' if threads else 'one thread per core'}"


def with_baseline(judged: JudgementOutput, earlier: JudgementOutput) -> JudgementOutput:
    """Also held against an earlier judgement of the same work, by the rule of `runs diff`."""
    pair = Pair("kernel", judged.name, a=_side(earlier), b=_side(judged))
    one_machine = differs.one_machine(judged.environment, earlier.environment)
    change = judging.judged(pair, SAME_BOUND, one_machine)
    ratio = change.ratio
    told = Against(
        name=BASELINE,
        title=f"the baseline of {earlier.created_at[0][:10]}" if earlier.created_at else "the baseline",
        time_s=earlier.time_s,
        low_s=earlier.low_s,
        high_s=earlier.high_s,
        speedup=ratio.value if ratio is not None else None,
        speedup_low=ratio.low if ratio is not None and ratio.known else None,
        speedup_high=ratio.high if ratio is not None and ratio.known else None,
        verdict=change.verdict,
        undecided=_by_name(change.undecided, judged.name),
        grade=orders.role(change.verdict, change.doubts) or "none",
        doubts=tuple(_by_name(text, judged.name) for text in change.doubts),
        reason=_by_name(change.apart or change.lost, judged.name),
    )
    return msgspec.structs.replace(judged, against=(*judged.against, told))


def _by_name(text: str, kernel: str) -> str:
    """A sentence about two runs, A and B, as one about a baseline and a kernel."""
    return re.sub(r"\b(of|in) B\b", rf"\1 {kernel}", re.sub(r"\b(of|in) A\b", r"\1 the baseline", text))


def _side(judged: JudgementOutput) -> Side:
    """What a judgement says, as one side of a difference."""
    other = next((one for one in judged.against if one.name == REFERENCE), None)
    return Side(
        disposition=judged.outcome,
        reason=judged.why,
        time=_interval(judged.time_s, judged.low_s, judged.high_s, 1e9),
        speedup=None if other is None else _interval(other.speedup, other.speedup_low, other.speedup_high),
        against=other.title if other is not None else "",
        has_rounds=True,  # else `undecided` says so
        undecided=judging.across_runs(other.undecided) if other is not None else "",
        doubts=(*(other.doubts if other is not None else judged.doubts), *judged.unsteady),
    )


def _interval(
    value: float | None, low: float | None, high: float | None, scale: float = 1.0
) -> Interval | None:
    if value is None:
        return None
    if low is None or high is None:
        return Interval(value * scale, value * scale, value * scale, known=False)
    return Interval(value * scale, low * scale, high * scale)


def _first_the_reference(shown: Sequence[RungRow]) -> list[RungRow]:
    return sorted(shown, key=lambda row: not row.case.is_reference)


def _against(ladder: Ladder, own: RungRow, other: RungRow) -> Against:
    case, m = other.case, other.measurement
    title = ladder.reference if case.is_reference else case.label
    time_s, low_s, high_s = _seconds(other.time)
    told = Against(name=case.rung, title=title, time_s=time_s, low_s=low_s, high_s=high_s, reason=m.reason)
    if own.time is None or other.time is None:
        return told
    compared = stats.compare(own.measurement, m)
    speedup, verdict = compared.ratio.inverse, compared.verdict.value
    doubts = (*own.doubts, *(f"{text} (of {title})" for text in other.doubts))
    return msgspec.structs.replace(
        told,
        speedup=speedup.value,
        speedup_low=speedup.low if speedup.known else None,
        speedup_high=speedup.high if speedup.known else None,
        verdict=verdict,
        undecided=compared.undecided,
        grade=orders.role(verdict, doubts) or "none",
        doubts=doubts,
    )


def _seconds(time: Interval | None) -> tuple[float | None, float | None, float | None]:
    """A time and the ends of its interval, in seconds; None for what is not known."""
    if time is None:
        return None, None, None
    if not time.known:
        return time.value * 1e-9, None, None
    return time.value * 1e-9, time.low * 1e-9, time.high * 1e-9
