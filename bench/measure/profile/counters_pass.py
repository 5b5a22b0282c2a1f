"""The process in which a GPU's hardware counts: one forward pass between the marks cudaProfilerStart and
cudaProfilerStop.

`python -m bench.measure.profile.counters_pass FOLDER` is what bench.measure.profile.ncu runs under `ncu`.
FOLDER/job.json is a Start; what fails is written to FOLDER/error.txt. Kernels are launched one by one,
in the order in which a pass starts them; those of preparing and warming up lie outside the marks.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from dataclasses import replace
from pathlib import Path

import msgspec

from bench.results.messages import Start
from bench.results.profile_records import ProfileJob
from bench.results.records import Case
from kernels.errors import KernelscopeError

JOB, ERROR = "job.json", "error.txt"
_LOOK_S = 0.5


def main(folder: Path) -> int:
    """The exit status."""
    watch_parent()
    try:
        start = msgspec.json.decode((folder / JOB).read_bytes(), type=Start[ProfileJob, Case])
        one_pass(start)
    except KernelscopeError as error:
        (folder / ERROR).write_text(str(error))
        return 1
    except Exception as error:
        traceback.print_exc()
        (folder / ERROR).write_text(f"{type(error).__name__}: {error}")
        return 1
    return 0


def one_pass(start: Start[ProfileJob, Case]) -> None:
    """Prepare the case of `start`, and run it once between the marks. Raises what `prepare` raises."""
    from bench.measure.loaded_model import LoadedModel
    from bench.measure.profile.session import asked, batch_inputs
    from bench.measure.timing import first_run
    from bench.measure.tuned import tuning
    from engine import backends
    from engine.cuda.runtime import import_cupy

    job, case = start.job, start.cases[0]
    wanted = asked(job, case)
    loaded = LoadedModel(job.model, wanted, (case.batch,), lambda text, fraction: None)
    backend = backends.get(case.backend)
    options = replace(tuning.options(backend, loaded, wanted), cuda_graph=False)
    runtime = import_cupy().cuda.runtime
    session = backend.prepare(loaded.graph, case.batch, case.precision, options)
    try:
        session.bind(batch_inputs(loaded, case.batch))
        first_run(session)
        runtime.profilerStart()
        session.run()
        session.synchronize()
        runtime.profilerStop()
    finally:
        session.close()


def watch_parent() -> None:
    """End with the process that started this one: ncu itself may be gone without having ended it."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            threading.Event().wait(_LOOK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="parent").start()


if __name__ == "__main__":
    status = main(Path(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: teardown of device libraries may crash or hang after all is done.
    os._exit(status)
