"""`ladder --tune`: the values that a rung's header lists under `[tune]`, tried on the params at hand, and the
fastest right ones kept for this device (bench.measure.tuned.sweep).

Few combinations are all tried; of many the neighbours along one axis after the other, from the header's own
on, until none is faster (as Kernel Tuner's greedy search does). Each is judged like any rung before it is
timed: one that is wrong, or does not compile or launch, is passed over.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping

from bench import judge
from bench.judge.trial import Trial
from bench.measure.timing import Rules
from bench.measure.tuned.sweep import Judge, Looks, Progress, Sweep
from bench.results.ladder_records import LadderJob
from engine.planning import tuned_defines
from engine.planning.tuned_defines import Values
from kernels.errors import KernelError
from kernels.ops import Params
from kernels.registry import Rung

ALL = 48  # combinations that are all tried
SHARE = 0.5  # of a rung's time limit
# Another has to be a fiftieth faster than the header's own.
FINAL = Rules(warmup_s=0.005, rewarm_s=0.002, rounds=3, min_s=0.015, width=0.02, budget_s=0.1)
LOOKS = Looks(final=FINAL, first_s=0.005, worth=0.02, default=True, open=True)


def tune(
    rung: Rung,
    params: Params,
    job: LadderJob,
    precision: str,
    progress: Progress,
    examine: Callable[..., Trial] = judge.examine,
    looks: Looks | None = None,
) -> None:
    """Search and keep, unless this was found before. Raises KernelError where it cannot be kept."""
    known = tuned_defines.read(rung, params)
    if not rung.tune or (known is not None and known.done):
        return
    own = tuple(int(rung.defines[name]) for name in rung.tune)
    every = [own, *(values for values in itertools.product(*rung.tune.values()) if values != own)]

    def prepare(values: Values) -> Trial:
        made = tuned_defines.with_defines(rung, dict(zip(rung.tune, values, strict=True)))
        try:
            return examine(made, params, precision, seed=job.seed, threads=job.threads, quick=True)
        except judge.Wrong as error:
            raise KernelError(str(error)) from error

    search = _Search(rung.tune, every, time.monotonic() + SHARE * job.timeout_s)
    search.sweep = Sweep(
        every,
        prepare,
        Judge[Values, Trial](),
        lambda choice: tuned_defines.keep(rung, params, choice),
        looks or LOOKS,
        f"{rung.label}'s defines",
        progress,
        tuned_defines.DEVICE,
        known,
        order=search,
        name=lambda values: ", ".join(f"{n} {v}" for n, v in zip(rung.tune, values, strict=True)),
    )
    if (tried := search.sweep.run().of(own)) is None or tried.refused:
        tuned_defines.forget(rung, params)  # the rung's own fault, which its measurement tells


class _Search:
    """The combinations to try, in order: the own first. end: on the monotonic clock. sweep: what came of each
    so far."""

    sweep: Sweep[Values, Trial]

    def __init__(self, axes: Mapping[str, Values], every: list[Values], end: float) -> None:
        self._axes, self._every, self._end = [*axes.values()], every, end

    def __iter__(self) -> Iterator[Values]:
        neighbours = self._every if len(self._every) <= ALL else self._neighbours()
        for values in neighbours:
            if len(self.sweep.choice.tried) >= ALL or time.monotonic() > self._end:
                return
            yield values

    def _neighbours(self) -> Iterator[Values]:
        at, before = self._every[0], None
        yield at
        while at != before:
            before = at
            for place, values in enumerate(self._axes):
                line = [(*at[:place], value, *at[place + 1 :]) for value in values]
                yield from (tried for tried in line if self.sweep.choice.of(tried) is None)
                at = min(line, key=self._ns)

    def _ns(self, values: Values) -> float:
        tried = self.sweep.choice.of(values)
        return math.inf if tried is None or tried.refused else tried.ns or math.inf
