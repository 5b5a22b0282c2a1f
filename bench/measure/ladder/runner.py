"""Runs a ladder in the worker: the rungs and the reference are one group (bench.measure.runner), whole models
another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.measure import environment, limits, possible
from bench.measure import net_operator as net
from bench.measure.ladder import ahead, compiled, entrants, simulated
from bench.measure.net_operator import Net
from bench.measure.reporter import Reporter
from bench.measure.runner import Contender, Runner
from bench.measure.timing import Rules, Timing
from bench.results.ladder_records import LadderJob, RungCase, RungMeasurement
from bench.results.machine_limits import MachineLimits
from bench.results.messages import Hello, Progress
from bench.run.supervisor import COMPILE, RIGHT
from engine.isolated import pool
from engine.machine import host
from kernels.compilers import InParallel
from kernels.cpu import compiled as cpu_code
from kernels.errors import KernelscopeError
from kernels.tasks import TaskParams


def count(contender: Any, timing: Timing, folder: str, reporter: Reporter) -> None:
    """Recorder: what a CUDA rung costs, counted on the CPU where that is asked for, or why it is not
    known."""
    if not (isinstance(contender, entrants.RungContender) and contender.job.counts):
        return
    reporter.progress(f"counting what {contender.case.words} costs, on the CPU", None)
    try:
        contender.recorded["counted"] = simulated.counted(
            contender.rung(), contender.params, contender.job.seed
        )
        if simulated.shape(contender.rung(), contender.params) is not contender.params:
            contender.trial.notes.append("counted on a small shape: this one takes too long on the CPU")
    except Exception as error:  # whatever it is, the times stand
        contender.trial.notes.append(f"not counted: {error}")


COMPILING = "compiling the kernel for this processor; a kernel that did not change is kept from the last time"
PROBED_AGAIN = 2  # times, where a rung seems to be faster than the machine


class LadderRunner(Runner):
    """start: its job is a LadderJob."""

    record = RungMeasurement
    recorders = (count,)
    _job: LadderJob
    _limits: MachineLimits | None = None
    _compiling: InParallel | None = None

    def _groups(self) -> Iterator[Sequence[RungCase]]:
        if self._job.simulated:
            self._say(Hello(environment=environment.collect()))
            yield self._cases
            return
        if self._job.device == "cpu":  # ready when the first rung is
            ours = any(case.scope == "rung" and not case.user for case in self._cases)
            others = any(case.scope != "rung" for case in self._cases)
            kinds = [*["engine" if self._job.op == net.OP else "rung"] * ours, *["ort"] * others, "empty"]
            pool.start_early(*kinds, alive=self._job.instances)
        self._say(Hello(environment=environment.collect()))
        self._params = entrants.job_work(self._job)
        self._probe()
        if isinstance(self._params, TaskParams):  # whose inputs and answers are drawn and compared whole
            host.keep_freed_memory()
        self._compiling = ahead.begin(self._job, self._params, self._cases)
        for scope in (("rung", "reference"), ("model",)):
            yield [case for case in self._cases if case.scope in scope]

    def measure(self) -> None:
        try:
            super().measure()
        finally:
            self._compiled()

    def _compiled(self) -> None:
        """Nothing is compiled from here on."""
        if self._compiling is not None:
            self._compiling.close()
            self._compiling = None

    def _group(self, cases: Sequence[RungCase]) -> list[RungCase]:
        if not self._job.simulated:
            return super()._group(cases)
        for case in cases:
            try:
                self._settle(self._simulated(case))
            except Exception as error:
                self._fail(case, None, error)
        return []

    def _simulated(self, case: RungCase) -> RungMeasurement:
        """A CUDA rung compiled, and judged on the CPU."""
        self._turn(case, "prepare")
        job, params = self._job, entrants.job_params(self._job)
        rung = ahead.rung_of(job, case)
        made = compiled.compiled(rung, params, compiled.meant_for(rung))
        self._turn(case, "check")
        with cpu_code.told(lambda: self._progress(COMPILING, None)):
            return simulated.judged(rung, params, made, job.seed, job.quick)

    def _probe(self, again: bool = False) -> None:
        self._say(Progress(text="measuring what this machine reaches"))
        again = again or not (self._job.quick or self._job.limits_kept)
        found = limits.tell(self._reporter, self._job.device, self._job.threads, again)
        self._limits = found or self._limits

    def _contender(self, case: RungCase) -> Contender:
        if case.scope == "model" or isinstance(self._params, Net):
            return entrants.WholeModelContender(self._job, self._params, case, self._reporter)
        if case.scope == "rung":
            self._await(case)
        of: type[entrants.KernelContender] = entrants.RungContender
        if case.scope == "reference":
            of = entrants.beside(self._params, self._job.device)
        return of(self._job, self._params, case, self._reporter, self._folder)

    def _await(self, case: RungCase) -> None:
        """Until this rung is compiled. Who tries its defines times it at once, and waits for all."""
        try:
            rung = None if self._job.tune else ahead.rung_of(self._job, case)
        except KernelscopeError:
            return  # it says so when it is made ready
        compiling = self._compiling
        if compiling is None or not compiling.compiles(rung):
            return

        def told(done: int, total: int) -> None:
            self._progress("compiled {} of {} rungs".format(*compiling.rungs), done / total)

        self._turn(case, COMPILE)
        compiling.wait(told, rung)
        self._turn(case, "prepare")

    def _found_right(self, case: RungCase) -> None:
        self._turn(case, RIGHT)

    def _before(self, ready: dict[str, Any]) -> Mapping[str, Exception]:
        self._compiled()  # so that it is quiet from here on
        return {}

    def _timing(self, ready: dict[str, Contender]) -> dict[str, Any]:
        references = [key for key, contender in ready.items() if contender.case.is_reference]
        budget_s, cold = self._job.budget_s, self._job.l2 == "cold"
        return {
            "rules": Rules(budget_s=budget_s, min_s=min(0.3, budget_s), cold=cold),
            "judged_by": {key: reference for reference in references[:1] for key in ready},
        }

    def _possible(self, contender: Any, measured: RungMeasurement) -> RungMeasurement:
        work, cold = contender.work, self._job.l2 == "cold"
        # A machine that was busy while it was probed can do more than was seen: asked again before anybody
        # is accused.
        for _ in range(PROBED_AGAIN):
            if possible.share(measured, work, self._limits, cold) <= possible.BEYOND:
                break
            self._probe(again=True)
        return possible.held(measured, work, self._limits, cold)
