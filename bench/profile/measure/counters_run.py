"""A case's pass in which the hardware counts, seen from the worker that asks for it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.profile.measure import counters_pass, ncu
from bench.profile.measure.counters import Counted
from bench.profile.records import ProfileJob
from bench.results.messages import Start
from bench.results.records import Case
from kernels.errors import KernelError


def take(job: ProfileJob, case: Case, stopped: Callable[[], bool] = lambda: False) -> tuple[Counted, ...]:
    """The kernels of one pass of a case, in order, with what was counted. Raises UnavailableError where ncu
    is not there or not permitted, KernelError where it or the pass fails."""
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as name:
        folder = Path(name)
        start = Start(job=job, cases=(case,))
        (folder / counters_pass.JOB).write_bytes(msgspec.json.encode(start))
        target = [sys.executable, "-m", counters_pass.__name__, str(folder)]
        try:
            return ncu.run(target, folder, stopped)
        except KernelError as error:
            failed = folder / counters_pass.ERROR
            if failed.is_file():
                raise KernelError(
                    f"hardware counters are not read: the pass under `ncu` failed: {failed.read_text()}"
                ) from error
            raise
