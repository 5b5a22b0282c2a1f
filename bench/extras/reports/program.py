"""A whole program, as a course's students write one: load a model, read images, run them through one backend
in batches, count the right answers; timed from outside, as `/usr/bin/time -v` does.

`python -m bench.extras.reports.program` is the program: it reads what to do, a line of JSON, and writes what
came of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec

from bench.results.profile_records import ProcessUse, of_rusage
from bench.results.records import Environment, Job, Record
from kernels.errors import KernelscopeError

FILE = "programs.jsonl"
LIMIT_S = 3600.0  # of a program; one that hangs would hold up a report for ever


class ProgramStart(Record, frozen=True):
    """What to do. images: how many, from the first on; rungs: those that are not chosen, by node."""

    model: str
    backend: str
    batch: int
    images: int
    rungs: dict[str, str] = msgspec.field(default_factory=dict)


class ProgramAnswer(Record, frozen=True):
    """What came of it. forward_ns: the passes alone, all images; top1: a fraction (None: no
    labels); error: why it came to nothing."""

    top1: float | None = None
    images: int = 0
    forward_ns: int = 0
    error: str = ""


class ProgramUse(ProcessUse, frozen=True, kw_only=True):
    """What a program answered and what its process used, children included. error: why there is nothing."""

    start: ProgramStart
    answer: ProgramAnswer = ProgramAnswer()
    real_s: float = 0.0
    user_s: float = 0.0
    system_s: float = 0.0
    max_rss_nbytes: int = 0
    error: str = ""
    environment: Environment = Environment()

    @property
    def cpu(self) -> float:
        """Of one core, as a fraction."""
        return (self.user_s + self.system_s) / self.real_s if self.real_s else 0.0


def run(start: ProgramStart, environment: Environment, limit_s: float = LIMIT_S) -> ProgramUse:
    """Run it and wait for its end, or end it after `limit_s`: then the error says so."""
    if not hasattr(os, "wait4"):
        return ProgramUse(start=start, error="this system does not tell what a child process used")
    command = [sys.executable, "-m", "bench.extras.reports.program"]
    begun = time.perf_counter()
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[3],
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(msgspec.json.encode(start) + b"\n")
        child.stdin.close()
        late = threading.Timer(limit_s, child.kill)
        late.start()
        try:
            said = child.stdout.read()
        finally:
            late.cancel()
        _, status, used = os.wait4(child.pid, 0)
        real_s = time.perf_counter() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
    try:
        told = msgspec.json.decode(said, type=ProgramAnswer)
    except msgspec.DecodeError:
        gave_up = f"it was given up after {limit_s:,.0f} s; fewer --images take less"
        told = ProgramAnswer(
            error=gave_up
            if real_s >= limit_s
            else f"its process ended with exit code {child.returncode} and said nothing"
        )
    return ProgramUse(
        start=start,
        answer=told,
        real_s=real_s,
        **of_rusage(used),
        error=told.error,
        environment=environment,
    )


def kept(folder: Path) -> list[ProgramUse]:
    """Those that were run before; none where there is no file, or none that can be read."""
    try:
        lines = (folder / FILE).read_bytes().splitlines()
        return [msgspec.json.decode(line, type=ProgramUse) for line in lines]
    except (OSError, msgspec.DecodeError):
        return []


def keep(folder: Path, found: list[ProgramUse]) -> None:
    from bench.results.store import write_atomically

    write_atomically(folder / FILE, b"".join(msgspec.json.encode(one) + b"\n" for one in found))


# ---------------------------------------------------------------------------------------- the program itself


def answer(start: ProgramStart) -> ProgramAnswer:
    """Do it. Raises KernelscopeError."""
    from bench.measure.images import predictions
    from bench.measure.loaded_model import LoadedModel
    from engine import backends

    backend = backends.get(start.backend)
    job = Job(
        models=(start.model,),
        backends=(start.backend,),
        batches=(start.batch,),
        layers=False,
        rungs=start.rungs,
    )
    loaded = LoadedModel(start.model, job, (start.batch,), lambda text, share: None)
    session = backend.prepare(loaded.graph, start.batch, "fp32", loaded.options_for(backend.device))
    try:
        found = predictions.run(session, loaded.feed, loaded.dataset(start.images), images=start.images)
    finally:
        session.close()
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
