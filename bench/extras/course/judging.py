"""One student's kernel for one exercise: right on shapes that turn on one thing each, on the hidden ones, on
the exercise's own; then timed beside the rungs that its thresholds name. A ladder of few rungs, so that it is
judged as everything else is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from bench.extras.course.exercise_runner import HIDDEN, ExerciseRunner
from bench.extras.course.records import (
    CLOSE,
    NAME,
    NUMBER,
    REFERENCE,
    Counted,
    CountLimit,
    Exercise,
    GradeCase,
    Graded,
    GradeJob,
    Reached,
)
from bench.extras.fleet.device_lock import DeviceLock
from bench.measure.ladder import simulated
from bench.measure.ladder.counts import LEAST
from bench.measure.ladder.entrants import params_of
from bench.questions import ladder_plan
from bench.questions.ladder_plan import case_of
from bench.results import stats
from bench.results.ladder_records import COUNTS, LadderJob, RungCase, RungMeasurement
from bench.results.messages import CaseStarted, Measured, Progress, Start
from bench.results.records import compared_in
from bench.results.stats import Interval
from engine.isolated import pool
from kernels import registry, tasks
from kernels.errors import KernelError, KernelscopeError, UnsupportedError
from kernels.ops import Params
from kernels.registry import Rung

FIRST = 0.4  # of the seconds of samples that a kernel may have those that it has in any case
AGAIN = (2.0, 8.0)  # times those seconds at most, once more each, while it is not settled what it reaches
# What is said of a kernel that has seen a hidden shape, in place of its own words, by how it ended.
ENDED = {
    "crashed": "its process ended",
    "timed_out": "it did not end in time",
    "out_of_memory": "memory did not suffice",
    "unsupported": "it refuses a problem",
}
UNTOLD = "on a hidden shape or after it; what it says of itself there is not told"
ALONE = "leaves others alone"  # of a kernel that did not, as engine.isolated.client has it
HARMED = f"it changed, stopped or ended what is not its own: a kernel {ALONE}"
CHANGED = "it changed how its own process is run"
UNTIMED = "not judged without a GPU"
TOO_MUCH = (
    "it takes more memory than it may: variables outside of functions, and the local arrays of all threads "
    "that run at once, are added up"
)
FAR_OFF = 3.0  # times a threshold's ratio: no process is slowed down so much for as long as it lives
UNKNOWN = 1.5  # how far off a ratio may be, either way, of which there is one sample alone
APART = 1e4


class Judging:
    """Judges the cases of one student. started: told as a case goes on; progress: what takes long meanwhile;
    folder: where the files lie."""

    def __init__(
        self,
        job: GradeJob,
        folder: Path,
        started: Callable[[GradeCase, str], None],
        stopped: Callable[[], bool],
        lock: DeviceLock | None = None,
        progress: Callable[[Progress], None] = lambda message: None,
    ) -> None:
        self._job, self._folder, self._progress = job, folder, progress
        for exercise in job.exercises:  # the teacher's own: whatever is handed in, it says what is right
            if exercise.text:
                tasks.know(exercise.task, pinned=True)
        self._started, self._stopped, self._lock = started, stopped, lock
        # Whether a kernel of this student has seen a hidden shape: it may have told another, in a file.
        self._seen = False

    def graded(self, case: GradeCase) -> tuple[Graded, BaseException | None]:
        """What came of a case, and whether another process has to go on (a Restart)."""
        began, at = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
        exercise = self._job.exercise(case.exercise)
        restart = None
        try:
            rung = self._rung(exercise)
        except Exception as error:  # whatever its file is
            made = Graded(case=case, disposition="failed", reason=_words(error))
        else:
            found, restart = self._ladder(case, exercise, rung, self._job.budget_s)
            made = self._made(case, exercise, found)
            tried = [made]
            for longer in AGAIN:
                if restart is not None or self._job.simulated or settled(tried):
                    break
                pool.renew()
                found, restart = self._ladder(case, exercise, rung, longer * self._job.budget_s, known=True)
                tried.append(self._made(case, exercise, found))
            made = made if self._job.simulated else decided(tried)
            if made.disposition == "ok" and exercise.counts:
                made = self._with_counts(made, exercise, rung)
        return msgspec.structs.replace(made, seconds=time.monotonic() - began, started_at=at), restart

    def _made(self, case: GradeCase, exercise: Exercise, found: dict[str, RungMeasurement]) -> Graded:
        own = found.get(NAME)
        if self._job.simulated and own is not None and own.disposition == "ok":
            undecided = UNTIMED if exercise.thresholds else ""
            notes = (*own.notes, *own.facts.get(COUNTS, "").splitlines())
            return Graded(case=case, disposition="ok", undecided=undecided, notes=notes)
        made = _graded(case, exercise, found, self._seen)
        if self._job.simulated and made.disposition == "out_of_memory" and not self._seen:
            return msgspec.structs.replace(made, reason=TOO_MUCH)
        return made

    def _with_counts(self, made: Graded, exercise: Exercise, rung: Rung) -> Graded:
        """With what it costs beside the exercise's limits, counted on the CPU on every machine alike."""
        params = params_of(exercise.op, exercise.params)
        try:
            own = simulated.counted(rung, params, self._job.seed)
            found = [_counted(limit, own, self._beside(limit, exercise, params)) for limit in exercise.counts]
        except Exception as error:  # whatever it is, its answers are right
            why = f"its counts are not known: {_words(error)}"
            return msgspec.structs.replace(made, notes=(*made.notes, why))
        return msgspec.structs.replace(made, counts=tuple(found))

    def _beside(self, limit: CountLimit, exercise: Exercise, params: Params) -> dict[str, int]:
        """What the rung costs that a limit names."""
        if limit.of in ("", LEAST):
            return {}
        return simulated.counted(registry.find("cuda", exercise.op, limit.of), params, self._job.seed)

    def _rung(self, exercise: Exercise) -> Rung:
        folder = self._folder / exercise.name
        broken: list[KernelError] = []
        rungs = registry.rungs(self._job.device, exercise.op, [folder], broken)
        for rung in rungs:
            if rung.user and (rung.number, rung.name) == (NUMBER, NAME):
                if rung.precision not in exercise.precisions:
                    allowed = " or ".join(exercise.precisions)
                    raise UnsupportedError(
                        f"it computes in {rung.precision}, and the exercise asks for {allowed}"
                    )
                return rung
        raise broken[0] if broken else KernelError(f"there is no kernel for {exercise.op}")

    def _ladder(
        self, case: GradeCase, exercise: Exercise, rung: Rung, budget_s: float, known: bool = False
    ) -> tuple[dict[str, RungMeasurement], BaseException | None]:
        """What came of the student's kernel and of those that it is timed beside, by their names.
        known: it has passed all shapes, and is measured once more."""
        from bench.measure.outcomes import Restart

        job = self._job
        beside = list(dict.fromkeys(threshold.rung for threshold in exercise.thresholds))
        if not beside and ladder_plan.beside(params_of(exercise.op, exercise.params), job.device):
            beside = [REFERENCE]
        cases = [case_of(rung)]
        for name in () if job.simulated else beside:
            if name == REFERENCE:
                of = compared_in(rung.precision)
                cases.append(RungCase(rung=REFERENCE, scope="reference", precision=of))
            else:
                cases.append(case_of(registry.find(job.device, exercise.op, name)))
        ladder = LadderJob(
            op=exercise.op,
            params=exercise.params,
            device=job.device,
            title=exercise.title,
            kernel_dirs=(str(self._folder / exercise.name),),
            threads=job.threads if job.device == "cpu" else None,
            budget_s=budget_s,
            timeout_s=job.timeout_s,
            quick=exercise.quick,
            seed=job.seed,
            instances=1,
            simulated=job.simulated,
        )
        found: dict[str, RungMeasurement] = {}

        def heard(message: Any) -> None:
            if isinstance(message, CaseStarted):
                self._started(case, "time" if message.stage == "time" else "check")
            elif isinstance(message, Progress):
                self._progress(message)
            elif isinstance(message, Measured):
                found[message.measurement.case.rung] = message.measurement

        def hidden() -> None:
            self._seen = True

        start = Start(job=ladder, cases=tuple(cases))
        about = heard, self._stopped, self._lock, FIRST * job.budget_s, hidden, known
        try:
            ExerciseRunner(start, exercise, *about).measure()
        except Restart as restart:
            return found, restart
        return found, None


