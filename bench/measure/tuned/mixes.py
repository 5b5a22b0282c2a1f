"""In which precision each product of a model computes, so that a pass is the fastest whose answer's error
stays within a budget (engine.planning.mixed, kernels.precision.within).

The error of an answer is the relative L2 error that a comparison judges answers by, ‖y − right‖ / ‖right‖, of
each output for each image by itself; the largest counts.

1. The whole model in each precision that the device has: what each part takes, and how far the answer is off.
2. Each part alone in a narrower precision, all others in fp32: its share of the answer's error. Parts that
   gain nothing are not looked at. Shares add up as squares, for roundings know nothing of each other.
3. The mixes whose predicted times are least within the budget, and within parts of it, and the precisions
   alone are the variants of one sweep (bench.measure.tuned.sweep). It times them in whole passes, and takes
   the fastest that stays within.
4. What was chosen so on some images is held against float64 on others. If it is beyond the budget there, the
   next fastest takes its place. Last, its tensors' layouts are timed, and it is held against float64 again.

A plan may be off on images that nobody looked at by more than on those: so on the images of the first three
steps, whose right answer is that of fp32, it has to stay within a part of the budget (ROOM).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from bench.measure.answers import by_image, oracle
from bench.measure.loaded_model import ORACLE, LoadedModel
from bench.measure.timing import Rules, answers
from bench.measure.tuned.sweep import DeviceLost, Judge, Looks, Progress, Sweep
from bench.measure.tuned.whole_passes import GAIN
from bench.words import units
from engine.backend import Backend, OpTime, Options, Session
from engine.planning import mixed
from engine.planning.choices import Choice, Tried
from engine.planning.mixed import Mix
from kernels import registry
from kernels.errors import KernelscopeError
from kernels.precision import EXACT, FP32, budget

FINAL = Rules(warmup_s=0.02, rewarm_s=0.005, min_s=0.05, width=0.01, budget_s=0.2)
LOOKS = Looks(final=FINAL, first_s=0.02, worth=GAIN, open=True)
ROOM = 0.8  # of the budget, on the images that are chosen by
IMAGES = 16  # of these at least, in as many passes as it takes
PARTS = 16  # of a model: neighbours are looked at together where it has more products
# Mixes for such parts of the budget; with so much for each change of the precision, of a pass: what is laid
# out anew between two layers is in no layer's time.
BUDGETS, CHANGES = (ROOM, 0.6, 0.4), (0.0, 0.03)
MOST = 6  # mixes that are tried beside the precisions alone
STEPS_S = 0.1  # of the times of all steps of a plan
ALIKE = 1.01  # so many times the least time of a part is as fast
BUCKETS = 400  # into which the budget is parted to look for the fastest mix


@dataclass(frozen=True)
class Subject:
    """What is chosen for: a model on `backend` at a batch size, in a mixed precision. options: without a mix.
    lost: whether the device's context has failed, asked after a fault."""

    backend: Backend
    loaded: LoadedModel
    batch: int
    precision: str
    options: Options
    progress: Progress
    lost: Callable[[], bool] = lambda: False

    @property
    def within(self) -> float:
        """The budget."""
        found = budget(self.precision)
        assert found is not None
        return found

    @property
    def images(self) -> str:
        """The key of the images on which answers are held against float64."""
        return oracle.content_key(self.loaded.graph, self.loaded.golden().inputs)

    def session(self, mix: Mix, timed: bool = True) -> Session:
        """A session with this mix. timed: as it is timed; else only for its answers, which is sooner ready.
        Raises as Backend.prepare."""
        options = replace(self.options, mix=dict(mix), cuda_graph=timed and self.options.cuda_graph)
        return self.backend.prepare(self.loaded.graph, self.batch, self.precision, options)


def wanted(subject: Subject) -> bool:
    """Whether there is something to choose that is not known: no mix was found yet, or the one that was has
    not been held against float64 on this job's images."""
    if len(registry.precisions(subject.backend.device)) < 2:
        return False
    if not mixed.products(subject.loaded.graph, subject.batch):
        return False
    known = _read(subject)
    return known is None or not known.choice.done or subject.images not in known.images


