"""A ladder whose first case is a student's kernel: where that is wrong nothing is timed, and nothing else is
made ready. It is timed beside the rungs that the exercise's thresholds name, until it is clear which of
them it reaches.

On the CPU checks share the processor with those of other submissions, and what is timed has it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.extras.course.records import Exercise
from bench.extras.fleet.device_lock import DeviceLock
from bench.judge import Wrong
from bench.measure import limits
from bench.measure.ladder import ahead, entrants, simulated
from bench.measure.ladder.entrants import RungContender
from bench.measure.ladder.runner import LadderRunner
from bench.measure.reporter import Reporter
from bench.measure.runner import Contender
from bench.measure.timing import Timing
from bench.results import stats
from bench.results.ladder_records import LadderJob, RungCase, RungMeasurement
from bench.results.messages import CaseStarted, Message, Start
from kernels import registry
from kernels.errors import KernelscopeError, UnsupportedError
from kernels.ops import Params
from kernels.registry import Rung

HIDDEN = "on a hidden shape"
RANKED = 0.05  # how well a ratio is known, either way, by which kernels that reach all are ranked


class _Unneeded(KernelscopeError):
    """What the student's kernel would have been timed beside."""


class _OnItsShape(RungContender):
    """A rung that was tried on all other shapes before, when it joined the ladder or just now."""

    def prepare(self) -> None:
        self._judged(self.trial_of(self.params))
        if failure := self.trial.check("before timing"):
            raise entrants.wrong(failure, 0)


class _BesideIt(_OnItsShape):
    """A rung of ours, which nobody wrote to deceive us: looked at before it is timed and afterwards. It is
    ours whatever a student called a file of theirs."""

    suspect = False

    def rung(self) -> Rung:
        return registry.find(self.device, self.job.op, self.case.rung)

    def check_between(self, turn: int) -> None:
        """Not between two turns."""


class _Submission(RungContender):
    """A student's kernel, judged on the shapes that students are told of, and on hidden ones."""

    def __init__(
        self,
        job: LadderJob,
        params: Params,
        case: RungCase,
        reporter: Reporter,
        exercise: Exercise,
        give_way: Callable[[], None],
        hidden: Callable[[], None],
    ) -> None:
        super().__init__(job, params, case, reporter, "")
        self._exercise, self._give_way, self._hidden = exercise, give_way, hidden

    def prepare(self) -> None:
        super().prepare()
        rung, job = self.rung(), self.job
        for fields in self._exercise.hidden:
            self._give_way()
            self._hidden()
            params = entrants.params_of(job.op, fields)
            if refused := rung.refusal(params, entrants.capability(job.device)):
                raise UnsupportedError(f"{HIDDEN} it {refused.removeprefix(f'{rung.label} ')}")
            with self.trial_of(params) as trial:
                for _ in range(2):
                    if failure := trial.check(HIDDEN, trial.fresh()):
                        raise Wrong(failure.finding, failure.error_map, failure)


class ExerciseRunner(LadderRunner):
    """first_s: seconds of samples of each that are taken before it is asked whether they suffice. hidden:
    called before the kernel is tried on a hidden shape. known: the kernel has passed all shapes before; it is
    checked on the one that it is timed on."""

    def __init__(
        self,
        start: Start[LadderJob, RungCase],
        exercise: Exercise,
        say: Callable[[Message], None],
        stopped: Callable[[], bool],
        lock: DeviceLock | None,
        first_s: float,
        hidden: Callable[[], None],
        known: bool = False,
    ) -> None:
        super().__init__(start, say, stopped)
        self._exercise, self._lock, self._first_s, self._known = exercise, lock, first_s, known
        self._hidden = hidden
        self._own = start.cases[0]

    def _groups(self) -> Iterator[Sequence[RungCase]]:
        job = self._job
        if job.simulated:
            yield self._cases
            return
        self._params = entrants.params_of(job.op, job.params)
        self._limits = limits.tell(self._reporter, job.device, job.threads, again=False)
        with ahead.begin(job, self._params, self._cases) as compiling:

            def told(done: int, total: int) -> None:
                self._progress(f"compiling {job.op}'s kernels: {done} of {total}", done / total)

            compiling.wait(told)
        yield self._cases

    def _group(self, cases: Sequence[RungCase]) -> list[RungCase]:
        with self._alone("cuda"):  # what checks a kernel keeps a GPU busy, too
            return super()._group(cases)

    def _simulated(self, case: RungCase) -> RungMeasurement:
        made = super()._simulated(case)
        job, dirs = self._job, [Path(folder) for folder in self._job.kernel_dirs]
        rung = registry.find(job.device, job.op, case.rung, dirs, broken=[])
        for fields in self._exercise.hidden if made.disposition == "ok" else ():
            self._give_way()
            self._hidden()
            made = simulated.tried_on(rung, entrants.params_of(job.op, fields), made, HIDDEN, job.seed)
            if made.disposition != "ok":
                break
        return made

    def _alone(self, device: str) -> AbstractContextManager[None]:
        """The device held, where it is of this kind, and is used."""
        used = self._job.device == device and not self._job.simulated
        return self._lock.alone() if self._lock is not None and used else nullcontext()

    def _give_way(self) -> None:
        """To whoever waits to time what passed its checks: those that are left here are made afterwards."""
        if self._lock is not None and self._lock.give_way():
            self._say(CaseStarted(case=self._own, stage="check"))  # from here on its time counts again

    def _contender(self, case: RungCase) -> Contender:
        if self._own.key in self._settled:
            raise _Unneeded("the kernel that it is there for is not timed")
        self._give_way()
        params = entrants.params_of(self._job.op, self._job.params)
        if case.scope != "rung":
            return super()._contender(case)
        if case != self._own:
            return _BesideIt(self._job, params, case, self._reporter, "")
        if self._known:
            return _OnItsShape(self._job, params, case, self._reporter, "")
        return _Submission(
            self._job, params, case, self._reporter, self._exercise, self._give_way, self._hidden
        )

    def _time(self, ready: dict[str, Contender]) -> None:
        if self._own.key not in ready:
            return
        with self._alone("cpu"):
            super()._time(ready)

    def _timing(self, ready: dict[str, Contender]) -> dict[str, Any]:
        """A warm-up takes no longer than the samples that follow it."""
        usual = super()._timing(ready)
        rules = usual["rules"]
        first = min(rules.min_s, self._first_s)
        rules = replace(
            rules,
            warmup_s=min(rules.warmup_s, first),
            rewarm_s=min(rules.rewarm_s, first / rules.rounds),
            min_s=first,
        )
        return usual | {"rules": rules, "enough": self._enough}

    def _enough(self, timings: Mapping[str, Timing]) -> bool:
        """Whether each threshold is clearly reached or clearly missed, and what reaches all is known well
        enough to be ranked; or there is nothing to be told of any more."""
        own = timings[self._own.key]
        if own.error is not None:
            return True
        others = {case.rung: timings[case.key] for case in self._cases[1:] if case.key in timings}
        beside = {name: other for name, other in others.items() if other.error is None}
        asked = [(beside[t.rung], t.ratio) for t in self._exercise.thresholds if t.rung in beside]
        if not all(stats.clear_of(other, own, ratio) for other, ratio in asked):
            return False
        known = [stats.compare(other, own)[0] for other in beside.values()]
        missed = any(stats.compare(other, own)[0].value < ratio for other, ratio in asked)
        return missed or (bool(known) and known[0].relative <= RANKED)
