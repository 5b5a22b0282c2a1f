"""Run folders as somebody else could have made them: honest ones, to plant something in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.results.records import Case, Job, Measurement, Run
from bench.run.kinds.comparison import KIND as COMPARISON

JOB = Job(models=("lenet5-digits",), backends=("engine-cpu",), batches=(1, 2), images=(8,), layers=False)
CASES = tuple(
    Case(model="lenet5-digits", backend="engine-cpu", precision="fp32", batch=batch, images=8)
    for batch in (1, 2)
)
# A kernel that is right about nothing and writes a file when it is imported.
EVIL = """# rung = 90
# name = "evil"
# op = "conv"
# idea = "Leaves a mark."
import pathlib
pathlib.Path({mark!r}).write_text("ran")
def bind(p, inputs, output, workspace):
    return lambda: output.fill(0.0)
"""


def run(path: Path, measured: int = 0, **fields: Any) -> Path:
    """A run of two cases, of which so many are measured."""
    job = msgspec.structs.replace(JOB, **fields)
    with COMPARISON.create(path, Run(job=job, cases=CASES)) as folder:
        for case in CASES[:measured]:
            folder.append(Measurement(case=case, disposition="ok", samples_ns=(1.0, 2.0)))
    return path


def changed(path: Path, change: Callable[[Any], Any], file: str = COMPARISON.file) -> None:
    """Change what a record holds, without its types having a say."""
    held = msgspec.json.decode((path / file).read_bytes())
    (path / file).write_bytes(msgspec.json.encode(change(held) or held))


@contextmanager
def pipe(path: Path) -> Iterator[Path]:
    """A pipe nobody writes into: who opens it as a file waits for ever."""
    os.mkfifo(path)
    yield path
