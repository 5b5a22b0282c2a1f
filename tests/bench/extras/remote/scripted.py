"""A worker of known figures: `python -m tests.bench.extras.remote.scripted`. Each case takes a few hundredths
of a second, writes a file into the run's folder, and says a figure that no other measurement has. What it
said is also appended to the file that the variable SAID names, at once.

The models of a job may ask for more: "flood": noise on both streams; "big": a file of some megabytes for each
case; "endless": a case that never ends; "idle": one that ends when it is asked to; "gated": all but the first
case begin once the file OPEN lies beside that of SAID, and are left out where the worker is stopped before;
"reads": the answer is the content of the files that the job names.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from bench.measure import worker_process
from bench.results.messages import CaseStarted, Done, Hello, Measured, Start
from bench.results.records import Case, Environment, Job, Measurement

SAID = "KERNELSCOPE_TEST_SAID"
OPEN = "open"


def _warm_up(say) -> None:
    say(Hello(environment=Environment(machine="there")))


def _run(start: Start[Job, Case], say, stopped) -> int:
    say(Hello(environment=Environment(machine="there"), cases=start.cases))
    models = {Path(model).stem for model in start.job.models}
    if "flood" in models:
        for stream in (1, 2):
            for _ in range(64):
                os.write(stream, b"printf from a kernel\n" * 10_000)
    for case in start.cases:
        if "gated" in models and case != start.cases[0]:
            while not (Path(os.environ[SAID]).with_name(OPEN).exists() or stopped()):
                time.sleep(0.02)
        if stopped():
            say(Done(reason="cancelled"))
            return 0
        say(CaseStarted(case=case, stage="time"))
        until = time.monotonic() + (0.02 if not models & {"endless", "idle"} else 1000)
        while time.monotonic() < until and not ("idle" in models and stopped()):
            time.sleep(0.02)
        figure = float(time.time_ns() % 10**12)
        folder = Path(start.folder, "predictions")
        folder.mkdir(exist_ok=True)
        part = folder / f".{case.key}.part"
        part.write_bytes(os.urandom(4 << 20) if "big" in models else f"{figure}".encode() * 100)
        part.rename(folder / f"{case.key}.npz")
        facts = _read(start) if "reads" in models else {}
        made = Measurement(case=case, disposition="ok", samples_ns=(figure,), facts=facts)
        if said := os.environ.get(SAID):
            with open(said, "a") as file:
                file.write(f"{case.key} {figure}\n")
        say(Measured(measurement=made))
    say(Done())
    return 0


def _read(start: Start[Job, Case]) -> dict[str, str]:
    """What there is at each path of the job, by its name."""
    found = {}
    job = start.job
    for text in (*job.models, *job.kernel_dirs, *job.inputs.values(), *filter(None, (job.labels,))):
        path = Path(text)
        for one in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if one.is_file():
                found[one.name] = one.read_text()
                found[f"{one.name} at"] = str(one)
    return found


if __name__ == "__main__":
    print("said on standard error", file=sys.stderr)
    worker_process.leave(worker_process.serve(Start[Job, Case], _run, _warm_up))
