"""A ladder's cases made ready to be timed: a rung that was found right, the reference, or a whole model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bench import judge
from bench.judge import Trial, Wrong
from bench.measure import instances, possible
from bench.measure import net_operator as net
from bench.measure.answers import comparison, one_node, samples
from bench.measure.answers.renewed import Renewal
from bench.measure.ladder import ahead, tuning
from bench.measure.net_operator import Net, net_of
from bench.measure.outcomes import Incorrect
from bench.measure.reporter import Reporter
from bench.measure.runner import Contender
from bench.measure.timing import Instances, answers, first_run
from bench.results.ladder_records import OF_FUNCTION, LadderJob, RungCase, RungMeasurement
from bench.results.records import Case, Job
from engine import backends, net_rungs
from engine.backend import Backend, Options, Session
from engine.cuda.runtime import import_cupy
from engine.planning import tuned_defines
from engine.rung_session import RungSession
from kernels import numba_support
from kernels import precision as precisions
from kernels.cache import atomic_file
from kernels.errors import InputError, UnavailableError, UnsupportedError
from kernels.ops import Params
from kernels.registry import Rung
from kernels.tasks import TaskParams, is_known, learn, record_of, reference

MAPS = "errors"  # folder of error maps in the ladder's
ENGINES = {"cpu": "engine-cpu", "cuda": "engine-cuda"}

Progress = Callable[[str, float | None], None]


def params_of(op: str, fields: dict[str, Any]) -> Params:
    """The params record of these fields, as JSON has them; a record in it is under its operator's name."""

    def made(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return params_of(name, value)
        return tuple(value) if isinstance(value, list) else value

    return record_of(op)(**{name: made(name, value) for name, value in fields.items()})


def work_of(op: str, told: dict[str, Any]) -> Params | Net:
    """What a ladder is climbed on, of fields as JSON has them."""
    return net_of(told) if op == net.OP else params_of(op, told)


def job_work(job: LadderJob) -> Params | Net:
    """What a ladder's job is climbed on; a task of the user's is learnt from its folders of kernels."""
    _learn(job)
    return work_of(job.op, job.params)


def job_params(job: LadderJob) -> Params:
    """The same of one operator or task."""
    _learn(job)
    return params_of(job.op, job.params)


def _learn(job: LadderJob) -> None:
    """Another folder of the user's that is no task is no fault of this one. Raises InputError."""
    broken: list[InputError] = []
    learn(job.kernel_dirs, broken)
    if broken and job.op != net.OP and not is_known(job.op):
        raise broken[0]


class KernelContender(Contender):
    """One operator on `params`, in instances that are all open while they are timed. folder: of the ladder,
    where error maps go; reporter: hears what is done."""

    record = RungMeasurement
    method = ""  # by which multiplications are counted, where that is known
    _pass_s: float  # seconds that a pass of the first instance takes
    _nbytes: int  # what an instance is known to take

    def __init__(
        self, job: LadderJob, params: Params, case: RungCase, reporter: Reporter, folder: str
    ) -> None:
        super().__init__(case, job.device, job)
        self.params, self._reporter, self._folder = params, reporter, folder

    def multiply(self) -> None:
        count, room = self.job.instances, self.job.budget_s / self._pass_s
        self.others, short = instances.create_more(count, self._nbytes, self.device, room, self._another)
        self.warnings += filter(None, [instances.fewer(len(self.opened), count, short)])

    @property
    def work(self) -> possible.Work:
        """What a pass asks of the machine at least."""
        return possible.of_params(self.params, self.case.precision, self.method)

    def _another(self, number: int) -> Any:
        """Instance `number`, checked. Raises what is wrong with it."""
        raise NotImplementedError


class RungContender(KernelContender):
    """A rung, judged before it is timed, between its turns and afterwards."""

    first: Trial
    suspect = True  # whether there are passes over inputs that are all new, and they are looked at, too

    def prepare(self) -> None:
        """Raises judge.Wrong for a rung that is, UnsupportedError for one that refuses."""
        job, rung = self.job, self.rung()
        if refused := rung.refusal(self.params, capability(job.device)):
            raise UnsupportedError(refused.removeprefix(f"{rung.label} "))
        if job.tune:
            tuning.tune(rung, self.params, job, self.case.precision, self._reporter.progress)
        rung = tuned_defines.tuned(rung, self.params) if job.device == "cuda" else rung
        self._reporter.turn(self.case, "check")
        self._judged(
            judge.examine(
                rung, self.params, self.case.precision, seed=job.seed, threads=job.threads, quick=job.quick
            )
        )

    def _judged(self, trial: Trial) -> None:
        """Take a trial that was right, and is open."""
        self.first = self.trial = trial
        self.method, self._pass_s, self._nbytes = trial.rung.method, trial.pass_s, self.params.nbytes

    def rung(self) -> Rung:
        """The kernel."""
        return ahead.rung_of(self.job, self.case)

    def trial_of(self, params: Params) -> Trial:
        """The rung on these params, not judged yet."""
        job, precision = self.job, self.case.precision
        return Trial(self.rung(), params, precision, seed=job.seed, threads=job.threads, suspect=self.suspect)

    @property
    def session(self) -> RungSession | None:
        return self.first.session if self.first is not None else None

    def check_between(self, turn: int) -> None:
        if turn:  # it remembers a failure, and is timed no further
            self.opened[(turn - 1) % len(self.opened)].check_between()

    def check_again(self) -> None:
        """The last timed passes of each instance must have been right, and so must one over other inputs."""
        sample = None
        for number, trial in enumerate(self.opened):
            if trial.broken is not None:
                raise trial.broken
            failure = (
                trial.failure
                or trial.spot_check("during timing", thorough=True)
                or trial.check("after timing", sample)
                or (trial.check_new("after timing") if number == 0 and self.suspect else None)
            )
            if failure is not None:
                raise wrong(failure, number)
            sample = trial.sample  # the others' too: its answer is known now, and they never saw it

    def failed(self, error: BaseException) -> RungMeasurement:
        """With the finding, where the rung is wrong, and its error map in the ladder's folder."""
        if not isinstance(error, Wrong):
            return super().failed(error)
        finding = error.finding
        if self._folder and error.error_map is not None:
            name = f"{MAPS}/{self.case.key}.npz"
            try:
                with atomic_file(Path(self._folder) / name) as path, path.open("wb") as stream:
                    np.savez_compressed(stream, **error.pictures())  # type: ignore[arg-type]  # by name
                finding = msgspec.structs.replace(finding, map=name)
            except OSError as problem:
                self._reporter.warn(f"the error map of {self.case.words} could not be kept: {problem}")
        reason = f"{finding.reason} ({finding.when}, on {finding.params})"
        return self._made("incorrect", reason=reason, finding=finding, error=finding.error)

    def _another(self, number: int) -> Trial:
        made = self.first.another()
        try:
            # Its inputs are those whose answer is known, and lie elsewhere.
            if failure := made.check("before timing", self.first.sample):
                raise wrong(failure, number)
        except BaseException:
            made.close()
            raise
        return made

    @property
    def _renewal(self) -> Renewal | None:
        return self.trial.renewal if self.trial.renewal.told else None

    def _own(self) -> dict[str, Any]:
        trial, facts = self.trial, self.facts
        if self.device == "cuda" and (words := tuned_defines.words(trial.rung, self.params)):
            facts["tuned"] = words  # it runs with defines that were searched
        return {
            "error": trial.error,
            "checks": trial.checks,
            "notes": tuple(trial.notes),
            "facts": facts,
            "compiled": dict(trial.session.compiled),
            "nbytes": trial.session.moved,
        }

    def _doubts(self) -> list[str]:
        return self.trial.warnings


class ReferenceContender(KernelContender):
    """The params as a model of one node in the reference backend, with its own error against the oracle."""

    def prepare(self) -> None:
        self._check()
        params, precision = self.params, self.case.precision
        sample = samples.draw(params, np.random.default_rng(self.job.seed))
        inputs = sample.whole_inputs
        self._open = self._opener(inputs)
        self._inputs = {f"in{i}": inputs[i] for i in params.data_inputs}
        self.first = self._open()
        self._backend = self.first.backend
        self._answer = self._asked(self.first)
        self._pass_s = first_run(self.first) / 1e9  # the very first one chooses algorithms
        self._nbytes = sum(self.first.memory.values())
        self._error = comparison.compare(self._answer, sample, precision).stats

    def _check(self) -> None:
        """Raises UnavailableError, UnsupportedError where it cannot run, before anything is drawn."""
        backend, precision = self._library(), self.case.precision
        if reason := backend.unavailable():
            raise UnavailableError(reason)
        if precision not in backend.precisions:
            offered = ", ".join(backend.precisions)
            raise UnsupportedError(f"{backend.name} does not offer {precision}; it offers {offered}")

    def _opener(self, inputs: Sequence[np.ndarray]) -> Callable[[], Session]:
        """What opens a session over these inputs, weights among them."""
        graph = one_node.graph(self.params, inputs)
        options = Options(threads=self.job.threads)
        return partial(self._library().prepare, graph, graph.fixed_batch or 1, self.case.precision, options)

    def _library(self) -> Backend:
        return backends.get(backends.get(ENGINES[self.device]).reference)

    def _asked(self, session: Session) -> np.ndarray:
        return answers(session, self._inputs)[one_node.OUTPUT]

    def _another(self, number: int) -> Session:
        """Its session created again. Raises Incorrect where it does not give what the first gives."""
        made = self._open()
        try:
            got, first = ({one_node.OUTPUT: answer} for answer in (self._asked(made), self._answer))
            with instances.named(number):
                if not (found := instances.error_against_first(got, first, self.case.precision)).ok:
                    raise Incorrect(found, "before timing, beside the first instance")
        except BaseException:
            made.close()
            raise
        return made

    def _own(self) -> dict[str, Any]:
        error, params = self._error, self.params
        # Given and asked for in float32, which it converts; of its own weights it has those of fp16.
        moved = params.nbytes_at(2, 4) if precisions.narrow(self.case.precision) else params.nbytes
        notes = () if error.ok else (f"the reference itself is off: {error.reason}",)
        facts = self.facts | {"backend": self._backend}
        return {"error": error, "checks": 1, "notes": notes, "facts": facts, "nbytes": moved}


class LibraryContender(ReferenceContender):
    """A library's function for the GPU, which a task of ours names as its yardstick; as a model of it is."""

    def _check(self) -> None:
        """It is opened or it is not."""

    def _opener(self, inputs: Sequence[np.ndarray]) -> Callable[[], Session]:
        from engine.function_session import FunctionSession

        assert isinstance(self.params, TaskParams)
        return partial(FunctionSession, self.params, inputs, one_node.OUTPUT)


class _Function:
    """The reference of a task that is a function, as a session: each pass is one answer in float64."""

    def __init__(self, params: TaskParams, inputs: Sequence[np.ndarray], threads: int | None) -> None:
        self._params, self._given = params, reference.given(params, inputs)
        self._threads = threads or 0
        self.facts: Mapping[str, str] = {"backend": OF_FUNCTION.format(reference.library(params.task))}

    def time_runs(self, count: int, cold: bool = False) -> int:
        """ns of `count` answers; it is no kernel, and what lies in the caches is left to it."""
        return reference.time_ns(self._params, self._given, count, self._threads)

    def close(self) -> None:
        """Its process is the reference's own."""


class FunctionContender(KernelContender):
    """The reference of a task that is a function: what is right, so nothing of it is checked."""

    def prepare(self) -> None:
        assert isinstance(self.params, TaskParams)
        sample = samples.draw(self.params, np.random.default_rng(self.job.seed))
        self.first = _Function(self.params, sample.whole_inputs, self.job.threads)
        a_pass_s = self.first.time_runs(1) / 1e9
        if a_pass_s > self.job.budget_s:  # nobody waits for it again and again
            raise UnsupportedError(
                f"an answer of it takes {a_pass_s:.2g} s, and the budget is {self.job.budget_s:g} s of "
                "samples; a larger one gives it time"
            )

    def multiply(self) -> None:
        """One is enough: it has no addresses or algorithms of its own."""

    def _own(self) -> dict[str, Any]:
        return {"facts": self.facts, "nbytes": self.params.nbytes}


def beside(params: Params, device: str) -> type[KernelContender]:
    """What kernels are timed beside; whether there is something, bench.questions.ladder_plan says."""
    if one_node.is_graph(params):
        return ReferenceContender
    return FunctionContender if device == "cpu" else LibraryContender


class WholeModelContender(Contender):
    """A whole model with one rung at a node of it, or as one rung of a net, checked as in a comparison.
    params: what the ladder is climbed on."""

    record = RungMeasurement

    def __init__(self, job: LadderJob, params: Params | Net, case: RungCase, reporter: Reporter) -> None:
        super().__init__(case, job.device, job)
        self._params, self._progress = params, reporter.progress

    def prepare(self) -> None:
        # With all that a comparison needs: a ladder mostly does without.
        from bench.measure.loaded_model import LoadedModel
        from bench.measure.net_contender import NetContender

        job, case = self.job, self.case
        engine = backends.get(ENGINES[job.device])
        backend = engine.reference if case.is_reference else engine.name
        of_node = not case.is_reference and job.op != net.OP
        rung = None if case.is_reference or of_node else net_rungs.find(job.device, case.rung)
        if rung is not None and rung.compiled and (reason := numba_support.unavailable()):
            raise UnsupportedError(f"is compiled by Numba: {reason}")
        asked = Job(
            models=(job.model,),
            backends=(backend,),
            precisions=(case.precision,),
            batches=(job.batch,),
            dataset="random",
            threads=job.threads,
            layers=False,
            rungs={job.node: case.rung} if of_node else {},
            kernel_dirs=job.kernel_dirs,
            seed=job.seed,
            budget_s=job.budget_s,
            instances=job.instances,
        )
        loaded = LoadedModel(job.model, asked, (job.batch,), self._progress)
        whole = Case(model=job.model, backend=backend, precision=case.precision, batch=job.batch)
        self._net = self.first = NetContender(whole, loaded, asked)
        self.warnings = self._net.warnings
        if rung is not None:
            self._net.options = net_rungs.options(rung, self._net.options)
        self._net.prepare()
        if rung is not None and (reason := net_rungs.refusal(rung, self._net.facts)):
            raise UnsupportedError(f"cannot be had of this net: {reason}")

    @property
    def timed(self) -> Instances:
        return self._net.timed

    def multiply(self) -> None:
        self._net.multiply()

    def check_again(self) -> None:
        self._net.check_again()

    @property
    def work(self) -> possible.Work:
        """What a pass asks of the machine at least."""
        return possible.of_model(self._net.graph, self.job.batch, self.case.precision)

    @property
    def _renewal(self) -> Renewal | None:
        return self._net.mixings.told

    def _own(self) -> dict[str, Any]:
        renewal = self._renewal
        # How a whole net lies in other precisions is not told, step by step.
        known = isinstance(self._params, Net) and self.case.precision == "fp32"
        return {
            "error": self._net.output,
            "checks": self._net.checked,
            "facts": self.facts,
            "nbytes": self._params.nbytes if known else 0,
            "notes": (renewal.told,) if renewal is not None else (),
        }


def wrong(failure: judge.Failure, number: int) -> judge.Wrong:
    """What was found of instance `number`; of the first as if it was alone."""
    finding = failure.finding
    if number:
        finding = msgspec.structs.replace(finding, when=f"{finding.when}, in instance {number + 1}")
    return judge.Wrong(finding, failure.error_map, failure)


def capability(device: str) -> tuple[int, int] | None:
    """Compute capability of the device in use; None for a CPU."""
    if device != "cuda":
        return None
    digits = str(import_cupy().cuda.Device().compute_capability)
    return int(digits[:-1]), int(digits[-1])