def _words(error: Exception) -> str:
    """What is told of an error: the words of one of ours; of another they may be anybody's."""
    return (
        str(error)
        if isinstance(error, KernelscopeError)
        else f"a fault of the judge ({type(error).__name__})"
    )


def _counted(limit: CountLimit, own: dict[str, int], of: dict[str, int]) -> Counted:
    base = own[f"least_{limit.what}"] if limit.of == LEAST else of[limit.what] if limit.of else 1
    most = limit.most * base
    return Counted(what=limit.what, value=own[limit.what], limit=most, reached=own[limit.what] <= most)


def _ends(times: Interval) -> tuple[float, float]:
    return (times.low, times.high) if times.known else (times.value / UNKNOWN, times.value * UNKNOWN)


def settled(tried: Sequence[Graded]) -> bool:
    """Whether these measurements of one kernel say what it reaches: all thresholds, or twice the same, or
    once what lies far below those that it misses. A process on a busy machine may be slow for as long as it
    lives, and another one is not. On an overloaded machine nothing is said of a time. What is told from times
    alone, that it remembers its inputs, has to be found twice as well."""
    last = tried[-1]
    if last.disposition != "ok":
        return not _remembers(last) or any(map(_remembers, tried[:-1]))
    if last.undecided or _doubtful(last):
        return False
    others = [t for t in tried[:-1] if not t.undecided]
    missed = [t for t in last.thresholds if not t.reached]
    far_off = all(t.value and t.high * FAR_OFF <= t.ratio for t in missed)
    return far_off or any(t.band == last.band for t in others)