def choose(subject: Subject, lay_out: Callable[[Mix], None] = lambda mix: None) -> Choice[Mix]:
    """Find the mix, keep it, and return the choice. lay_out: times the layouts of a plan with this mix.
    Raises DeviceLost, KernelError where nothing can be kept, what `lay_out` and `progress` raise, and what
    the backend raises in fp32."""
    judge = Budget(subject)
    known = _read(subject)
    choice = known.choice if known is not None else None
    found = [] if choice is not None and choice.done else _variants(subject, judge)
    variants = [*dict.fromkeys([*found, *(tried.variant for tried in (choice.tried if choice else ()))])]
    laid_out: set[Mix] = set()
    while True:
        choice = Sweep(
            variants, subject.session, judge, lambda found: _keep(subject, found), LOOKS,
            f"precisions of {subject.loaded.graph.name}", subject.progress, subject.backend.device, choice,
            name=lambda mix: mixed.words(dict(mix)), lost=subject.lost,
        ).run()  # fmt: skip
        best = choice.best
        if best is None or mixed.only(dict(best)) is not None or best in laid_out:
            break
        laid_out.add(best)
        lay_out(best)
        subject.progress(f"checking {subject.loaded.graph.name}: {mixed.words(dict(best))}", None)
        if not (reason := _beyond(subject, judge, best)):
            break
        choice = msgspec.structs.replace(choice.without(best, reason, strict=False), done=False)
    _keep(subject, choice, (subject.images, *(known.images if known is not None else ())))
    return choice


class Budget(Judge[Mix, Session]):
    """Whether an answer stays within the budget: beside fp32's on images that are chosen by, beside float64's
    on others."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        graph, batch = subject.loaded.graph, subject.batch
        count = batch * (1 if graph.fixed_batch else max(1, -(-IMAGES // batch)))
        every = subject.loaded.unseen(count)
        self.passes = [by_image.cut(graph, every, slice(i, i + batch)) for i in range(0, count, batch)]
        self._fp32: list[dict[str, np.ndarray]] = []

    def right(self, session: Session | None = None) -> Sequence[Mapping[str, np.ndarray]]:
        """What fp32 answers in each pass. session: one of it, where there is one."""
        if not self._fp32:
            graph, batch = self.subject.loaded.graph, self.subject.batch
            if session is not None:
                self._fp32 = [answers(session, inputs) for inputs in self.passes]
            else:
                with closing(self.subject.session(mixed.uniform(graph, batch, FP32))) as own:
                    self._fp32 = [answers(own, inputs) for inputs in self.passes]
        return self._fp32

    def off(self, session: Session) -> float:
        """How far its answer is from fp32's."""
        pairs = zip(self.passes, self.right(), strict=True)
        return max(self._error(answers(session, inputs), right) for inputs, right in pairs)

    def first(self, session: Session, tried: Tried[Mix]) -> Tried[Mix]:
        error = self.off(session)
        reason = ""
        if not math.isfinite(error):
            reason = "its answer has NaN or infinity: a number is beyond what a precision of it holds"
        elif error > ROOM * self.subject.within:
            reason = f"its answer is off by {units.exponent(error)}"
        return msgspec.structs.replace(tried, error=min(error, 1e300), refused=reason)

    def again(self, session: Session) -> tuple[str, str]:
        return self.against_float64(session), ""

    def against_float64(self, session: Session) -> str:
        """Why its answer is beyond the budget on the images that the oracle answers for; "" if it is not."""
        # Each seed puts other images to the first places of a batch that is too small for all of them.
        seeds = range(0, self.subject.loaded.golden().images, self.subject.batch)
        return next(filter(None, (self._against_float64(session, seed) for seed in seeds)), "")

    def _against_float64(self, session: Session, seed: int) -> str:
        subject, loaded = self.subject, self.subject.loaded
        placed = loaded.placement(subject.batch, seed)
        outputs = answers(session, placed.inputs)
        stats = loaded.check(outputs, placed, subject.precision)
        if not stats.ok:
            return stats.reason
        error = stats.rel_l2
        if placed.golden and loaded.judge == ORACLE:
            layout, tensors = loaded.right.layout or {}, loaded.golden().tensors
            golden, rows = list(placed.golden), list(placed.rows)
            error = max(
                error,
                *(
                    _largest(layout[name].rows(array)[rows], layout[name].rows(tensors[name])[golden])
                    for name, array in outputs.items()
                ),
            )
        beside = "float64" if loaded.judge_of(subject.batch) == ORACLE else "ONNX Runtime"
        return "" if error <= subject.within else f"off by {units.exponent(error)} beside {beside}"

    def _error(self, got: Mapping[str, np.ndarray], right: Mapping[str, np.ndarray]) -> float:
        layout = self.subject.loaded.right.layout
        errors = [0.0]
        for name, array in got.items():
            one, other = array, right[name]
            if layout is not None:
                one, other = layout[name].rows(one), layout[name].rows(other)
            else:
                one, other = one[None], other[None]
            errors.append(_largest(one, other))
        return max(errors)


