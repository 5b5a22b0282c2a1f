"""A whole model with one rung at a node of it, or as one rung of a net, checked as a comparison checks it:
only a ladder of whole models loads what a comparison needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.ladder import net
from bench.ladder.measure.entrants import ENGINES
from bench.ladder.net import Net
from bench.ladder.records import LadderJob, RungCase, RungMeasurement
from bench.measure import possible
from bench.measure.answers.renewed import Renewal
from bench.measure.contender import Contender
from bench.measure.instances import Succession
from bench.measure.loaded_model import LoadedModel
from bench.measure.net_contender import NetContender
from bench.measure.reporter import Reporter
from bench.measure.timing import Timeable
from bench.results.records import Case, Job
from engine import backends, net_rungs
from kernels import jit
from kernels.errors import UnsupportedError
from kernels.ops import Params


class WholeModelContender(Contender):
    """params: what the ladder is climbed on."""

    record = RungMeasurement

    def __init__(self, job: LadderJob, params: Params | Net, case: RungCase, reporter: Reporter) -> None:
        super().__init__(case, job.device, job)
        self._params, self._progress = params, reporter.progress

    def prepare(self) -> None:
        job, case = self._job, self.case
        engine = backends.get(ENGINES[job.device])
        backend = engine.reference if case.is_reference else engine.name
        of_node = not case.is_reference and job.op != net.OP
        rung = None if case.is_reference or of_node else net_rungs.find(job.device, case.rung)
        if rung is not None and rung.compiled and (reason := jit.unavailable()):
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
        if rung is not None:
            self._net.options = net_rungs.options(rung, self._net.options)
        self._net.prepare()
        if rung is not None and (reason := net_rungs.refusal(rung, self._net.facts)):
            raise UnsupportedError(f"cannot be had of this net: {reason}")

    @property
    def timed(self) -> Succession[Timeable] | Sequence[Timeable]:
        return self._net.timed

    def multiply(self) -> None:
        self._net.multiply()

    def check_again(self) -> None:
        self._net.check_again()

    @property
    def work(self) -> possible.Work:
        """What a pass asks of the machine at least."""
        return possible.of_model(self._net.graph, self._job.batch, self.case.precision)

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
