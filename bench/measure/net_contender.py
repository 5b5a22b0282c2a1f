"""A whole net on one backend: prepared, checked, timed, checked again; and what came of it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from bench.measure import instances, timing
from bench.measure.answers import accuracy, by_image, roundings, ties, timed_pass
from bench.measure.answers.accuracy import Allowed
from bench.measure.answers.layer_check import LayerCheck
from bench.measure.answers.renewed import Mixings, Renewal
from bench.measure.loaded_model import LoadedModel
from bench.measure.outcomes import Incorrect
from bench.measure.runner import Contender
from bench.measure.timing import Timeable
from bench.measure.tuned import tuning
from bench.results.records import Accuracy, Case, Disposition, ErrorStats, Job, Measurement
from engine import backends
from engine.backend import Backend, Rival, Session, Variant, Witnessed, is_ort
from engine.graph.graph import Graph
from engine.stirring import Renewable
from kernels.errors import KernelscopeError, UnavailableError, UnsupportedError

# A timed pass that is looked at takes a batch to be rebuilt and given once more: of large ones fewer are.
LARGE_NBYTES = 64 << 20
OPTIMISED = "ONNX Runtime's optimised graph answers otherwise than its own unoptimised graph"

Arrays = Mapping[str, np.ndarray]


class NetContender(Contender):
    """A whole net in sessions of a backend. loaded: what the cases of the net share. Facts, phases and memory
    are those of the first instance."""

    record = Measurement

    def __init__(self, case: Case, loaded: LoadedModel, job: Job) -> None:
        self.backend: Backend = backends.get(case.backend)
        super().__init__(case, self.backend.device, job)
        self.loaded = loaded
        self.options = tuning.options(self.backend, loaded, job)
        self.mixings = Mixings()
        self.checked = 0  # images whose answers were judged
        self.output: ErrorStats | None = None  # how far off they were
        self.layer_check: Any = None  # a LayerCheck, once it is prepared
        self.phases: dict[str, float] = {}
        self._timed: instances.Growing[Timeable] | instances.Succession[Timeable] | None = None
        self._first_run_ns: int | None = None
        self._pass_s = 0.0
        self._memory: dict[str, int] = {}
        library = is_ort(self.backend) or isinstance(self.backend, Rival)
        self._allowed = Allowed.LIBRARY if library else Allowed.NOTHING

    @property
    def is_reference(self) -> bool:
        return self.backend.name == self.backend.reference and self.case.precision == "fp32"

    @property
    def graph(self) -> Graph:
        return self.loaded.graph

    # ----------------------------------------------------------------------------------------------- stages

    def prepare(self) -> None:
        """Compile, allocate, upload; the first pass, apart; and the check without which nothing is timed."""
        case = self.case
        if (reason := self.backend.unavailable()) is not None:
            raise UnavailableError(reason)
        graph = self.loaded.graph
        if (refusal := self.backend.supports(graph, case.batch, case.precision)) is not None:
            raise UnsupportedError(refusal)
        if isinstance(self.backend, Variant):
            self.options = self.backend.resolved(graph, case.batch, case.precision, self.options)
        session = self.first = self.backend.prepare(graph, case.batch, case.precision, self.options)
        self.placement = self.loaded.placement(case.batch, seed=self.job.seed)
        # Something else first, so that an answer left over from it is not taken for a right one.
        session.bind(accuracy.disturbed(self.placement.inputs))
        self._first_run_ns = timing.first_run(session)
        self._pass_s = timing.one_pass(session, self.placement.inputs)
        self.layer_check = LayerCheck(case, self.backend, self.options, self.loaded)
        try:
            self._judge(session, "before timing")
        except Incorrect:
            self.layer_check.before_timing(session)  # which layer it comes of says more
            raise
        self.layer_check.before_timing(session)
        self.phases = {name: float(ns) for name, ns in session.phases.items()}

    @property
    def timed(self) -> instances.Succession[Timeable] | Sequence[Timeable]:
        """All instances, open or to come: what `multiply` made, and may make more of."""
        return self._timed or [self.mixings.of(session) for session in self.opened]

    def multiply(self) -> None:
        """The further instances that the job asks for, each with the choices that were made for the first:
        what is timed once and kept is not timed again. What a session chooses when it is created it chooses
        anew: cuDNN's algorithm in ONNX Runtime, which of our launches begin early. Where memory does not
        suffice for all, one after another is timed (see `timed`); a warning says where they are fewer. Raises
        Incorrect where one is not right."""
        first, count = self.first, self.job.instances
        expected = timing.answers(first, self.placement.inputs) if count > 1 else {}

        def another(number: int) -> Session:
            case = self.case
            made = self.backend.prepare(self.loaded.graph, case.batch, case.precision, self.options)
            try:
                with instances.named(number):
                    timing.one_pass(made, accuracy.disturbed(self.placement.inputs))
                    got = timing.answers(made, self.placement.inputs)
                    right = self._checked_whole(got)
                    if not right.ok:
                        raise Incorrect(right, "before timing")
                    found = self._alike(got, expected)
                    if not found.ok and not self.loaded.moves:
                        raise Incorrect(found, "before timing, beside the first instance")
            except BaseException:
                made.close()
                raise
            return made

        nbytes = sum(first.memory.values())
        room = self.job.budget_s / self._pass_s
        # What is to be over soon is not prepared for longer than it is timed: whatever is made is also warmed
        # up and checked, before and after.
        budget_s = self.job.budget_s
        quick_s = min(instances.QUICK_S, budget_s / 4) if budget_s >= instances.HURRY_S else 0.0
        self.others, short = instances.further(count, nbytes, self.backend.device, room, another, quick_s)
        if short == instances.NO_MEMORY:
            self.close(but=1)
            of = self.mixings.of
            self._timed = instances.Succession(of(first), count, lambda n: of(self._next(another, n)))
            said = f"{instances.told(count)} were timed one after another: memory holds not all of them"
        else:
            said = instances.fewer(len(self.others) + 1, count, short)
            if self.others and not short:
                most, seconds = instances.TIMES * count, min(instances.GROWING_S, self.job.budget_s)
                device = self.backend.device
                self._timed = instances.Growing(
                    first, self.others, another, most, seconds, nbytes, device, self.mixings.of
                )
        self.warnings += [said] if said else []

    def _next(self, another: Callable[[int], Session], number: int) -> Session:
        """The instance of this number in the place of the one before, whose timed passes must have been
        right."""
        with instances.named(number - 1):
            self._check_after(self.first)
        session, self.first = self.first, None
        self.mixings.drop(session)
        session.close()
        self.first = another(number)
        return self.first

    def check_again(self) -> None:
        """After timing, of each instance: timed passes must have been right, and so must a pass over other
        images. The first is left open alone."""
        for number, session in enumerate(self.opened):
            with instances.named(number):
                self._check_after(session)
                if number == 0 and self.mixings.settle(session):
                    self._check_new(session)
        before = self.placement
        self.placement = self.loaded.placement(self.case.batch, seed=self.job.seed + 1)
        for number, session in enumerate(self.opened):
            with instances.named(number):
                if number == 0:
                    timing.one_pass(session, accuracy.disturbed(before.inputs))
                timing.one_pass(session, self.placement.inputs)
                self._judge(session, "after timing, with other images")
        self.close(but=1)

    def close(self, but: int = 0) -> None:
        if self.first is not None:
            self._memory = dict(self.first.memory)
        super().close(but)

    # --------------------------------------------------------------------------------------------- outcomes

    @property
    def _renewal(self) -> Renewal | None:
        return self.mixings.told

    def _doubts(self) -> list[str]:
        found = [
            *(self.layer_check.warnings if self.layer_check else ()),
            *self.loaded.doubts(self.case.batch),
        ]
        if reason := self.facts.get("binding"):
            found.append(f"inputs and outputs are not bound: {reason.removeprefix('no: ')}")
        if self.output is not None and self.output.note:
            found.append(self.output.note)
        stored = roundings.coarsest(self.graph, self.case.batch)
        moving = accuracy.moving(self.output, self.bound_of(), ties.quantizes(self.graph), stored)
        if self._allowed == Allowed.OPTIMISED:  # another cause is told
            moving = ""
        return [*found, *filter(None, [moving, self.mixings.told and self.mixings.told.told])]

    def failed(self, error: BaseException) -> Measurement:
        if not isinstance(error, Incorrect):
            return msgspec.structs.replace(super().failed(error), layers=self.recorded.get("layers", ()))
        # What was right before it is told too: a layer can be wrong where the output hides it.
        wrong = Accuracy(images=0, labelled=False, checked=self.checked, output=self.output)
        known = self.recorded.get("layers") or (
            self.layer_check.known(along=True) if self.layer_check else ()
        )
        return msgspec.structs.replace(
            super().failed(error), accuracy=self.recorded.get("accuracy", wrong), layers=known
        )

    def _made(self, disposition: Disposition, **fields: Any) -> Measurement:
        return super()._made(
            disposition,
            reference=self.backend.reference,
            first_run_ns=self._first_run_ns,
            phases=self.phases,
            facts=self.facts,
            memory=self._memory,
            **fields,
        )

    # ------------------------------------------------------------------------------------------- the inside

    def _judge(self, session: Session, when: str) -> None:
        stats_ = self._checked_whole(session.fetch())
        if session is self.first or not stats_.ok:
            self.output = stats_
        self.checked = len(self.placement.rows)
        if not stats_.ok:
            raise Incorrect(stats_, when)

    def _checked_whole(self, outputs: Arrays) -> ErrorStats:
        """All outputs of the placement's batch against the right ones."""
        loaded, placed, bound_of = self.loaded, self.placement, self.bound_of()

        def judged(answers: Arrays, allowed: Allowed) -> ErrorStats:
            return loaded.check(answers, placed, bound_of, allowed)

        return self._explained(judged(outputs, self._allowed), judged, placed.inputs, outputs)

    def checked_row(self, inputs: Arrays, outputs: Arrays) -> ErrorStats | None:
        """One image of a batch, drawn now, against float64; None where nothing of that judges."""
        loaded, bound_of, row = self.loaded, self.bound_of(), by_image.drawn(self.graph, inputs)

        def judged(answers: Arrays, allowed: Allowed) -> ErrorStats | None:
            return loaded.check_row(inputs, answers, bound_of, allowed, row)

        found = judged(outputs, self._allowed)
        return found and self._explained(found, judged, inputs, outputs)

    def _explained(
        self,
        stats: ErrorStats,
        judged: Callable[[Arrays, Allowed], ErrorStats | None],
        inputs: Arrays,
        outputs: Arrays,
    ) -> ErrorStats:
        """Of a wrong answer of ONNX Runtime, whether that is its optimiser's doing: it answers rightly if it
        leaves the graph as it is. Where that changes the answer by no more than one step of each quantised
        value does, the case is measured with a doubt; else it is wrong, and the reason says why."""
        if stats.ok or self._allowed != Allowed.LIBRARY or not is_ort(self.backend):
            return stats
        case = self.case
        try:
            plain = self.loaded.unoptimised(self.backend, case.batch, case.precision, self.options, inputs)
        except KernelscopeError:
            return stats
        beside = judged(plain, self._allowed)
        if beside is None or not beside.ok:
            return stats
        by = f" by {stats.rel_l2:.1e}" if accuracy.measured(stats) else ""
        said = f"{OPTIMISED}{by}: its optimisation, not the file, is the cause"
        if ties.quantizes(self.graph):
            wide = judged(outputs, Allowed.OPTIMISED)
            if wide is not None and wide.ok:
                self._allowed = Allowed.OPTIMISED
                self.warnings.append(f"{said}; one step of each quantised value moves the answer by as much")
                return wide
        return msgspec.structs.replace(stats, reason=f"{stats.reason}; {said}")

    def _check_after(self, session: Session) -> None:
        """What it did while it was timed, or the last of it. Raises Incorrect."""
        self.mixings.end_turn(session)
        self._check_new(session)
        seen = self.mixings.seen(session)
        if isinstance(session, Witnessed) and (seen or session.stirring is not None):
            self._check_timed(session, session)
        else:
            self._judge(session, "after timing")

    def _check_timed(self, session: Session, timed: Witnessed) -> None:
        """Passes of `session` drawn among those that were timed: the first instance's against float64,
        another's against the first's. Raises Incorrect."""
        first, bound_of = self.first, self.bound_of()

        def right(inputs: Arrays, answers: Arrays) -> ErrorStats | None:
            if session is first:
                return self.checked_row(inputs, answers)
            found = self._alike(answers, timing.answers(first, inputs))
            moves = not found.ok and self.loaded.moves
            return self.checked_row(inputs, answers) if moves else found

        most = timed_pass.LOOKED_AT
        if sum(array.nbytes for array in self.placement.inputs.values()) > LARGE_NBYTES:
            most = 2 if session is first else 1
        seen = self.mixings.seen(session)
        seconds = timed_pass.LOOKS_S if getattr(session, "users", False) else 0.0
        again = partial(timing.answers, session)
        factor = accuracy.PROPAGATED_FACTOR
        timed_pass.check(timed, again, right, bound_of, factor, most, seen, seconds)

    def _check_new(self, session: Session) -> None:
        """Passes over inputs that were all new, against float64: of as many trains as it is worth it. Raises
        Incorrect."""
        pairs = list(session.renewed()) if isinstance(session, Renewable) else []
        secrets.SystemRandom().shuffle(pairs)
        end = time.perf_counter() + timed_pass.FLOAT64_S
        for number, pair in enumerate(pairs):
            if number and time.perf_counter() > end:
                break
            found = self.checked_row(*pair)
            if found is not None and not found.ok:
                raise Incorrect(found, f"{timed_pass.WHEN}, on inputs that were all new")

    def _alike(self, got: Arrays, first: Arrays) -> ErrorStats:
        return instances.alike(got, first, self.bound_of(), accuracy.PROPAGATED_FACTOR)

    def bound_of(self) -> str:
        lenient = isinstance(self.backend, Variant) and self.backend.lenient
        return accuracy.LOOSEST if lenient else self.case.precision


def compared_with(compared: Mapping[str, Backend]) -> dict[str, str]:
    """The reference of each of these backends, where that is another one of them, by their keys."""
    keys = {backend.name: key for key, backend in compared.items()}
    found = {key: keys.get(backend.reference, key) for key, backend in compared.items()}
    return {key: other for key, other in found.items() if other != key}
