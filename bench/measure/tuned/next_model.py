"""A model of a run, and what can be done for the next one before its turn comes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence

from bench.measure import cases
from bench.measure.loaded_model import LoadedModel, Progress
from bench.measure.tuned import tuning
from bench.results.records import Job
from kernels.errors import KernelscopeError


def load(members: Sequence[cases.Group], job: Job, progress: Progress) -> LoadedModel:
    """The model of these groups of cases. Raises as LoadedModel does."""
    batches = tuple(case.batch for group in members for case in group)
    compared = {case.backend for group in members for case in group}
    return LoadedModel(members[0][0].model, job, batches, progress, compared)


def make_ready(members: Sequence[cases.Group], job: Job, go_on: Callable[[], None]) -> None:
    """Its file built, its kernels compiled, and what they are judged by worked out, beside what is done for
    another: of our own models alone, for a file from elsewhere is read where its cases answer for it. What
    goes wrong is told when its turn has come. Raises what `go_on` raises, which is asked now and then."""
    every = itertools.chain.from_iterable(members)
    first = next((case for case in every if tuning.compiles(case, job)), None)
    if first is None or cases.model_spec(first.model, job).path is not None:
        return

    def progress(text: str, fraction: float | None) -> None:
        go_on()

    with contextlib.suppress(KernelscopeError, MemoryError):
        tuning.make_ready(first, load(members, job, progress), job, progress)
