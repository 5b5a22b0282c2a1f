"""A model of a run, and what can be done for the next one before its turn comes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from bench.measure import cases
from bench.measure.loaded_model import LoadedModel, Progress
from bench.measure.tuned import tuning
from bench.results.records import Case, Job
from kernels.errors import KernelscopeError


def load(members: Sequence[cases.Group], job: Job, progress: Progress) -> LoadedModel:
    """The model of these groups of cases. Raises as LoadedModel does."""
    batches = tuple(case.batch for group in members for case in group)
    compared = {case.backend for group in members for case in group}
    return LoadedModel(members[0][0].model, job, batches, progress, compared)


class NextModel:
    """What can be done for a model before its turn comes, beside what is done for another, as long as nothing
    is timed: its file built, its kernels compiled, and what they are judged by worked out. go_on: asked now
    and then; raises where the work is to end."""

    def __init__(self, job: Job, go_on: Callable[[], None]) -> None:
        self._job, self._go_on = job, go_on
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="next-model")
        self._begun: Future[None] | None = None

    def begin(self, members: Sequence[cases.Group]) -> None:
        """members: the groups of the model. Of our own models alone, for a file from elsewhere is read where
        its cases answer for it."""
        every = itertools.chain.from_iterable(members)
        first = next((case for case in every if tuning.compiles(case, self._job)), None)
        if first is not None and cases.model_spec(first.model, self._job).path is None:
            self._begun = self._thread.submit(self._make_ready, first, members)

    def wait(self) -> None:
        """Until it is ready. What goes wrong is told when its turn has come. Raises what `go_on` raises."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.result()

    def _make_ready(self, first: Case, members: Sequence[cases.Group]) -> None:
        with contextlib.suppress(KernelscopeError, MemoryError):
            tuning.make_ready(first, load(members, self._job, self._progress), self._job, self._progress)

    def _progress(self, text: str, fraction: float | None) -> None:
        self._go_on()
