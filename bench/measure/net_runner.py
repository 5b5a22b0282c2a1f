"""A comparison of whole nets: model by model, what is not known yet of a case is tuned, and cases that differ
only in the backend are a group (bench.measure.runner)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx

from bench.measure import cases, environment, instances, limits, possible
from bench.measure.answers import oracle
from bench.measure.end_to_end import Flows
from bench.measure.loaded_model import LoadedModel
from bench.measure.net_contender import NetContender, references_among
from bench.measure.net_recorders import RECORDERS
from bench.measure.outcomes import Incorrect, Restart
from bench.measure.runner import Contender, Runner
from bench.measure.timing import Rules
from bench.measure.tuned import configurations, next_model, tuning
from bench.measure.tuned.sweep import DeviceLost
from bench.questions import model_questions
from bench.results.machine_limits import MachineLimits
from bench.results.messages import CaseStarted, Hello, LimitsMeasured, Message, ModelLoaded, Start
from bench.results.records import Case, Job, Measurement
from bench.run.supervisor import LOAD
from engine import backends
from engine.backend import Options, by_default
from engine.cpu import precompile
from engine.graph import importer
from engine.isolated import pool
from engine.machine import host
from kernels.errors import KernelscopeError


def warm_up() -> None:
    """Load what a first case would wait for (the oracle's operators, ONNX Runtime, our CPU kernels' library)
    by one node's rehearsal. Nothing is left running, and no device but the CPU is touched."""
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    ends = [helper.make_tensor_value_info(name, float32, ["N", 4]) for name in ("x", "y")]
    node = helper.make_node("Relu", ["x"], ["y"], name="relu")
    opset = helper.make_opsetid("", 17)
    proto = helper.make_model(
        helper.make_graph([node], "rehearsal", ends[:1], ends[1:]), opset_imports=[opset], ir_version=8
    )
    try:
        graph = importer.from_proto(proto, "rehearsal")
        oracle.run(graph, {"x": np.ones((1, 4), np.float32)}, ["y"])
        for backend in backends.all_backends().values():
            if backend.device == "cpu" and by_default(backend) and backend.unavailable() is None:
                backend.prepare(graph, 1, "fp32", Options(threads=1)).close()
    except KernelscopeError:
        return  # what is wrong is the first job's to tell, in its own words


def rules(job: Job) -> Rules:
    """How long a case of this job is sampled: warming up takes a part of a short budget, not a multiple, and
    what is clear after a third of it is clear."""
    plain = Rules()
    return Rules(
        budget_s=job.budget_s,
        min_s=min(plain.min_s, job.budget_s / 3),
        warmup_s=min(plain.warmup_s, job.budget_s / 4),
        rewarm_s=min(plain.rewarm_s, job.budget_s / 20),
        cold=job.l2 == "cold",
    )