def _largest(got: np.ndarray, right: np.ndarray) -> float:
    """The largest relative L2 error of a row. Whole numbers are right or wrong."""
    if got.dtype.kind in "iub":
        return 0.0 if np.array_equal(got, right) else math.inf
    one, other = (np.asarray(a, np.float64).reshape(len(a), -1) for a in (got, right))
    typical = math.sqrt(float(np.square(other).sum()) / max(1, len(other)))
    lengths = np.linalg.norm(other, axis=1)
    lengths = np.where(lengths > 0, lengths, typical or 1.0)
    with np.errstate(invalid="ignore"):
        errors = np.linalg.norm(one - other, axis=1) / lengths
    return float(np.where(np.isnan(errors), math.inf, errors).max(initial=0.0))


def _beyond(subject: Subject, judge: Budget, mix: Mix) -> str:
    """Why a mix in its layouts is beyond the budget; "" if it is not."""
    try:
        with closing(subject.session(mix)) as session:
            return judge.first(session, Tried(variant=mix)).refused or judge.against_float64(session)
    except (KernelscopeError, MemoryError) as error:
        if subject.lost():
            raise DeviceLost(f"{mixed.words(dict(mix))}: {error}") from error
        return str(error) or type(error).__name__


def _read(subject: Subject) -> mixed.Timed | None:
    return mixed.read(subject.loaded.graph, subject.batch, subject.backend.device, subject.precision)


def _keep(subject: Subject, choice: Choice[Mix], images: Sequence[str] = ()) -> None:
    """images: those on which its best was held against float64; while that still goes on, none."""
    at = (subject.loaded.graph, subject.batch, subject.backend.device, subject.precision)
    mixed.write(*at, mixed.Timed(choice=choice, images=tuple(dict.fromkeys(images))))


# ------------------------------------------------------------------------------------------- which are tried


@dataclass(frozen=True)
class Part:
    """Neighbouring products. nodes: of these; ns: what a pass takes for them and what follows them, by
    precision; shares: of the answer's error, by precision."""

    nodes: tuple[str, ...]
    ns: dict[str, float]
    shares: dict[str, float]


def _variants(subject: Subject, judge: Budget) -> list[Mix]:
    """The precisions alone, fp32 first, and the mixes that promise most; the fastest of these in front of
    the other precisions."""
    graph, batch = subject.loaded.graph, subject.batch
    nodes = mixed.products(graph, batch)
    parts = [
        Part(tuple(map(str, few)), {}, {})
        for few in np.array_split(np.array(nodes, object), min(PARTS, len(nodes)) or 1)
        if len(few)
    ]
    whole: dict[str, float] = {}  # by precision, how far the answer is off
    for precision in registry.precisions(subject.backend.device):
        subject.progress(f"{graph.name} all in {precision}: times and error", None)
        try:
            with closing(subject.session(mixed.uniform(graph, batch, precision))) as session:
                if precision == FP32:
                    judge.right(session)
                whole[precision] = judge.off(session)
                _add_times(parts, precision, session.op_times(STEPS_S))
        except (KernelscopeError, MemoryError) as error:
            if precision == FP32:
                raise
            _told(subject, f"{graph.name} in {precision}", error)
    alone = [mixed.uniform(graph, batch, precision) for precision in whole]
    if any(_best_alone(parts, precision) for precision in whole if whole[precision] <= ROOM * subject.within):
        return [alone[0], *alone[:0:-1]]
    _add_shares(subject, judge, parts, whole)
    found: dict[Mix, float] = {}
    for part_of, change in itertools.product(BUDGETS, CHANGES):
        mix, ns = fastest(parts, part_of * subject.within, change)
        if mix not in alone:
            found.setdefault(mix, ns)
    return [alone[0], *sorted(found, key=lambda mix: found[mix])[:MOST], *alone[:0:-1]]