def decided(tried: Sequence[Graded]) -> Graded:
    """The last where it settled the matter, else the one in the middle of those that say something; where one
    alone does, and misses a threshold, nothing is decided."""
    if settled(tried):
        return tried[-1]
    known = [made for made in tried if not made.undecided]
    if len(known) < min(2, len(tried)):
        return next(made for made in reversed(tried) if made.undecided)
    return sorted(known, key=lambda made: made.band)[len(known) // 2]


def _remembers(made: Graded) -> bool:
    return made.finding is not None and made.finding.fault == "remembers"


def _doubtful(made: Graded) -> bool:
    """Whether more samples may say something else: a threshold within the interval, or times that differ by
    more than kernels for one exercise do, as where a busy machine loses most of a short pass."""
    return any(t.close for t in made.thresholds) or not 1 / APART < made.value < APART


def not_passed(case: GradeCase, own: RungMeasurement, seen: bool) -> Graded:
    """What came of a kernel that did not pass, or is disqualified as it changed settings. seen: it has seen a
    hidden shape. Then it is told in our words alone what came of it, and only which kind of fault was found:
    an error, an exit status or a wrong element may say what it saw."""
    if undone := own.facts.get("undone"):
        return Graded(case=case, disposition="failed", reason=f"disqualified: {CHANGED if seen else undone}")
    reason, finding = own.reason, own.finding
    seen |= finding is not None and finding.when.startswith(HIDDEN)
    if ALONE in reason:
        reason = f"disqualified: {HARMED if seen else reason}"
    elif finding is not None and seen:
        when = HIDDEN if finding.when.startswith(HIDDEN) else "after it was tried on a hidden shape"
        reason = f"its answer is wrong {when} ({finding.fault.replace('_', ' ')})"
    elif seen:
        reason = f"{ENDED.get(own.disposition, 'it failed')} {UNTOLD}"
    if seen and finding is not None:
        finding = msgspec.structs.replace(finding, params="", index=(), expected="", got="", error=None)
        finding = msgspec.structs.replace(finding, reason=reason, wrong=0, elements=0)
    return Graded(case=case, disposition=own.disposition, reason=reason, finding=finding)


def _graded(
    case: GradeCase, exercise: Exercise, found: dict[str, RungMeasurement], seen: bool = False
) -> Graded:
    own = found.get(NAME)
    if own is None:
        return Graded(case=case, disposition="failed", reason="it was not judged")
    if own.disposition != "ok" or own.facts.get("undone"):
        return not_passed(case, own, seen)
    reached, notes = [], list(own.notes)
    timed = [own, *(m for name, m in found.items() if name != NAME)]
    undecided = next(filter(None, (stats.overloaded(one.load) for one in timed)), "")
    for threshold in exercise.thresholds:
        other = found.get(threshold.rung)
        if other is None or not other.samples_ns:
            why = other.reason if other is not None else "it was not timed"
            notes.append(f"nothing can be said of {threshold.words}: {why}")
            nothing = Reached(
                rung=threshold.rung, ratio=threshold.ratio, value=0, low=0, high=0, reached=False
            )
            reached.append(nothing)
            continue
        times = stats.compare(other, own).ratio
        low, high = _ends(times)
        decides = not undecided and threshold.ratio <= CLOSE * times.value
        reached.append(
            Reached(
                rung=threshold.rung, ratio=threshold.ratio, value=times.value, low=low, high=high,
                reached=decides and high >= threshold.ratio,
                close=decides and low <= threshold.ratio <= high,
            )
        )  # fmt: skip
    made = Graded(
        case=case, disposition="ok", thresholds=tuple(reached), undecided=undecided, notes=tuple(notes)
    )
    against = next((m for name, m in found.items() if name != NAME and m.samples_ns), None)
    if own.samples_ns and against is not None:
        times = stats.compare(against, own).ratio
        low, high = _ends(times)
        made = msgspec.structs.replace(made, against=against.case.rung, value=times.value, low=low, high=high)
    if own.samples_ns:
        ordered = sorted(own.samples_ns)
        made = msgspec.structs.replace(made, median_ns=ordered[len(ordered) // 2])
    return made
