"""One case on its way: prepared, checked, timed, checked again, taken apart; and what came of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec
import numpy as np

from bench.measure import instances, timing, unrest
from bench.measure.answers import accuracy, roundings, ties, timed_pass
from bench.measure.answers.layer_check import LayerCheck
from bench.measure.answers.renewed import Mixings
from bench.measure.host_to_host import host_to_host
from bench.measure.images import predictions
from bench.measure.loaded_model import LoadedModel
from bench.measure.outcomes import Incorrect, outcome
from bench.measure.timing import Timeable, Timing
from bench.measure.tuned import tuning
from bench.results import artifacts
from bench.results.records import (
    Accuracy,
    Case,
    Disposition,
    ErrorStats,
    Job,
    Layer,
    Measurement,
    Telemetry,
    Validity,
)
from engine import backends
from engine.backend import Backend, Rival, Session, Variant, Witnessed, is_ort
from engine.graph.graph import Graph
from engine.stirring import Renewable
from kernels.errors import OutOfMemoryError, UnavailableError, UnsupportedError, system_words

LAYERS_S = 0.2
HOST_TO_HOST_S = 0.15
# A timed pass that is looked at takes a batch to be rebuilt and given once more: of large ones fewer are.
LARGE_NBYTES = 64 << 20

Progress = Callable[[str, float | None], None]
Arrays = Mapping[str, np.ndarray]


class Contender:
    """A case with its session, and further instances of it. Raises whatever the backend raises; `failed` puts
    that into a Measurement. Facts, phases and memory are those of the first."""

    def __init__(self, case: Case, loaded: LoadedModel, job: Job) -> None:
        self.case = case
        self.backend: Backend = backends.get(case.backend)
        self.session: Session | None = None
        self._others: list[Session] = []
        self._timed: instances.Growing[Timeable] | instances.Succession[Timeable] | None = None
        self.mixings = Mixings()
        self.options = tuning.options(self.backend, loaded, job)
        self._loaded = loaded
        self._job = job
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._first_run_ns: int | None = None
        self._pass_s = 0.0
        self._phases: dict[str, float] = {}
        self._host: dict[str, object] = {}  # what was timed on its clock, by the record's names
        self._dataset_ns: dict[str, float] = {}
        self._output: ErrorStats | None = None
        self._checked = 0
        self._accuracy: Accuracy | None = None
        self._layers: tuple[Layer, ...] = ()
        self._check: LayerCheck | None = None
        self._facts: dict[str, str] = {}
        self._memory: dict[str, int] = {}
        self._warnings: list[str] = []

    @property
    def is_reference(self) -> bool:
        return self.backend.name == self.backend.reference and self.case.precision == "fp32"

    @property
    def _lossy(self) -> bool:
        """Whether numbers in the place of NaN are a note: a library's loss of NaN is its own."""
        return is_ort(self.backend) or isinstance(self.backend, Rival)

    @property
    def graph(self) -> Graph:
        return self._loaded.graph

    @property
    def sessions(self) -> list[Session]:
        """All instances that are open."""
        return [session for session in (self.session, *self._others) if session is not None]

    # ----------------------------------------------------------------------------------------------- stages

    def prepare(self) -> None:
        """Compile, allocate, upload; the first pass, apart; and the check without which nothing is timed."""
        case = self.case
        if (reason := self.backend.unavailable()) is not None:
            raise UnavailableError(reason)
        graph = self._loaded.graph
        if (refusal := self.backend.supports(graph, case.batch, case.precision)) is not None:
            raise UnsupportedError(refusal)
        if isinstance(self.backend, Variant):
            self.options = self.backend.resolved(graph, case.batch, case.precision, self.options)
        self.session = self.backend.prepare(graph, case.batch, case.precision, self.options)
        self._placement = self._loaded.placement(case.batch, seed=self._job.seed)
        # Something else first, so that an answer left over from it is not taken for a right one.
        self.session.bind(accuracy.disturbed(self._placement.inputs))
        self._first_run_ns = timing.first_run(self.session)
        self._pass_s = timing.one_pass(self.session, self._placement.inputs)
        self._check = LayerCheck(case, self.backend, self.options, self._loaded)
        try:
            self._judge(self.session, "before timing")
        except Incorrect:
            self._check.before_timing(self.session)  # which layer it comes of says more
            raise
        self._check.before_timing(self.session)
        self._phases = {name: float(ns) for name, ns in self.session.phases.items()}

    @property
    def timed(self) -> instances.Succession[Timeable] | Sequence[Timeable]:
        """All instances, open or to come: what `prepare_others` made, and may make more of."""
        return self._timed or [self.mixings.of(session) for session in self.sessions]

    def prepare_others(self, in_turn: bool = False) -> tuple[list[Timeable], str]:
        """The further instances that the job asks for, each with the choices that were made for the first:
        what is timed once and kept is not timed again. What a session chooses when it is created it chooses
        anew: cuDNN's algorithm in ONNX Runtime, which of our launches begin early. Returns what is timed of
        them, and a sentence where they are fewer. in_turn: where memory does not suffice for all, one after
        another is timed (see `timed`). Raises Incorrect where one is not right."""
        first, count = self._open(), self._job.instances
        expected = timing.answers(first, self._placement.inputs) if count > 1 else {}

        def another(number: int) -> Session:
            case = self.case
            made = self.backend.prepare(self._loaded.graph, case.batch, case.precision, self.options)
            try:
                with instances.named(number):
                    timing.one_pass(made, accuracy.disturbed(self._placement.inputs))
                    got = timing.answers(made, self._placement.inputs)
                    right = self._loaded.check(got, self._placement, self.bound_of(), self._lossy)
                    if not right.ok:
                        raise Incorrect(right, "before timing")
                    found = self._alike(got, expected)
                    if not found.ok and not self._loaded.moves:
                        raise Incorrect(found, "before timing, beside the first instance")
            except BaseException:
                made.close()
                raise
            return made

        nbytes = sum(first.memory.values())
        room = self._job.budget_s / self._pass_s
        # What is to be over soon is not prepared for longer than it is timed: whatever is made is also warmed
        # up and checked, before and after.
        budget_s = self._job.budget_s
        quick_s = min(instances.QUICK_S, budget_s / 4) if budget_s >= instances.HURRY_S else 0.0
        self._others, short = instances.further(count, nbytes, self.backend.device, room, another, quick_s)
        if in_turn and short == instances.NO_MEMORY:
            self._close_others()
            of = self.mixings.of
            self._timed = instances.Succession(of(first), count, lambda n: of(self._next(another, n)))
            said = f"{instances.told(count)} were timed one after another: memory holds not all of them"
        else:
            said = instances.fewer(len(self._others) + 1, count, short)
            if self._others and not short:
                most, seconds = instances.TIMES * count, min(instances.GROWING_S, self._job.budget_s)
                device = self.backend.device
                self._timed = instances.Growing(
                    first, self._others, another, most, seconds, nbytes, device, self.mixings.of
                )
        self._warnings += [said] if said else []
        return [self.mixings.of(session) for session in self._others], said

    def _next(self, another: Callable[[int], Session], number: int) -> Session:
        """The instance of this number in the place of the one before, whose timed passes must have been
        right."""
        with instances.named(number - 1):
            self._check_after(self._open())
        session, self.session = self._open(), None
        self.mixings.drop(session)
        session.close()
        self.session = another(number)
        return self.session

    def check_again(self) -> None:
        """After timing, of each instance: timed passes must have been right, and so must a pass over other
        images. The first is left open alone."""
        for number, session in enumerate(self.sessions):
            with instances.named(number):
                self._check_after(session)
                if number == 0 and self.mixings.settle(session):
                    self._check_new(session)
        before = self._placement
        self._placement = self._loaded.placement(self.case.batch, seed=self._job.seed + 1)
        for number, session in enumerate(self.sessions):
            with instances.named(number):
                if number == 0:
                    timing.one_pass(session, accuracy.disturbed(before.inputs))
                timing.one_pass(session, self._placement.inputs)
                self._judge(session, "after timing, with other images")
        self._close_others()

    def take_apart(self, median_ns: float) -> None:
        """Phases of an host-to-host pass; `median_ns` is what a pass takes on the device's clock."""
        seconds = min(HOST_TO_HOST_S, self._job.budget_s / 4)
        # What a pass is started by from outside of a process is no part of it.
        apart = self.backend.device != "cpu" or isinstance(self._open(), Witnessed)
        found = host_to_host(self._open(), self._placement.inputs, median_ns if apart else None, seconds)
        self._phases |= found.phases
        self._host = {"wall_ns": found.wall_ns, "launched_ns": found.launched_ns}

    def answer(self, folder: str, progress: Progress) -> None:
        """The pass over the data set: top-1, top-5, agreement, the whole pass's time."""
        case, loaded = self.case, self._loaded
        self._accuracy = Accuracy(images=0, labelled=False, checked=self._checked, output=self._output)
        if case.images == 0 or not loaded.takes_images:
            return
        try:
            ours = predictions.run(
                self._open(),
                loaded.feed,
                loaded.dataset(case.images),
                images=case.images,
                progress=progress,
            )
        except UnsupportedError as error:  # a model whose output is no row of class scores
            self._warnings.append(f"no accuracy: {error}")
            return
        if self.is_reference:
            loaded.keep_reference(case.backend, case.images, ours)
        name, theirs = ("", None) if self.is_reference else loaded.reference(self.backend, case.images)
        notes = loaded.dataset(case.images).notes()
        self._accuracy = predictions.summary(
            ours, theirs, name, checked=self._checked, output=self._output, notes=notes
        )
        self._dataset_ns = {"wall": float(ours.wall_ns), "compute": float(ours.compute_ns)}
        self._keep(folder, "predictions", lambda path: predictions.save(path, ours))
        if folder:
            try:  # once for all cases that share them
                predictions.keep_images(folder, loaded.spec.dataset, loaded.dataset(case.images), case, ours)
            except OSError as error:
                self._warnings.append(f"the images could not be kept: {system_words(error)}")
        if theirs is not None:
            predictions.hold(ours, theirs, self.bound_of(), name)

    def tell_layers(self, folder: str, timed: bool) -> None:
        """Every operator's time at this batch and its errors, or what was checked of it before timing."""
        assert self._check is not None
        try:
            if timed:
                seconds = min(LAYERS_S, self._job.budget_s / 3)
                self._layers = self._check.measured(self._open(), seconds, alone=bool(self._job.layers_of))
        except (OutOfMemoryError, UnsupportedError) as error:
            self._warnings.append(f"no times of layers: {error}")
        self._layers = self._layers or self._check.known()
        if self._layers:
            self._keep(folder, "layers", lambda path: artifacts.save_layers(path, self._layers))

    def close(self) -> None:
        """Free the sessions; a failure to do so is the next case's to notice."""
        session, self.session = self.session, None
        with contextlib.ExitStack() as stack:
            if session is not None:
                stack.callback(session.close)
                self._facts, self._memory = dict(session.facts), dict(session.memory)
            stack.callback(self._close_others)

    def _close_others(self) -> None:
        others, self._others = self._others, []
        with contextlib.ExitStack() as stack:
            for session in others:
                stack.callback(session.close)

    # --------------------------------------------------------------------------------------------- outcomes

    def measured(self, timed: Timing, telemetry: Telemetry) -> Measurement:
        """The measurement of a case that went well. Call after `close`."""
        warnings = [*timed.warnings, *self._warnings, *(self._check.warnings if self._check else ())]
        warnings += [*timing.few(timed), *filter(None, [unrest.warning(timed)])]
        if reason := self._facts.get("stirring"):
            warnings.append(f"all timed passes were given the same inputs: {reason.removeprefix('no: ')}")
        warnings += self._loaded.doubts(self.case.batch)
        if reason := self._facts.get("binding"):
            warnings.append(f"inputs and outputs are not bound: {reason.removeprefix('no: ')}")
        if self._output is not None and self._output.note:
            warnings.append(self._output.note)
        stored = roundings.coarsest(self.graph, self.case.batch)
        if doubt := accuracy.moving(self._output, self.bound_of(), ties.quantizes(self.graph), stored):
            warnings.append(doubt)
        if renewal := self.mixings.told:
            warnings.append(renewal.told)
            if self._job.l2 == "cold":
                return self._record("invalid", reason=renewal.untaken, accuracy=self._accuracy)
        shown = renewal or timed
        return self._record(
            "ok",
            samples_ns=tuple(shown.samples_ns),
            runs_per_sample=timed.runs_per_sample,
            rounds=tuple(shown.rounds),
            instances=tuple(shown.instances),
            quantile=timed.quantile,
            load=dict(timed.load),
            **self._host,
            dataset_ns=self._dataset_ns,
            layers=self._layers,
            accuracy=self._accuracy,
            telemetry=telemetry,
            validity=Validity(stop_reason=timed.stop_reason, retries=timed.retries, warnings=tuple(warnings)),
        )

    def failed(self, error: BaseException) -> Measurement:
        """The measurement of a case that `error` ended. Call after `close`."""
        disposition, reason = outcome(error)
        accuracy, known = None, self._layers
        if isinstance(error, Incorrect):
            # What was right before it is told too: a layer can be wrong where the output hides it.
            wrong = Accuracy(images=0, labelled=False, checked=self._checked, output=self._output)
            accuracy = self._accuracy or wrong
            known = known or (self._check.known(along=True) if self._check else ())
        return self._record(disposition, reason=reason, accuracy=accuracy, layers=known)

    def _record(self, disposition: Disposition, **fields: object) -> Measurement:
        record = Measurement(
            case=self.case,
            disposition=disposition,
            reference=self.backend.reference,
            first_run_ns=self._first_run_ns,
            phases=self._phases,
            facts=self._facts,
            memory=self._memory,
            started_at=self._started_at,
        )
        return msgspec.structs.replace(record, **fields)

    # ------------------------------------------------------------------------------------------- the inside

    def _open(self) -> Session:
        if self.session is None:
            raise RuntimeError(f"the session of {self.case.words} is closed")
        return self.session

    def _judge(self, session: Session, when: str) -> None:
        stats_ = self._loaded.check(session.fetch(), self._placement, self.bound_of(), self._lossy)
        if session is self.session or not stats_.ok:
            self._output = stats_
        self._checked = len(self._placement.rows)
        if not stats_.ok:
            raise Incorrect(stats_, when)

    def _check_after(self, session: Session) -> None:
        """What it did while it was timed, or the last of it. Raises Incorrect."""
        if self.mixings.end_turn(session):
            self._check_new(session)
        seen = self.mixings.seen(session)
        if isinstance(session, Witnessed) and (seen or session.stirring is not None):
            self._check_timed(session, session)
        else:
            self._judge(session, "after timing")

    def _check_timed(self, session: Session, timed: Witnessed) -> None:
        """Passes of `session` drawn among those that were timed: the first instance's against float64,
        another's against the first's. Raises Incorrect."""
        first, bound_of = self._open(), self.bound_of()

        def right(inputs: Arrays, answers: Arrays) -> ErrorStats | None:
            if session is first:
                return self._loaded.check_row(inputs, answers, bound_of, self._lossy)
            found = self._alike(answers, timing.answers(first, inputs))
            moves = not found.ok and self._loaded.moves
            return self._loaded.check_row(inputs, answers, bound_of, self._lossy) if moves else found

        most = timed_pass.LOOKED_AT
        if sum(array.nbytes for array in self._placement.inputs.values()) > LARGE_NBYTES:
            most = 2 if session is first else 1
        seen = self.mixings.seen(session)
        timed_pass.check(
            timed, partial(timing.answers, session), right, bound_of, accuracy.PROPAGATED_FACTOR, most, seen
        )

    def _check_new(self, session: Session) -> None:
        """A pass over inputs that were all new, against float64. Raises Incorrect."""
        assert isinstance(session, Renewable)
        if (last := session.renewed()) is not None:
            found = self._loaded.check_row(*last, self.bound_of(), self._lossy)
            if found is not None and not found.ok:
                raise Incorrect(found, f"{timed_pass.WHEN}, on inputs that were all new")

    def _alike(self, got: Arrays, first: Arrays) -> ErrorStats:
        return instances.alike(got, first, self.bound_of(), accuracy.PROPAGATED_FACTOR)

    def bound_of(self) -> str:
        lenient = isinstance(self.backend, Variant) and self.backend.lenient
        return accuracy.LOOSEST if lenient else self.case.precision

    def _keep(self, folder: str, kind: str, write: Callable[..., None]) -> None:
        """Write a file beside the results; where that fails the measurement says so and is kept."""
        if not folder:
            return
        try:
            write(artifacts.path(folder, kind, self.case))
        except OSError as error:
            self._warnings.append(f"the {kind} could not be written: {system_words(error)}")
