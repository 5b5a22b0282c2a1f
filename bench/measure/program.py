"""A whole program, as a course's students write one: load a model, read images, run them through one backend
in batches, count the right answers. `python -m bench.measure.program` reads what to do, a line of JSON, and
writes what came of it; whoever started it asks the system what the process used (bench.courses.program), as
/usr/bin/time does.
"""

from __future__ import annotations

import sys
from contextlib import closing

import msgspec

from bench.results.records import Job, Record
from kernels.errors import KernelscopeError


class ProgramStart(Record, frozen=True):
    """What to do. images: how many, from the first on."""

    model: str
    backend: str
    batch: int
    images: int


class ProgramAnswer(Record, frozen=True):
    """What came of it. forward_ns: the passes alone, all images; top1: a fraction (None: no
    labels); error: why it came to nothing."""

    top1: float | None = None
    images: int = 0
    forward_ns: int = 0
    error: str = ""


def answer(start: ProgramStart) -> ProgramAnswer:
    """Do it. Raises KernelscopeError."""
    from bench.measure.images import predictions
    from bench.measure.loaded_model import LoadedModel
    from engine import backends

    backend = backends.get(start.backend)
    job = Job(models=(start.model,), backends=(start.backend,), batches=(start.batch,), layers=False)
    loaded = LoadedModel(start.model, job, (start.batch,), lambda text, share: None)
    options = loaded.options_for(backend.device)
    with closing(backend.prepare(loaded.graph, start.batch, "fp32", options)) as session:
        found = predictions.run(session, loaded.feed, loaded.dataset(start.images), images=start.images)
    told = predictions.summary(found)
    return ProgramAnswer(top1=told.top1, images=told.images, forward_ns=found.compute_ns)


def main() -> int:
    start = msgspec.json.decode(sys.stdin.buffer.readline(), type=ProgramStart)
    try:
        told = answer(start)
    except KernelscopeError as error:
        told = ProgramAnswer(error=str(error))
    sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
    return int(bool(told.error))


if __name__ == "__main__":
    sys.exit(main())