class NetRunner(Runner):
    """start: with no cases, those that the job means."""

    record, recorders = Measurement, RECORDERS
    _job: Job

    def __init__(
        self, start: Start[Job, Case], say: Callable[[Message], None], stopped: Callable[[], bool]
    ) -> None:
        super().__init__(start, say, stopped)
        self._same: dict[str, tuple[Case, ...]] = {}  # of the group: see configurations.found
        self._known: dict[str, MachineLimits | None] = {}
        self._loaded: LoadedModel | None = None
        self._next = next_model.NextModel(self._job, self._go_on)

    def _groups(self) -> Iterator[Sequence[Case]]:
        planned = self._cases or model_questions.cases(self._job, self._progress, self._go_on)
        self._cases = planned
        # Processes that kernels will run in, started while the first model is loaded; what is not installed
        # has none, and says so where its cases are prepared.
        compared = [backends.get(name) for name in dict.fromkeys(case.backend for case in planned)]
        kinds = {each.apart for each in compared if each.unavailable() is None} - {""}
        pool.start_early(*kinds, *(["empty"] if kinds else []), alive=self._instances_at_once())
        if "engine" in kinds:
            precompile.start()  # what its process would compile when the first case is prepared
        self._say(Hello(environment=environment.collect(), cases=planned))
        by_model = itertools.groupby(cases.groups(planned), key=lambda group: group[0].model)
        models = [list(members) for _, members in by_model]
        for at, members in enumerate(models):
            if self._load(members, next(iter(models[at + 1 :]), ())):
                yield from members

    def _instances_at_once(self) -> int:
        """How many there may be of a contender before any of them is timed, where cores are left to get ready
        for those that are not sure to come: starting a process takes longer than all else of an instance."""
        asked = self._job.instances
        spare = host.physical_cores() >= host.SPARE_CORES
        return max(asked, instances.MOST) if asked > 1 and spare else asked

    def _load(self, members: Sequence[cases.Group], following: Sequence[cases.Group]) -> bool:
        """Load the model of these groups; False where that was the end of all its cases. following: the
        groups of the next model."""
        self._go_on()
        self._loaded = None  # the last model's goes before the next one's comes
        self._next.wait()
        model = members[0][0].model
        if model_questions.received([model]):
            # What the file does to this process is told of all its cases.
            self._say(CaseStarted(case=members[0][0], stage=LOAD))
        try:
            self._loaded = next_model.load(members, self._job, self._progress)
        except Exception as error:  # every case of the model shares the reason
            for case in itertools.chain.from_iterable(members):
                self._fail(case, None, error)
            return False
        self._loaded.beside = partial(self._next.begin, following)
        self._say(ModelLoaded(model=self._loaded.info()))
        for note in self._loaded.notes:
            self._reporter.warn(f"{model}: {note}")
        return True

    def _group(self, cases: Sequence[Case]) -> list[Case]:
        """As Runner's; also measured after it are cases that another was to speak for, which came to nothing
        once it was timed."""
        assert self._loaded is not None
        group = [case for case in cases if self._tuned(case)]
        self._same = configurations.found(
            group, self._loaded.graph, partial(tuning.options, loaded=self._loaded, job=self._job)
        )
        spoken_for = {case.key for others in self._same.values() for case in others}
        later = super()._group([case for case in group if case.key not in spoken_for])
        return [*later, *itertools.chain.from_iterable(self._same.values())]

    def _tuned(self, case: Case) -> bool:
        """Measure first what this machine does not know yet of a case; False where that was its end."""
        self._go_on()
        assert self._loaded is not None
        if self._job.tune_reference:
            self._next.wait()  # the reference's configurations are timed
        try:
            self._loaded.check_room(case.batch)
            begin = partial(self._say, CaseStarted(case=case, stage="tune"))
            tuning.tune(case, self._loaded, self._job, begin, self._progress)
        except DeviceLost as error:  # what did it is noted: the case itself goes on without it
            raise Restart(f"{error}; a new process goes on without it") from error
        except Exception as error:
            self._fail(case, None, error)
            return False
        return True

    def _contender(self, case: Case) -> NetContender:
        assert self._loaded is not None
        return NetContender(case, self._loaded, self._job)

    def _unready(self, case: Case, contender: Contender | None, error: Exception) -> list[Case]:
        again = contender is not None and self._chosen_anew(contender, error)
        if again:
            self._close(contender)
        else:
            super()._unready(case, contender, error)
        return [*[case] * again, *self._same.pop(case.key, ())]

    def _chosen_anew(self, contender: Contender, error: Exception) -> bool:
        """Where a configuration came wrong that is kept as right, that is noted with it and told; whether
        another is kept in its place."""
        assert isinstance(contender, NetContender)
        if not isinstance(error, Incorrect):
            return False
        found = configurations.doubt(
            contender.case, contender.backend, contender.graph, contender.options, str(error)
        )
        if found is None:
            return False
        words, another = found
        self._reporter.warn(f"{contender.case.words}: {words} ({error})")
        return another

    def _before(self, ready: dict[str, NetContender]) -> Mapping[str, Exception]:
        self._next.wait()  # from here on there are times
        if not (self._job.end_to_end and ready):
            return {}
        assert self._loaded is not None
        flows = Flows(self._loaded, self._job, ready)
        flows.measure(lambda key, number: self._turn(ready[key].case, "end_to_end"), self._stopped)
        for key, rate in flows.results.items():
            ready[key].recorded["end_to_end"] = rate
        return flows.failed

    def _timing(self, ready: dict[str, Any]) -> dict[str, Any]:
        references = references_among({key: contender.backend for key, contender in ready.items()})
        return {"rules": rules(self._job), "references": references}

    def _possible(self, contender: Contender, measured: Measurement) -> Measurement:
        assert isinstance(contender, NetContender)
        device, case = contender.device, contender.case
        if device not in self._known:  # where a ladder has measured it before
            found = self._known[device] = limits.known(device, self._job.threads)
            if found is not None:
                self._say(LimitsMeasured(limits=found))
        known = self._known[device]
        work = possible.of_model(contender.graph, case.batch, case.precision)
        return possible.held(possible.layers(measured, known), work, known, self._job.l2 == "cold")

    # ---------------------------------------------------------------------------------------------- outcomes

    def _settle(self, measurement: Measurement) -> None:
        super()._settle(measurement)
        if measurement.disposition == "ok":
            for case in self._same.pop(measurement.case.key, ()):
                self._settle(configurations.as_own(measurement, case, self._folder))

    def _fail(self, case: Case, contender: Contender | None, error: Exception) -> None:
        if contender is not None:
            self._chosen_anew(contender, error)  # for the next run, where this one is past choosing
        super()._fail(case, contender, error)
