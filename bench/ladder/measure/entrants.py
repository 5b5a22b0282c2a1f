"""A ladder's cases made ready to be timed: a rung that was found right, the reference, or a whole model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

from bench import judge
from bench.judge import Trial, comparison, samples
from bench.judge.samples import small_shapes
from bench.ladder import net
from bench.ladder.measure import tuning
from bench.ladder.net import Net, net_of
from bench.ladder.records import REFERENCE, LadderJob, RungCase
from bench.measure import instances
from bench.measure.answers import one_node
from bench.measure.outcomes import Incorrect
from bench.measure.timing import Timeable, answers, first_run
from bench.results.records import Case, ErrorStats, Job
from engine import backends, net_rungs
from engine.backend import Options, Session, in_one_thread, parts_ns, warm_runs
from engine.cuda.runtime import import_cupy
from engine.machine import driver as cuda_driver
from engine.machine import host
from engine.planning import tuned_defines
from kernels import launch, numba_support, nvrtc, registry
from kernels.errors import KernelscopeError, UnavailableError, UnsupportedError
from kernels.ops import OPS, Params
from kernels.registry import Rung

if TYPE_CHECKING:
    from bench.measure.contender import Contender

ENGINES = {"cpu": "engine-cpu", "cuda": "engine-cuda"}

Progress = Callable[[str, float | None], None]


def params_of(op: str, fields: dict[str, Any]) -> Params:
    """The params record of these fields, as JSON has them; a record in it is under its operator's name."""

    def made(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return params_of(name, value)
        return tuple(value) if isinstance(value, list) else value

    return OPS[op](**{name: made(name, value) for name, value in fields.items()})


def work_of(op: str, told: dict[str, Any]) -> Params | Net:
    """What a ladder is climbed on, of fields as JSON has them."""
    return net_of(told) if op == net.OP else params_of(op, told)


class Reference:
    """The params as a model of one node in the reference backend, with its own error against the oracle."""

    def __init__(self, params: Params, device: str, precision: str, threads: int | None, seed: int) -> None:
        backend = backends.get(backends.get(ENGINES[device]).reference)
        if reason := backend.unavailable():
            raise UnavailableError(reason)
        if precision not in backend.precisions:
            offered = ", ".join(backend.precisions)
            raise UnsupportedError(f"{backend.name} does not offer {precision}; it offers {offered}")
        sample = samples.draw(params, np.random.default_rng(seed))
        inputs = sample.whole_inputs
        made = one_node.graph(params, inputs)
        self._precision = precision
        # Given and asked for in float32, which it converts; of its own weights it has those of fp16.
        self.moved = params.nbytes_at(2, 4) if precision == "fp16" else params.nbytes
        self._prepare = partial(
            backend.prepare, made, made.fixed_batch or 1, precision, Options(threads=threads)
        )
        self._inputs = {f"in{i}": inputs[i] for i in params.data_inputs}
        self.session = self._prepare()
        self._answer = self._asked(self.session)
        self.pass_s = first_run(self.session) / 1e9  # the very first one chooses algorithms
        self.error: ErrorStats = comparison.compare(self._answer, sample, precision).stats
        self.checks = 1
        self.notes = [] if self.error.ok else [f"the reference itself is off: {self.error.reason}"]

    @property
    def nbytes(self) -> int:
        """What its session is known to take."""
        return sum(self.session.memory.values())

    def another(self, number: int) -> Session:
        """Its session created again. Raises Incorrect where it does not give what the first gives."""
        made = self._prepare()
        try:
            got, first = ({one_node.OUTPUT: answer} for answer in (self._asked(made), self._answer))
            with instances.named(number):
                if not (found := instances.alike(got, first, self._precision)).ok:
                    raise Incorrect(found, "before timing, beside the first instance")
        except BaseException:
            made.close()
            raise
        return made

    def _asked(self, session: Session) -> np.ndarray:
        return answers(session, self._inputs)[one_node.OUTPUT]

    @property
    def one_thread(self) -> bool:
        return in_one_thread(self.session)

    @property
    def parts_ns(self) -> Sequence[float]:
        return parts_ns(self.session)

    def time_runs(self, count: int, cold: bool = False) -> int:
        return self.session.time_runs(count, cold)

    def warm_runs(self, count: int) -> int:
        """See engine.backend.Warmed."""
        return warm_runs(self.session, count)

    def close(self) -> None:
        self.session.close()


More = Callable[[], tuple[Sequence[Timeable], str]]


@dataclass
class Entrant:
    """A case ready to be timed. more: prepares further instances of what is timed, checked, which `close`
    closes too; with a sentence where memory did not suffice for all. model: what runs a whole model."""

    case: RungCase
    timed: Timeable
    close: Callable[[], None]
    started_at: str
    more: More
    check_again: Callable[[], None] = lambda: None  # after timing, of a whole model; raises Incorrect
    others: Sequence[Timeable] = ()
    short: str = ""
    model: Contender | None = None

    @property
    def all(self) -> tuple[Timeable, ...]:
        """Every instance."""
        return (self.timed, *self.others)

    def multiply(self) -> None:
        """Prepare the further instances. Raises as preparing the first does."""
        self.others, self.short = self.more()


def entrant(
    job: LadderJob,
    params: Params | Net,
    case: RungCase,
    started_at: str,
    checking: Callable[[], None],
    progress: Progress,
) -> Entrant:
    """A case of a ladder on `params`, prepared; `checking` is called before a rung is judged. Raises
    judge.Wrong for a rung that is, UnsupportedError for one that refuses, and whatever preparing raises."""
    if case.scope == "model" or isinstance(params, Net):
        contender = _contender(job, case, progress)
        assert contender.session is not None
        return Entrant(
            case,
            contender.mixings.of(contender.session),
            contender.close,
            started_at,
            contender.prepare_others,
            contender.check_again,
            model=contender,
        )
    if case.scope == "reference":
        reference = Reference(params, job.device, case.precision, job.threads, job.seed)
        return _several(job, case, reference, started_at, reference.nbytes, reference.another)
    dirs = [Path(folder) for folder in job.kernel_dirs]
    # Another file of the user's that is no rung is no fault of this one.
    rung = registry.find(job.device, job.op, case.rung, dirs, broken=[])
    if refused := rung.refusal(params, capability(job.device)):
        raise UnsupportedError(refused.removeprefix(f"{rung.label} "))
    if job.tune:
        tuning.tune(rung, params, job, case.precision, progress)
    rung = tuned_defines.tuned(rung, params) if job.device == "cuda" else rung
    checking()
    trial = judge.examine(rung, params, case.precision, seed=job.seed, threads=job.threads, quick=job.quick)

    def another(number: int) -> Trial:
        made = trial.another()
        try:
            # Its inputs are those whose answer is known, and lie elsewhere.
            if failure := made.check("before timing", trial.sample):
                raise wrong(failure, number)
        except BaseException:
            made.close()
            raise
        return made

    return _several(job, case, trial, started_at, params.nbytes, another)


def wrong(failure: judge.Failure, number: int) -> judge.Wrong:
    """What was found of instance `number`; of the first as if it was alone."""
    finding = failure.finding
    if number:
        finding = msgspec.structs.replace(finding, when=f"{finding.when}, in instance {number + 1}")
    return judge.Wrong(finding, failure.error_map, failure)


class _Open(Timeable, instances.Closable, Protocol): ...


class _First(_Open, Protocol):
    """pass_s: seconds that a pass took it."""

    pass_s: float


def _several(
    job: LadderJob,
    case: RungCase,
    first: _First,
    started_at: str,
    nbytes: int,
    another: Callable[[int], _Open],
) -> Entrant:
    """An entrant whose instances are made by `another`."""
    stack = contextlib.ExitStack()
    stack.callback(first.close)

    def more() -> tuple[Sequence[Timeable], str]:
        room = job.budget_s / first.pass_s
        others, short = instances.further(job.instances, nbytes, job.device, room, another)
        for other in others:
            stack.callback(other.close)
        return others, instances.fewer(len(others) + 1, job.instances, short)

    return Entrant(case, first, stack.close, started_at, more)


def compile_ahead(
    job: LadderJob, params: Params | Net, cases: Sequence[RungCase], progress: Progress
) -> None:
    """The CUDA rungs of these cases, for every shape that they are tried on, compiled side by side before the
    first of them runs. What does not compile is told of its rung, when its turn comes."""
    gpu = cuda_driver.device() if job.device == "cuda" else None
    if gpu is None or isinstance(params, Net):
        return
    have = gpu.capability
    dirs = [Path(folder) for folder in job.kernel_dirs]
    wanted = []
    for case in cases:
        if case.scope != "rung":
            continue
        with contextlib.suppress(KernelscopeError):
            rung = registry.find(job.device, job.op, case.rung, dirs, broken=[])
            rung = tuned_defines.tuned(rung, params)
            shapes = [shape.params for shape in small_shapes(rung, params, job.quick)]
            wanted += [
                (rung, launch.launch(p, rung).defines) for p in (*shapes, params) if _fits(rung, p, have)
            ]

    def told(done: int, total: int) -> None:
        progress(f"compiling {job.op}'s kernels: {done} of {total}", done / total)

    nvrtc.compile_ahead(wanted, f"sm_{have[0]}{have[1]}", host.physical_cores(), told)


def _fits(rung: Rung, params: Params, have: tuple[int, int]) -> bool:
    return rung.refusal(params, have) is None and launch.refusal(params, rung) is None


def _contender(job: LadderJob, case: RungCase, progress: Progress) -> Contender:
    """The whole model with this rung at the node, or as this rung of a net, checked as a comparison checks
    it."""
    from bench.measure.contender import (
        Contender,  # with all that a comparison needs: a ladder mostly does without
    )
    from bench.measure.loaded_model import LoadedModel

    engine = backends.get(ENGINES[job.device])
    backend = engine.reference if case.rung == REFERENCE else engine.name
    of_node = case.rung != REFERENCE and job.op != net.OP
    rung = None if case.rung == REFERENCE or of_node else net_rungs.find(job.device, case.rung)
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
    loaded = LoadedModel(job.model, asked, (job.batch,), progress)
    whole = Case(model=job.model, backend=backend, precision=case.precision, batch=job.batch)
    contender = Contender(whole, loaded, asked)
    if rung is not None:
        contender.options = net_rungs.options(rung, contender.options)
    try:
        contender.prepare()
        assert contender.session is not None
        if rung is not None and (reason := net_rungs.refusal(rung, contender.session.facts)):
            raise UnsupportedError(f"cannot be had of this net: {reason}")
    except BaseException:
        contender.close()
        raise
    return contender


def capability(device: str) -> tuple[int, int] | None:
    """Compute capability of the device in use; None for a CPU."""
    if device != "cuda":
        return None
    digits = str(import_cupy().cuda.Device().compute_capability)
    return int(digits[:-1]), int(digits[-1])
