"""The contender of a whole net on one backend: it prepares the sessions, checks their answers before and
after timing, and makes the record. The loop that calls it is in bench.measure.runner."""

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
from bench.measure.outcomes import Incorrect, OnlyRight
from bench.measure.runner import Contender
from bench.measure.timing import Timeable
from bench.measure.tuned import tuning
from bench.results.records import Accuracy, Case, Disposition, ErrorStats, Job, Measurement
from engine import backends
from engine.backend import Answering, Backend, Rival, Session, Swapping, Variant, Witnessed, is_ort
from engine.graph.graph import Graph
from engine.stirring import Renewable
from kernels.errors import KernelscopeError, UnavailableError, UnsupportedError

# To check a timed pass, its batch is built again and run again. So fewer passes with large inputs are
# checked.
LARGE_NBYTES = 64 << 20
OPTIMISED = "ONNX Runtime's optimised graph answers otherwise than its own unoptimised graph"

Arrays = Mapping[str, np.ndarray]


class NetContender(Contender):
    """Runs one case of a whole net. Each instance is a session of the case's backend. loaded: what all cases
    of the net share (graph, images, right answers). The facts, phases (ns) and memory (bytes) in the record
    are those of the first instance. The methods are described in Contender."""

    record = Measurement
    shown_early = True

    def __init__(self, case: Case, loaded: LoadedModel, job: Job) -> None:
        self.backend: Backend = backends.get(case.backend)
        super().__init__(case, self.backend.device, job)
        self.loaded = loaded
        self.options = tuning.options(self.backend, loaded, job)
        self.mixings = Mixings(host=self.backend.device == "cpu")
        self.checked = 0  # images whose answers were judged
        self.output: ErrorStats | None = None  # how far off they were
        self.layer_check: Any = None  # a LayerCheck, once it is prepared
        self.phases: dict[str, float] = {}
        self._timed: instances.Growing[Timeable] | instances.Succession[Timeable] | None = None
        self._first_run_ns: int | None = None
        self._pass_s = 0.0
        self._memory: dict[str, int] = {}
        library = is_ort(self.backend) or isinstance(self.backend, Rival | Swapping)
        self._allowed = Allowed.LIBRARY if library else Allowed.NOTHING

    @property
    def is_reference(self) -> bool:
        """Whether the backend is its own reference, and the case is fp32."""
        return self.backend.name == self.backend.reference and self.case.precision == "fp32"

    @property
    def graph(self) -> Graph:
        """The graph of the net."""
        return self.loaded.graph

    # ----------------------------------------------------------------------------------------------- stages

    def prepare(self) -> None:
        """Create the first session (compile, allocate, upload), time its first pass separately, and check the
        answer of a pass. Raises UnavailableError or UnsupportedError if the backend cannot run the case,
        Incorrect if the answer is wrong, OnlyRight if it is right and the backend has no times, and what
        Backend.prepare raises."""
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
        if isinstance(self.backend, Answering):
            session.run()
            session.bind(self.placement.inputs)
            session.run()
            self._judge(session, "without times")
            raise OnlyRight(f"{self.checked} images; it runs on the CPU in place of a GPU")
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
        """All instances to be timed: those that `multiply` created, and those that are created during timing
        (see instances.Growing and instances.Succession)."""
        return self._timed or [self.mixings.of(session) for session in self.opened]

    def multiply(self) -> None:
        """Create and check the further instances that the job asks for.

        They use the same tuning as the first: what was measured and stored is not measured again. But what
        a session chooses during its creation is chosen again, for example cuDNN's algorithm in ONNX Runtime,
        or which of our kernel launches begin early. If there is not enough memory for all instances, they
        are created and timed one after the other. A warning says so, or that there are fewer than asked for.
        Raises Incorrect if the answer of an instance is wrong, and what Backend.prepare raises."""
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
        # With a small budget only the instances that the job asks for are created: each one also has to be
        # warmed up, and checked before and after timing.
        budget_s = self.job.budget_s
        quick_s = min(instances.QUICK_S, budget_s / 4) if budget_s >= instances.HURRY_S else 0.0
        self.others, short = instances.create_more(count, nbytes, self.backend.device, room, another, quick_s)
        if short == instances.NO_MEMORY:
            self.close(but=1)
            of = self.mixings.of
            self._timed = instances.Succession(of(first), count, lambda n: of(self._replace_open(another, n)))
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

    def _replace_open(self, another: Callable[[int], Session], number: int) -> Session:
        """Check the timed passes of the open instance, close it, and create instance `number` in its place.
        Raises Incorrect if a pass or the new instance is wrong."""
        with instances.named(number - 1):
            self._check_after(self.first)
        session, self.first = self.first, None
        self.mixings.drop(session)
        session.close()
        self.first = another(number)
        return self.first

    def check_again(self) -> None:
        """Check some timed passes of each open instance, and one more pass over other images. Then close all
        instances but the first. Raises Incorrect if an answer is wrong."""
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
        """As in Contender; the memory that the first instance takes is kept for the record."""
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
        moving = accuracy.moving(self.output, self.bound_precision(), ties.quantizes(self.graph), stored)
        if self._allowed == Allowed.OPTIMISED:  # `warnings` names another cause
            moving = ""
        return [*found, *filter(None, [moving, self.mixings.told and self.mixings.told.told])]

    def failed(self, error: BaseException) -> Measurement:
        """As in Contender; with the layers that were checked and, for Incorrect, the error of the output."""
        if isinstance(error, OnlyRight):
            right = Accuracy(images=0, labelled=False, checked=self.checked, output=self.output)
            return msgspec.structs.replace(super().failed(error), accuracy=right)
        if not isinstance(error, Incorrect):
            return msgspec.structs.replace(super().failed(error), layers=self.recorded.get("layers", ()))
        # The layers that were checked are kept too: a layer can be wrong although the output does not show
        # it.
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
        """The errors of all outputs for the placement's batch."""
        loaded, placed, precision = self.loaded, self.placement, self.bound_precision()

        def judged(answers: Arrays, allowed: Allowed) -> ErrorStats:
            return loaded.check(answers, placed, precision, allowed)

        return self._explained(judged(outputs, self._allowed), judged, placed.inputs, outputs)

    def checked_row(self, inputs: Arrays, outputs: Arrays) -> ErrorStats | None:
        """Compare the outputs for one image of the batch, drawn at random, with float64. inputs, outputs:
        arrays of the whole batch, by name. Returns None if float64 does not judge this batch size (see
        RightAnswers.check_row)."""
        loaded, precision, row = self.loaded, self.bound_precision(), by_image.drawn(self.graph, inputs)

        def judged(answers: Arrays, allowed: Allowed) -> ErrorStats | None:
            return loaded.check_row(inputs, answers, precision, allowed, row)

        found = judged(outputs, self._allowed)
        return found and self._explained(found, judged, inputs, outputs)

    def _explained(
        self,
        stats: ErrorStats,
        judged: Callable[[Arrays, Allowed], ErrorStats | None],
        inputs: Arrays,
        outputs: Arrays,
    ) -> ErrorStats:
        """Find out whether the optimiser of ONNX Runtime caused a wrong answer: then its answer is right
        without optimisation. If so, and the answer is off by no more than one step of each quantised value
        explains, the answer is accepted with a warning. Else it stays wrong, and the reason names the
        optimiser. stats: the errors of the outputs. judged: the errors of other outputs over `inputs`.
        Stats of other backends, or of a right answer, are returned unchanged."""
        if stats.ok or self._allowed != Allowed.LIBRARY or not is_ort(self.backend):
            return stats
        if isinstance(self.backend, Swapping) and not ties.quantizes(self.graph):
            return stats  # a kernel of somebody else's is in it, which may be wrong in some passes alone
        case = self.case
        try:
            plain = self.loaded.unoptimised(self.backend, case.batch, case.precision, self.options, inputs)
        except KernelscopeError:
            return stats
        plain_stats = judged(plain, self._allowed)
        if plain_stats is None or not plain_stats.ok:
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
        """Check some timed passes of the session, or only its last one if the others were not recorded.
        Raises Incorrect if one is wrong."""
        self.mixings.end_turn(session)
        self._check_new(session)
        seen = self.mixings.seen(session)
        if isinstance(session, Witnessed) and (seen or session.stirring is not None):
            self._check_timed(session, session)
        else:
            self._judge(session, "after timing")

    def _check_timed(self, session: Session, timed: Witnessed) -> None:
        """Check timed passes of `session`, drawn at random. Those of the first instance are compared with
        float64, those of others with the first instance. Raises Incorrect. timed: the same session, as a
        Witnessed."""
        first, precision = self.first, self.bound_precision()

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
        timed_pass.check(timed, again, right, precision, factor, most, seen, seconds)

    def _check_new(self, session: Session) -> None:
        """Compare recorded passes over all-new inputs with float64: at least one, and more for
        timed_pass.FLOAT64_S seconds. Raises Incorrect."""
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
        return instances.error_against_first(got, first, self.bound_precision(), accuracy.PROPAGATED_FACTOR)

    def bound_precision(self) -> str:
        """The precision whose error bound the answers must keep, such as "fp32": that of the case, or the
        loosest of all if the backend is lenient (engine.backend.Variant)."""
        lenient = isinstance(self.backend, Variant) and self.backend.lenient
        return accuracy.LOOSEST if lenient else self.case.precision


def references_among(compared: Mapping[str, Backend]) -> dict[str, str]:
    """{key of a backend: key of its reference}, for backends whose reference is another one of `compared`.
    compared: backends by key of their case."""
    keys = {backend.name: key for key, backend in compared.items()}
    found = {key: keys.get(backend.reference, key) for key, backend in compared.items()}
    return {key: other for key, other in found.items() if other != key}
