"""Is a rung right, and if not, what is wrong and where.

A rung is tried on small shapes that each turn on one thing (a bias, a stride, a group, a batch, odd sizes),
then on the shape that it is timed at: inputs drawn anew each time, output and workspace poisoned before,
sentinels round every buffer, inputs looked at afterwards, each pass made twice on different poison, and all
of it held against the float64 oracle. Which shapes fail, and which mistake gives the very answer that was
got, names it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from bench.judge import diagnosis
from bench.judge.pictures import pictures
from bench.judge.suite import Shape, small_shapes
from bench.judge.trial import Failure, Trial
from bench.ladder.records import Finding
from kernels.params import Params
from kernels.registry import Rung

__all__ = ["Failure", "Trial", "Wrong", "examine"]

# What a tag of the suite means where it alone fails.
_TAGS = {
    "batch": ("batch_one_only", "right at batch 1, and wrong at every larger batch"),
    "bias": ("bias", "wrong only where there is a bias"),
    "pad": ("pad", "wrong only where there is padding"),
    "stride": ("stride", "wrong only where the stride is above 1"),
    "strides": ("stride", "wrong only where the two strides differ"),
    "dilation": ("dilation", "wrong only where the kernel is dilated"),
    "group": ("group", "wrong only where there are groups"),
    "activation": ("activation", "wrong only where there is an activation"),
    "kernel": ("kernel", "wrong only where the kernel's height and width differ"),
}


class Wrong(Exception):
    """A rung's answer is wrong; carries the finding and the error map (None: there is nothing to map)."""

    def __init__(
        self, finding: Finding, error_map: np.ndarray | None = None, failure: Failure | None = None
    ) -> None:
        super().__init__(finding.reason)
        self.finding = finding
        self.error_map = error_map
        self._failure = failure

    def pictures(self) -> dict[str, np.ndarray]:
        """What to keep of the answer, as bench.judge.pictures has it; of less the error map alone, or
        nothing."""
        if self._failure is not None:
            return pictures(self._failure)
        return {} if self.error_map is None else {"error_map": self.error_map}


def examine(
    rung: Rung,
    params: Params,
    precision: str = "fp32",
    *,
    seed: int = 0,
    threads: int | None = None,
    quick: bool = False,
) -> Trial:
    """The rung's trial on `params`, its session open, once it has passed every shape. Raises Wrong with the
    finding; UnsupportedError, KernelError and OutOfMemoryError as engine.rung_session.prepare does.

    quick: only the shapes that say most.
    """
    failures = []
    for index, shape in enumerate(small_shapes(rung, params, quick)):
        # One thread: a small shape is not worth dividing, and what a rung writes is then its own doing.
        with Trial(rung, shape.params, precision, seed=seed + 17 * index, threads=1) as trial:
            for _ in range(2):
                if failure := trial.check("before timing"):
                    failures.append((shape, failure))
                    break
    if failures and quick:  # it is wrong: now take the time to say what it is
        examine(rung, params, precision, seed=seed, threads=threads).close()
    if failures:
        raise _named(failures, rung, precision)
    trial = Trial(rung, params, precision, seed=seed, threads=threads)
    try:
        if failure := trial.check("before timing"):
            raise _named([(Shape("full size", params), failure)], rung, precision)
    except BaseException:
        trial.close()
        raise
    return trial


def _named(failures: Sequence[tuple[Shape, Failure]], rung: Rung, precision: str) -> Wrong:
    """The finding that says most: a mechanical fault, else the mistake that explains an answer, else the one
    thing that all failing shapes have in common."""
    for _, failure in failures:
        if failure.finding.fault != "wrong":
            return Wrong(failure.finding, failure.error_map, failure)
    for shape, failure in failures:
        if shape.params.op == "conv" and (found := diagnosis.explain(failure, precision)):
            return _with(failure, *found)
    for _, failure in failures:
        if found := diagnosis.general(failure, precision):
            return _with(failure, *found)
    tags = {shape.tag for shape, _ in failures if shape.tag != "all"}
    if len(tags) == 1 and (found := _TAGS.get(next(iter(tags)))):
        failure = next(failure for shape, failure in failures if shape.tag in tags)
        return _with(failure, *found)
    failure = failures[0][1]
    return Wrong(failure.finding, failure.error_map, failure)


def _with(failure: Failure, fault: str, words: str) -> Wrong:
    finding = failure.finding
    reason = f"{words}; {finding.reason}"
    return Wrong(msgspec.structs.replace(finding, fault=fault, reason=reason), failure.error_map, failure)
