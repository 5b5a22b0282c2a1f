"""Is a rung right, and if not, what is wrong and where?

A rung is tried on small shapes, each of which adds one thing (a bias, a stride, a group, a batch, odd sizes),
and then on the shape on which it is timed. Each time the inputs are new, the output and the workspace are
filled with NaN before, guard values lie around every buffer, the inputs are compared afterwards, each pass is
made twice with different fillings, and everything is compared with the float64 oracle. If one known mistake
gives exactly the wrong answers on all shapes that failed, the finding names it. Otherwise it says where the
answers are wrong, on how many shapes, and by how much.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from bench.judge import diagnosis, digits, narrow_digits, places, tried_shape
from bench.judge.failure import Failure, Wrong
from bench.judge.judged_session import LARGE_NBYTES
from bench.judge.trial import Trial
from bench.measure.answers import of_tasks
from bench.measure.answers.comparison import bound_of, direct
from bench.measure.answers.samples import Sample, small_shapes
from engine.rung_rows import same_bytes
from kernels.ops import METHODS, Params, Shape
from kernels.precision import narrow
from kernels.registry import Rung
from kernels.tasks import TaskParams

__all__ = ["Failure", "Trial", "Wrong", "examine"]

TELLING = 16  # elements; fewer can be something by chance
# Faults that are seen rather than concluded, the worst first: any one of them is told, whatever else is
# wrong.
_SEEN = (
    "stray_write",
    "outside",
    "input_written",
    "barrier",
    "unwritten",
    "race",
    "uninitialised",
    "stopped",
    "endless",
)


def examine(
    rung: Rung,
    params: Params,
    precision: str = "fp32",
    *,
    seed: int = 0,
    threads: int | None = None,
    quick: bool = False,
    simulated: bool | str = False,
) -> Trial:
    """The rung's trial on `params`, its session open, once it has passed every shape. Raises Wrong with the
    finding; UnsupportedError, KernelError and OutOfMemoryError as engine.rung_devices.prepare does.

    quick: only the shapes that say most. simulated: a CUDA kernel runs without a GPU, compiled for this
    architecture ("sm_90") or the usual one (True); UnsupportedError where it cannot.
    """
    make = functools.partial(Trial, simulated=simulated)
    failures: list[tuple[Shape, Failure]] = []
    passed: list[tuple[Shape, Sample]] = []
    for index, shape in enumerate(small_shapes(rung, params, quick)):
        # One thread: a small shape is not worth dividing, and what a rung writes is then its own doing.
        with make(rung, shape.params, precision, seed=seed + 17 * index, threads=1) as trial:
            for half in ("", of_tasks.HALVES[index % 2] if isinstance(shape.params, TaskParams) else ""):
                if failure := trial.check("before timing", sample := trial.fresh(half)):
                    failures.append((shape, failure))
                    if failure.finding.fault == "endless":  # it would go on for as long on every shape
                        raise Wrong(failure.finding, failure.error_map, failure)
                    break
            else:
                passed.append((shape, sample))
    told = rung.method == "split" and precision == "fp32"
    if not failures and (told or direct(params, precision, rung.method)):
        _all_digits(rung, params, seed, threads, make)
    if not failures and narrow(rung.precision) and (precision, rung.method) == (rung.precision, METHODS[0]):
        _all_roundings(rung, params, seed, threads, make)
    if failures and quick:  # it is wrong: now take the time to say what it is
        examine(rung, params, precision, seed=seed, threads=threads, simulated=simulated).close()
    if failures:
        raise _named(failures, passed, precision)
    trial = make(rung, params, precision, seed=seed, threads=threads)
    try:
        if failure := trial.check("before timing"):
            raise _named([(Shape("full size", params), failure)], passed, precision)
    except BaseException:
        trial.close()
        raise
    return trial


def _all_digits(
    rung: Rung, params: Params, seed: int, threads: int | None, make: Callable[..., Trial]
) -> None:
    """Raises Wrong where it holds fewer bits than float32 has, or than two parts of it have: on the first
    small shape that shows it, and on the one that is timed, where it might be another."""
    random = np.random.default_rng(seed + 1)
    for shapes in _telling(rung, params, threads):
        for p, cores in shapes:
            told = list(digits.samples(p, random))
            for which, sample in told:
                with make(rung, p, "fp32", seed=seed, threads=cores, given=sample) as trial:
                    if failure := trial.check_digits(which):
                        raise Wrong(failure.finding, failure.error_map, failure)
            if told:
                break


def _all_roundings(
    rung: Rung, params: Params, seed: int, threads: int | None, make: Callable[..., Trial]
) -> None:
    """Raises Wrong where a rung in 16 bits cuts its factors or keeps its sums in fewer bits than float32's:
    on the shapes of `_all_digits`."""
    random = np.random.default_rng(seed + 2)
    for shapes in _telling(rung, params, threads):
        for p, cores in shapes:
            told = list(narrow_digits.probes(p, narrow(rung.precision), random))
            for probe in told:
                with make(rung, p, rung.precision, seed=seed, threads=cores, given=probe.sample) as trial:
                    if failure := trial.check_rounding(probe):
                        raise Wrong(failure.finding, failure.error_map, failure)
            if told:
                break


def _telling(rung: Rung, params: Params, threads: int | None) -> Sequence[list[tuple[Params, int | None]]]:
    """The small shapes, and the one that is timed where it is not large, with the threads of each."""
    small: list[tuple[Params, int | None]] = [(shape.params, 1) for shape in small_shapes(rung, params)]
    return small, [(params, threads)] if params.nbytes <= LARGE_NBYTES else []


def _named(
    failures: Sequence[tuple[Shape, Failure]], passed: Sequence[tuple[Shape, Sample]], precision: str
) -> Wrong:
    """The finding that says most: a fault that was seen, else what explains all failures, else where they
    are."""
    found = [failure for _, failure in failures]
    for fault in _SEEN:
        if seen := [failure for failure in found if failure.finding.fault == fault]:
            return Wrong(seen[0].finding, seen[0].error_map, seen[0])
    first = next((f for f in found if f.finding.fault == "wrong" and f.got.size >= TELLING), found[0])
    if stale := _remembered(found):
        return Wrong(stale.finding, stale.error_map, stale)
    right = [(shape.params, sample) for shape, sample in passed]
    errors = [failure.finding.error for failure in found]
    if all(
        e is not None and e.rel_l2 <= bound_of(f.params, precision)
        for e, f in zip(errors, found, strict=True)
    ):
        worst = max((e for e in errors if e is not None), key=lambda e: e.rel_l2 / e.bound)
        reason = (
            f"rounds more than direct float32 does: a relative L2 error of {worst.rel_l2:.1e}, of which "
            f"{worst.bound:.1e} are allowed; a method that rounds more is said in the header (method)"
        )
        return _with(first, "digits", reason)
    if all(failure.sample.half for failure in found):  # an answer to such numbers is many mistakes' at once
        halves = " or ".join(sorted({failure.sample.half for failure in found}))
        said = f"right where numbers are from all of their range, wrong where all are from its {halves} half"
        return _with(first, "wrong", said)
    if told := diagnosis.explain(found, right, precision):
        return _with(first, *told)
    if broken := [failure for failure in found if failure.finding.fault == "nan"]:
        return Wrong(broken[0].finding, broken[0].error_map, broken[0])
    cases = [tried_shape.case(f.params, f.sample, f.got, precision) for f in found]
    tried = len(failures) + len(passed)
    on = f"on all {tried} shapes" if not passed else f"on {len(failures)} of {tried} shapes"
    off = max(f.finding.error.rel_l2 for f in found if f.finding.error is not None)
    p = first.params
    whole = p.exact if isinstance(p, TaskParams) else np.dtype(p.out_dtype).kind in "iub"
    extent = f"wrong {on} tried" + (f", by a relative L2 error of up to {off:.1e}" if not whole else "")
    if told := places.where(cases, [shape.params for shape, _ in passed]):
        return _with(first, told[0], f"{told[1]}; {extent}")
    return _with(first, "wrong", extent)


def _remembered(found: Sequence[Failure]) -> Failure | None:
    """The failure to show where all answers are of inputs that came before: of the pass before, as was seen,
    or, on a device, which keeps what a kernel remembers from one shape to the next, of a shape before."""
    stale = [failure for failure in found if failure.finding.fault == "stale"]
    if max((failure.got.size for failure in stale), default=0) < TELLING:
        return None
    held = [failure.got.reshape(-1) for failure in stale]

    def known(got: np.ndarray) -> bool:
        return any(
            (size := min(len(before), got.size)) >= TELLING
            and same_bytes(before[:size], got.reshape(-1)[:size])
            for before in held
        )

    if all(failure.finding.fault == "stale" or known(failure.got) for failure in found):
        return max(stale, key=lambda failure: failure.got.size)
    return None


def _with(failure: Failure, fault: str, words: str) -> Wrong:
    finding = failure.finding
    reason = f"{words}; {failure.where}"
    return Wrong(msgspec.structs.replace(finding, fault=fault, reason=reason), failure.error_map, failure)
