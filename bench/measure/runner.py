"""Runs cases group by group: prepare and check every contender, time those that are right together, take them
apart, and say of each case what came of it. One contender's failure is its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec
import numpy as np
import onnx

from bench.measure import cases, environment, instances, limits, possible, timing
from bench.measure.answers import oracle
from bench.measure.contender import Contender
from bench.measure.end_to_end import Flows
from bench.measure.loaded_model import LoadedModel
from bench.measure.outcomes import Incorrect, Restart, broke_device, is_bug, outcome, trace
from bench.measure.reporter import Reporter
from bench.measure.telemetry import Sampler
from bench.measure.timing import Rules, Stopped, time_together
from bench.measure.tuned import doubted, next_model, same_configuration, tuning
from bench.measure.tuned.sweep import DeviceLost
from bench.questions import model_questions
from bench.results.machine_limits import MachineLimits
from bench.results.messages import (
    CaseStarted,
    Done,
    Hello,
    Log,
    Measured,
    ModelLoaded,
    Provisional,
    Start,
    WorkerMessage,
)
from bench.results.records import Case, EndToEnd, Job, Measurement
from bench.run.supervisor import LOAD
from engine import backends
from engine.backend import Options, Rival
from engine.cpu import precompile
from engine.graph import importer
from engine.isolated import pool
from engine.machine import host
from kernels.errors import KernelscopeError, OutOfMemoryError


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
            rival = isinstance(backend, Rival)
            if backend.device == "cpu" and not rival and backend.unavailable() is None:
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


class Runner:
    """`say` takes messages; `stopped` tells that the user wants no more."""

    def __init__(
        self, start: Start, say: Callable[[WorkerMessage], None], stopped: Callable[[], bool]
    ) -> None:
        self._start = start
        self._job = start.job
        self._say = say
        self._stopped = stopped
        self._settled: set[str] = set()
        self._same: dict[str, tuple[Case, ...]] = {}  # of the group: see same_configuration.found
        self._known: dict[str, MachineLimits | None] = {}
        reporter = Reporter(say, stopped)
        self._progress, self._go_on = reporter.progress, reporter.go_on
        self._loaded: LoadedModel | None = None
        self._next = next_model.NextModel(self._job, self._go_on)

    def run(self) -> None:
        """Everything, from Hello to Done. Raises Restart where another process has to go on."""
        try:
            planned = self._start.cases or model_questions.cases(self._job, self._progress, self._go_on)
        except Stopped:
            self._say(Done(reason="cancelled"))
            return
        except KernelscopeError as error:
            self._say(Done(reason=str(error)))
            return
        # Processes that kernels will run in, started while the first model is loaded; what is not installed
        # has none, and says so where its cases are prepared.
        compared = [backends.get(name) for name in dict.fromkeys(case.backend for case in planned)]
        kinds = {each.apart for each in compared if each.unavailable() is None} - {""}
        pool.start_early(*kinds, *(["empty"] if kinds else []), alive=self._instances_at_once())
        if "engine" in kinds:
            precompile.start()  # what its process would compile when the first case is prepared
        self._say(Hello(environment=environment.collect(), cases=planned))
        reason = ""
        try:
            by_model = itertools.groupby(cases.groups(planned), key=lambda group: group[0].model)
            models = [list(members) for _, members in by_model]
            for at, members in enumerate(models):
                self._model(members, next(iter(models[at + 1 :]), ()))
        except Stopped:
            reason = "cancelled"
            for case in planned:
                if case.key not in self._settled:
                    self._settle(Measurement(case=case, disposition="cancelled", reason="cancelled"))
        self._say(Done(reason=reason))

    def _instances_at_once(self) -> int:
        """How many there may be of a contender before any of them is timed, where cores are left to get ready
        for those that are not sure to come: starting a process takes longer than all else of an instance."""
        asked = self._job.instances
        spare = host.physical_cores() >= host.SPARE_CORES
        return max(asked, instances.MOST) if asked > 1 and spare else asked

    # ------------------------------------------------------------------------------------------------ stages

    def _model(self, members: Sequence[cases.Group], following: Sequence[cases.Group]) -> None:
        """following: the groups of the next model."""
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
                self._abandon(case, error)
            return
        self._loaded.beside = partial(self._next.begin, following)
        self._say(ModelLoaded(model=self._loaded.info()))
        for note in self._loaded.notes:
            self._say(Log(level="warning", text=f"{model}: {note}"))
        for group in members:
            later = self._group(group)
            for case in later:
                self._group((case,))

    def _group(self, group: Sequence[Case]) -> list[Case]:
        """Measure one group; returns cases to be measured alone: those that ran out of memory and may fit
        then, and those that another was to speak for, which came to nothing once it was timed."""
        assert self._loaded is not None
        ready: dict[str, Contender] = {}
        later: list[Case] = []
        group = [case for case in group if self._tuned(case)]
        self._same = same_configuration.found(
            group, self._loaded.graph, partial(tuning.options, loaded=self._loaded, job=self._job)
        )
        spoken_for = {case.key for others in self._same.values() for case in others}
        todo = [case for case in group if case.key not in spoken_for]
        try:
            for case in todo:
                entrant = self._prepared(case, later if len(group) > 1 else None, todo)
                if entrant is not None:
                    ready[case.key] = entrant
                else:
                    todo += self._same.pop(case.key, ())
            self._next.wait()  # from here on there are times
            flows = self._end_to_end(ready) if self._job.end_to_end and ready else {}
            # When each has its first: what memory is left is for the others.
            for key in tuple(ready) if self._job.instances > 1 else ():
                if not self._multiplied(ready[key]):
                    del ready[key]
            if ready:
                self._timed(ready, flows)
        finally:
            for entrant in ready.values():
                self._close(entrant)
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
            self._abandon(case, error)
            return False
        return True

    def _prepared(self, case: Case, later: list[Case] | None, again: list[Case]) -> Contender | None:
        """None where it is not ready: it failed, or was put into `later` for its memory, or into `again` to
        be prepared in another configuration."""
        self._go_on()
        assert self._loaded is not None
        self._say(CaseStarted(case=case, stage="prepare"))
        entrant = ready = None
        try:
            entrant = Contender(case, self._loaded, self._job)
            entrant.prepare()
            ready = entrant
            return ready
        except Exception as error:
            if later is not None and isinstance(error, OutOfMemoryError | MemoryError):
                later.append(case)
            elif entrant is not None and self._chosen_anew(entrant, error):
                again.append(case)
            else:
                failed, entrant = entrant, None
                self._fail(failed, case, error)
            return None
        finally:
            if entrant is not None and entrant is not ready:
                self._close(entrant)

    def _chosen_anew(self, entrant: Contender, error: Exception) -> bool:
        """Where a configuration came wrong that is kept as right, that is noted with it and told; whether
        another is kept in its place."""
        if not isinstance(error, Incorrect):
            return False
        found = doubted.doubt(entrant.case, entrant.backend, entrant.graph, entrant.options, str(error))
        if found is None:
            return False
        self._say(Log(level="warning", text=f"{entrant.case.words}: {found.words} ({error})"))
        return found.instead is not None

    def _multiplied(self, entrant: Contender) -> bool:
        """Prepare its further instances; False where that was the case's end."""
        self._go_on()
        self._say(CaseStarted(case=entrant.case, stage="prepare"))
        try:
            entrant.prepare_others(in_turn=True)
        except Exception as error:
            self._fail(entrant, entrant.case, error)
            return False
        return True

    def _end_to_end(self, ready: dict[str, Contender]) -> dict[str, EndToEnd]:
        """By key; who fails at it is taken out of `ready`."""
        assert self._loaded is not None

        def turn(key: str, number: int) -> None:
            self._say(CaseStarted(case=ready[key].case, stage="end_to_end"))

        flows = Flows(self._loaded, self._job, ready)
        flows.measure(turn, self._stopped)
        for key, error in flows.failed.items():
            entrant = ready.pop(key)
            self._fail(entrant, entrant.case, error)
        return flows.results

    def _timed(self, ready: dict[str, Contender], flows: Mapping[str, EndToEnd]) -> None:
        job = self._job
        devices = {key: entrant.backend.device for key, entrant in ready.items()}
        uuid = next(filter(None, (_facts(e).get("gpu_uuid", "") for e in ready.values())), "")

        def turn(key: str, number: int) -> None:
            self._say(CaseStarted(case=ready[key].case, stage="time"))
            sampler.turn(key, number)

        def taken(key: str, number: int, timing: timing.Timing) -> None:
            # Of the first round alone: whoever draws it takes a core's time from the rounds that follow.
            if number == 0:
                self._say(Provisional(case=ready[key].case, median_ns=timing.median_ns))

        with Sampler(devices, uuid) as sampler:
            timings = time_together(
                {key: entrant.timed for key, entrant in ready.items()},
                rules(job),
                job.seed,
                references=_references(ready),
                devices=devices,
                on_turn=turn,
                on_taken=taken,
                on_part=sampler.turn,
                throttled=sampler.throttled,
                stopped=self._stopped,
            )
        # Who failed first is first: it may have taken the device from the others. Then the reference: others
        # agree, or not, with its answers.
        for key in sorted(ready, key=lambda key: (timings[key].failed_ns, not ready[key].is_reference)):
            entrant, timed = ready[key], timings[key]
            timed.load = sampler.load(key)
            try:
                if timed.error is not None:
                    raise timed.error
                self._finish(entrant, timed, sampler, flows.get(key))
            except Exception as error:
                self._fail(entrant, entrant.case, error)

    def _finish(
        self, entrant: Contender, timed: timing.Timing, sampler: Sampler, flow: EndToEnd | None
    ) -> None:
        folder = self._start.folder
        self._go_on()
        self._say(CaseStarted(case=entrant.case, stage="check"))
        entrant.check_again()
        entrant.take_apart(timed.median_ns)
        entrant.answer(folder, self._progress)
        if in_a_pass := self._job.times_layers(entrant.case.backend):
            self._go_on()
            self._say(CaseStarted(case=entrant.case, stage="layers"))
        entrant.tell_layers(folder, in_a_pass)
        self._close(entrant)
        measured = entrant.measured(timed, sampler.result(entrant.case.key))
        known = self._limits(entrant.backend.device)
        measured = possible.layers(msgspec.structs.replace(measured, end_to_end=flow), known)
        work = possible.of_model(entrant.graph, entrant.case.batch, entrant.case.precision)
        self._settle(possible.held(measured, work, known, self._job.l2 == "cold"))

    def _limits(self, device: str) -> MachineLimits | None:
        """What this machine reaches, where a ladder has measured it before."""
        if device not in self._known:
            self._known[device] = limits.known(device, self._job.threads)
        return self._known[device]

    # ---------------------------------------------------------------------------------------------- outcomes

    def _settle(self, measurement: Measurement) -> None:
        self._settled.add(measurement.case.key)
        self._say(Measured(measurement=measurement))
        if measurement.disposition == "ok":
            for case in self._same.pop(measurement.case.key, ()):
                self._settle(same_configuration.as_own(measurement, case, self._start.folder))

    def _abandon(self, case: Case, error: Exception) -> None:
        """A case that never had a contender."""
        disposition, reason = outcome(error)
        self._trace(case, error)
        self._settle(Measurement(case=case, disposition=disposition, reason=reason))

    def _fail(self, entrant: Contender | None, case: Case, error: Exception) -> None:
        if entrant is None:
            self._abandon(case, error)
            return
        self._trace(case, error)
        self._chosen_anew(entrant, error)  # for the next run, where this one is past choosing
        self._close(entrant)
        measurement = entrant.failed(error)
        broken = broke_device(entrant.backend.device, measurement.disposition)
        if broken:
            measurement = msgspec.structs.replace(measurement, disposition="crashed")
        self._settle(measurement)
        if broken:
            raise Restart(f"{case.words} broke the device's context; the rest goes on in a new process")

    def _trace(self, case: Case, error: Exception) -> None:
        if is_bug(error):
            self._say(Log(level="error", text=f"{case.words}: {trace(error)}"))

    def _close(self, entrant: Contender) -> None:
        try:
            entrant.close()
        except Exception as error:
            self._say(Log(level="warning", text=f"{entrant.case.words} could not be closed: {error}"))


def _references(ready: Mapping[str, Contender]) -> dict[str, str]:
    """Whom each of these is compared with, by key, where that is among them."""
    by_backend = {entrant.backend.name: key for key, entrant in ready.items()}
    found = {key: by_backend.get(entrant.backend.reference, key) for key, entrant in ready.items()}
    return {key: other for key, other in found.items() if other != key}


def _facts(entrant: Contender) -> dict[str, str]:
    return dict(entrant.session.facts) if entrant.session is not None else {}
