"""`ladder --tune`: the values that a rung's header lists under `[tune]`, tried on the params at hand, and the
fastest right ones kept for this device.

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
from bench.ladder.records import LadderJob
from engine.planning import tuned_defines
from engine.planning.tuned_defines import Found
from kernels.errors import KernelscopeError
from kernels.ops import Params
from kernels.registry import Rung

Progress = Callable[[str, float | None], None]

ALL = 48  # combinations that are all tried
WORTH = 1.02  # by which another has to be faster than the header's own
SHARE = 0.5  # of a rung's time limit
_TRAIN_NS, _SAMPLES = 1_000_000, 5


def tune(rung: Rung, params: Params, job: LadderJob, precision: str, progress: Progress) -> None:
    """Search and keep, unless this was found before. Raises KernelError where it cannot be kept."""
    if not rung.tune or tuned_defines.read(rung, params) is not None:
        return
    end = time.monotonic() + SHARE * job.timeout_s
    own = {name: int(rung.defines[name]) for name in rung.tune}
    times: dict[tuple[int, ...], float] = {}
    search = _Search(rung.tune, own, times)
    for tried in search:
        progress(f"tuning {rung.label}: {len(times) + 1} tried", None)
        times[tuple(tried.values())] = _time_ns(rung, params, job, precision, tried)
        if time.monotonic() > end:
            break
    best, own_ns = min(times, key=times.__getitem__), times[tuple(own.values())]
    if not own_ns < math.inf:
        return  # the rung's own fault, which its measurement tells
    if times[best] * WORTH >= own_ns:
        best = tuple(own.values())
    refused = sum(math.isinf(ns) for ns in times.values())
    found = Found(dict(zip(own, best, strict=True)), len(times), refused, own_ns / times[best])
    tuned_defines.keep(rung, params, found)


class _Search:
    """The combinations to try, the own first; `times` is filled between two of them."""

    def __init__(
        self,
        axes: Mapping[str, tuple[int, ...]],
        own: dict[str, int],
        times: Mapping[tuple[int, ...], float],
    ) -> None:
        self._axes = dict(axes)
        self._own, self._times = own, times

    def __iter__(self) -> Iterator[dict[str, int]]:
        yield self._own
        if math.prod(map(len, self._axes.values())) <= ALL:
            for values in itertools.product(*self._axes.values()):
                if values not in self._times:
                    yield dict(zip(self._axes, values, strict=True))
            return
        at = self._own
        while True:
            before = at
            for name, values in self._axes.items():
                for value in values:
                    if tuple((tried := at | {name: value}).values()) not in self._times:
                        yield tried
                        if len(self._times) >= ALL:
                            return
                at = min((at | {name: value} for value in values), key=self._taken)
            if at == before:
                return

    def _taken(self, tried: dict[str, int]) -> float:
        return self._times[tuple(tried.values())]


def _time_ns(rung: Rung, params: Params, job: LadderJob, precision: str, defines: dict[str, int]) -> float:
    """Of a pass, the fastest of a few trains; infinity where this is none that can be taken."""
    variant = tuned_defines.with_defines(rung, defines)
    try:
        with judge.examine(
            variant, params, precision, seed=job.seed, threads=job.threads, quick=True
        ) as trial:
            one = max(trial.time_runs(1), 1)
            count = max(1, min(200, round(_TRAIN_NS / one)))
            trial.time_runs(count)
            return min(trial.time_runs(count) / count for _ in range(_SAMPLES))
    except (judge.Wrong, KernelscopeError):
        return math.inf