def _best_alone(parts: Sequence[Part], precision: str) -> bool:
    """Whether no part is faster in another precision."""
    return all(part.ns.get(precision, math.inf) <= ALIKE * min(part.ns.values()) for part in parts if part.ns)


def _add_times(parts: Sequence[Part], precision: str, times: Sequence[OpTime]) -> None:
    """What stands in front of the first product counts for that one."""
    owner = {node: part for part in parts for node in part.nodes}
    at = parts[0] if parts else None
    for time in times:
        at = next((owner[node] for node in time.nodes if node in owner), at)
        if at is not None:
            at.ns[precision] = at.ns.get(precision, 0.0) + time.time_ns


def _add_shares(subject: Subject, judge: Budget, parts: Sequence[Part], whole: Mapping[str, float]) -> None:
    """Of parts that are faster in a narrower precision than in all finer ones that stay within the budget
    there: bf16 gains nothing beside fp16, but where a part's numbers are beyond what fp16 holds. What is as
    exact as fp32 is not looked at part by part."""
    least = subject.within / 10
    narrower = [precision for precision in whole if precision != FP32]
    for number, (part, precision) in enumerate(itertools.product(parts, narrower)):
        finer = [FP32, *(name for name, share in part.shares.items() if share <= subject.within)]
        if not part.ns.get(precision, math.inf) < min(part.ns.get(name, 0.0) for name in finer):
            continue
        if precision in EXACT and whole[precision] <= least:
            part.shares[precision] = whole[precision]
            continue
        named = part.nodes[0] + (f" to {part.nodes[-1]}" if len(part.nodes) > 1 else "")
        what = f"{subject.loaded.graph.name} with {named} in {precision}"
        done = number / (len(parts) * len(narrower))
        subject.progress(what, done)
        mix = tuple((n, precision if n in part.nodes else FP32) for each in parts for n in each.nodes)
        try:
            with closing(subject.session(mix, timed=False)) as session:
                part.shares[precision] = judge.off(session)
        except (KernelscopeError, MemoryError) as error:
            _told(subject, what, error)


def _told(subject: Subject, what: str, error: BaseException) -> None:
    """Raises DeviceLost where nothing more can be tried in this process."""
    subject.progress(f"{what}: left out: {error}", None)
    if subject.lost():
        raise DeviceLost(f"{what}: {error}") from error


def fastest(parts: Sequence[Part], within: float, change: float = 0.0) -> tuple[Mix, float]:
    """The mix that is predicted to be the fastest whose squared shares of the error add up to no more than
    the square of `within`, and nanoseconds of a pass. change: what each change of the precision between two
    parts takes, as a share of a pass in the fastest precisions.

    Every part is gone through once: of all mixes of the parts before it that end in the same precision and
    have used up the same part of the budget (in BUCKETS, rounded up), the fastest is kept."""
    change_ns = change * sum(min(part.ns.values()) for part in parts if part.ns)
    kept: dict[tuple[int, str], tuple[float, tuple[str, ...]]] = {(0, ""): (0.0, ())}
    for part in parts:
        more: dict[tuple[int, str], tuple[float, tuple[str, ...]]] = {}
        for ((used, last), (ns, names)), precision in itertools.product(
            kept.items(), [FP32, *(p for p in part.shares if p != FP32)]
        ):
            share = part.shares.get(precision, 0.0)
            now = used + math.ceil(min(BUCKETS + 1.0, BUCKETS * (share / within) ** 2) - 1e-9)
            taken = ns + part.ns.get(precision, 0.0) + change_ns * (bool(last) and last != precision)
            if now <= BUCKETS and taken < more.get((now, precision), (math.inf, ()))[0]:
                more[now, precision] = taken, (*names, precision)
        kept = more
    ns, names = min(kept.values())
    mix = tuple(
        (node, precision) for part, precision in zip(parts, names, strict=True) for node in part.nodes
    )
    return mix, ns
