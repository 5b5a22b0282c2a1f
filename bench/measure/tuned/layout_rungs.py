"""Which rungs are faster than those chosen alone in the layouts that a plan's tensors travel in.

Alone a rung is timed on tensors as models have them (bench.measure.tuned.rungs), where most lay their input
out first; within a layout that is spared some of them and not others, which turns their order round. So the
few that were nearly the fastest alone and can do a step in its layouts are timed in the plan: all steps have
their second rung at once, then all their third, and so on, for a session a step would take too long. Of each
step the fastest is taken, if it is right alone in every image, and all of these are kept where a pass is
faster with them.

In a train of one step its weights lie in the cache; a pass of a net whose weights have no room there finds
them in memory, and of a short pass that is a part that shows. So what was nearly as fast as a step's own rung
is tried in a whole pass, one after the other, and kept where that is faster.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from bench.measure.answers.batch_check import BatchCheck
from bench.measure.answers.samples import repeated
from bench.measure.timing import answers
from bench.measure.tuned.rungs import FADES
from bench.measure.tuned.sweep import UNTRIED, DeviceLost, Progress
from bench.measure.tuned.whole_passes import GAIN, agree, pass_ns
from bench.words import units
from engine import rung_devices
from engine.backend import Backend, OpTime, Options, Session
from engine.graph.graph import Graph
from engine.graph.plan import Plan, Step
from engine.planning import choices, layouts
from engine.planning.layouts import LayoutRung, Tried
from kernels.errors import KernelscopeError
from kernels.ops import Params
from kernels.registry import Rung

MOST = 2  # rungs of a step that are tried beside its own: each costs a session of the whole net
FACTOR = 2.0  # so many times as slow as the fastest alone: no layout makes up for that
CLEAR = 0.02  # a rung that gains less on the step's own is not taken: that is noise
STEPS_S = 0.15  # of the times of all steps of a plan
# In a whole pass: rungs so many times as slow in their layouts, this many of them, where a pass is no longer.
# Sessions of the same plan differ by a hundredth, so that more is asked of a gain.
NEAR, TRIES, SHORT_NS, WORTH = 1.2, 6, 300e3, 0.02

Compile = Callable[[Sequence[Step]], None]


def rivals(plan: Plan, step: Step, options: Options) -> tuple[str, ...]:
    """Rungs that may be faster than its own for a step in its layouts, by their times alone: the fastest
    first. None where those are not known."""
    able = {rung.name for rung in layouts.able_rungs(plan, step)} - {step.rung}
    if not able:
        return ()
    rungs = layouts.candidates(plan, step)
    at = (plan.device, step.params, step.asked, rungs, options.threads)
    kept = choices.read(*at)
    if kept is None or not kept.done:
        return ()
    times = {t.variant: ns for t in kept.tried if not t.refused and (ns := t.ns)}
    best = min(times.values(), default=0.0)
    # Of one that was not tried it is known what it took at a batch size near this one.
    paces = choices.nearby(*at)
    untried = {t.variant for t in kept.tried if t.refused == UNTRIED and t.variant in paces}
    times |= {name: best * paces[name] / FADES for name in untried}
    near = sorted((ns, name) for name, ns in times.items() if name in able and ns <= FACTOR * best)
    return tuple(name for _, name in near[:MOST])


def wrong(params: Params, rung: Rung, precision: str, threads: int | None) -> str:
    """Where a rung's answer alone is, looked at in every image, as of those that are taken alone
    (bench.measure.tuned.rungs); "" where it is right."""
    try:
        sample = repeated(params)
        with closing(rung_devices.prepare(rung, params, sample.given(params), threads)) as session:
            return BatchCheck(params, sample, precision).everywhere(session)
    except (KernelscopeError, MemoryError) as error:
        return str(error) or type(error).__name__


@dataclass
class LayoutRungs:
    """Of a plan without layouts in the way that options.layouts says. right: what a pass over `inputs`
    answers, None where that is what the steps' own rungs do. compile_ahead: has the kernels of steps compiled
    side by side. lost: whether the device's context has failed, asked after a fault."""

    backend: Backend
    graph: Graph
    plan: Plan
    options: Options
    inputs: Mapping[str, np.ndarray]
    right: Mapping[str, np.ndarray] | None
    progress: Progress
    compile_ahead: Compile | None = None
    lost: Callable[[], bool] = lambda: False
    _steps: tuple[Step, ...] = ()
    _times: dict[tuple[int, str], float] = field(default_factory=dict)  # by place and rung
    _refused: dict[tuple[int, str], str] = field(default_factory=dict)
    _judged: dict[tuple[int, str], bool] = field(default_factory=dict)
    _kept_session: Session | None = None

    @property
    def tried(self) -> tuple[Tried, ...]:
        """All rungs that were looked at, with their times or why they have none, and each step's own."""
        refused = {at: why for at, why in self._refused.items() if at not in self._times}
        found = [Tried(place=place, rung=rung, time_ns=ns) for (place, rung), ns in self._times.items()]
        found += [Tried(place=place, rung=rung, refused=why) for (place, rung), why in refused.items()]
        rivals_at = {each.place for each in found if each.rung != self._steps[each.place].rung}
        return tuple(
            sorted((t for t in found if t.place in rivals_at), key=lambda t: (t.place, t.time_ns or math.inf))
        )

    def faster(self) -> tuple[LayoutRung, ...]:
        """What a pass is faster with; nothing where it is not. Raises DeviceLost, and what `progress`
        raises."""
        self._steps = layouts.in_way(self.plan, self.options.layouts, self.options)
        others = {i: rivals(self.plan, step, self.options) for i, step in enumerate(self._steps)}
        most = max(map(len, others.values()), default=0)
        if not most:
            return ()
        variants: list[dict[int, str]] = [{}]
        variants += [{i: names[k] for i, names in others.items() if k < len(names)} for k in range(most)]
        self._compile(variants)
        for number, variant in enumerate(variants):
            words = f"kernels in the layouts of {self.graph.name}, {number + 1} of {len(variants)}"
            self.progress(words, number / len(variants))
            try:
                self._time_steps(variant)
            except (KernelscopeError, MemoryError) as error:
                self._refused.update({at: str(error) for at in variant.items()})
                self._told(f"{words}: left out", error)
                if not variant:
                    return ()  # there is nothing to hold the others against
        return self._in_passes([t for t in self._taken() if self._right(t.place, t.rung)])

    def _compile(self, variants: Sequence[Mapping[int, str]]) -> None:
        """All their kernels: one after the other they would take longer than all the rest."""
        if self.compile_ahead is None:
            return
        made = (layouts.with_rungs(self.plan, self._steps, variant) for variant in variants)
        with contextlib.suppress(KernelscopeError):  # it is told where a session is prepared
            self.compile_ahead([step for steps in made for step in steps])

    def _time_steps(self, variant: Mapping[int, str]) -> None:
        """Each alone, none of them beginning before the one in front has ended."""
        with self._checked(variant, early=False) as session:
            times = session.op_times(STEPS_S)
        if len(times) != len(self._steps):
            return
        for place, step in enumerate(self._steps):
            self._note(place, variant.get(place, step.rung), times[place])
        for place, rung in variant.items():
            if (place, rung) not in self._times:
                self._refused[place, rung] = f"{times[place].rung} ran in its place"

    def _note(self, place: int, rung: str, time: OpTime) -> None:
        # What ran otherwise, as a part of one kernel for several steps, says nothing of the rung.
        if time.rung == rung:
            before = self._times.get((place, rung), time.time_ns)
            self._times[place, rung] = min(before, time.time_ns)

    def _taken(self) -> tuple[LayoutRung, ...]:
        """Of the steps for which another rung is the fastest."""
        found = []
        for place, step in enumerate(self._steps):
            times = {rung: ns for (at, rung), ns in self._times.items() if at == place}
            own_ns = times.get(step.rung)
            if own_ns is None:
                continue
            best = min(times, key=lambda rung: times[rung])
            if times[best] < (1 - CLEAR) * own_ns:
                found.append(self._better(place, best, times[best], own_ns))
        return tuple(found)

    def _better(self, place: int, rung: str, ns: float, own_ns: float, whole: bool = False) -> LayoutRung:
        step = self._steps[place]
        return LayoutRung(
            place=place,
            reads=step.reads,
            writes=step.writes,
            rung=rung,
            time_ns=ns,
            own=step.rung,
            own_ns=own_ns,
            whole=whole,
        )

    def _right(self, place: int, name: str) -> bool:
        """Whether a rung is right alone, too, looked at once: by a whole net's answer not every fault
        shows."""
        step = self._steps[place]
        if (place, name) not in self._judged:
            rung = next(r for r in layouts.able_rungs(self.plan, step) if r.name == name)
            self.progress(f"checking {step.name}'s kernel in full: {name}", None)
            reason = wrong(step.params, rung, step.asked, self.options.threads)
            self._judged[place, name] = not reason
            if reason:
                self._refused[place, name] = reason
                self._times.pop((place, name), None)
                self._told(f"{step.name} keeps its kernel, for {name} is wrong", reason)
        return self._judged[place, name]

    def _near(self, found: Mapping[int, LayoutRung]) -> list[tuple[int, str]]:
        """Places and rungs that were nearly as fast as the one that a step has, those that were nearest
        first."""
        near = []
        for (place, rung), ns in self._times.items():
            has = found[place].rung if place in found else self._steps[place].rung
            pace = ns / self._times.get((place, has), math.inf)
            if rung != has and 0 < pace <= NEAR:
                near.append((pace, place, rung))
        return [(place, rung) for _, place, rung in sorted(near)[:TRIES]]

    def _in_passes(self, taken: Sequence[LayoutRung]) -> tuple[LayoutRung, ...]:
        """What a pass is faster with: all of these together; then, where a pass is short, one after the other
        what is nearly as fast as the rung that a step has."""
        kept: dict[int, LayoutRung] = {}
        with ExitStack() as opened:
            if taken and self._gain(opened, kept, {better.place: better.rung for better in taken}, GAIN):
                kept = {better.place: better for better in taken}
            for place, rung in self._near(kept) if self._short(opened, kept) else ():
                if (times := self._gain(opened, kept, {place: rung}, WORTH)) is not None:
                    kept[place] = self._better(place, rung, *times, whole=True)
        return tuple(kept[place] for place in sorted(kept))

    def _short(self, opened: ExitStack, kept: Mapping[int, LayoutRung]) -> bool:
        """Whether a pass is so short that what memory takes shows."""
        try:
            return bool(self._near(kept)) and pass_ns(self._as_kept(opened, kept))[0] <= SHORT_NS
        except (KernelscopeError, MemoryError) as error:
            self._told(f"{self.graph.name} keeps the kernels that it has", error)
            return False

    def _as_kept(self, opened: ExitStack, kept: Mapping[int, LayoutRung]) -> Session:
        """The session that others are held against, opened once. Raises as `_checked`."""
        if self._kept_session is None:
            rungs = {place: better.rung for place, better in kept.items()}
            self._kept_session = opened.enter_context(self._checked(rungs))
        return self._kept_session

    def _gain(
        self, opened: ExitStack, kept: Mapping[int, LayoutRung], more: Mapping[int, str], worth: float
    ) -> tuple[float, float] | None:
        """Nanoseconds of a pass with and without `more`, rungs by their places, in place of those that steps
        have; None where it is not faster so by `worth`, or one of them is wrong. Its session is then the one
        that others are held against."""
        has = {place: kept[place].rung if place in kept else self._steps[place].rung for place in more}
        exchanged = ", ".join(f"{self._steps[at].name} {rung} for {has[at]}" for at, rung in more.items())
        words = f"a pass of {self.graph.name} with {exchanged}"
        self.progress(words, None)
        with ExitStack() as trying:
            try:
                own = self._as_kept(opened, kept)
                rungs = {place: better.rung for place, better in kept.items()} | {**more}
                other = trying.enter_context(self._checked(rungs))
                own_ns, other_ns = pass_ns(own, other)
            except (KernelscopeError, MemoryError) as error:
                self._refused.update({at: str(error) for at in more.items()})
                self._told(f"{words}: left out", error)
                return None
            gains = other_ns < (1 - worth) * own_ns
            figures = f"{units.duration(other_ns)}, {units.duration(own_ns)} without"
            self.progress(f"{words}: {figures}{'' if gains else ', not kept'}", None)
            if not gains or not all(self._right(place, rung) for place, rung in more.items()):
                return None
            self._kept_session = other
            opened.push(trying.pop_all())
            return other_ns, own_ns

    def _told(self, words: str, error: object) -> None:
        """Raises DeviceLost where nothing more can be tried in this process."""
        self.progress(f"{words}: {error}", None)
        if self.lost():
            raise DeviceLost(f"{words}: {error}")

    @contextmanager
    def _checked(self, rungs: Mapping[int, str], early: bool = True) -> Iterator[Session]:
        """A session with these rungs by their places, once it has answered as without layouts. Raises
        KernelscopeError."""
        how = replace(self.options, layout_rungs=rungs, early=early and self.options.early)
        with closing(self.backend.prepare(self.graph, self.plan.batch, self.plan.precision, how)) as session:
            given = answers(session, self.inputs)
            if self.right is None:
                self.right = given
            elif not agree(given, self.right, self.plan.precision):
                raise KernelscopeError("other answers than without layouts")
            yield session
