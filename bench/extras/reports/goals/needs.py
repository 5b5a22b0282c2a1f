"""The comparisons that goals are held against: those that there are, and those that are missing, taken now.

Each is taken twice, in folders of its own: nobody believes a figure that a second run does not give again.
What a kill cut short is gone on with, case by case.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bench.comparison.kind import KIND as COMPARISON
from bench.comparison.kind import RunFolder
from bench.extras.reports.goals.presets import Goals, Need
from bench.kinds.registry import kind_of
from bench.results.machine_limits import SCHEMA, MachineLimits
from bench.results.records import Job
from bench.results.store import read_file, write_atomically
from bench.run.bounds import INSTANCES
from kernels.errors import InputError, KernelscopeError

NEEDS_GPU = "needs a GPU"
NOT_MEASURED = "not measured"
BEYOND = "left out: all its batch sizes are beyond --largest"
EXPECTED = (NEEDS_GPU, NOT_MEASURED, BEYOND)  # reasons that are no failure
RUNS = 2
AGAIN = "-again"
LIMITS_FILE = "limits.json"


@dataclass(frozen=True)
class Limits:
    """How much is measured: seconds of samples a case, the largest batch size (0: all), images at most (0: as
    many as are asked for)."""

    budget_s: float = 15.0
    largest: int = 0
    images: int = 0


@dataclass
class Taken:
    """What there is. runs: of each run its folders, by the name of a need; where they were given by hand, by
    their paths. why: where a need has no first run; limits: what machines were measured to reach, as far as
    it is known."""

    runs: tuple[dict[str, RunFolder], ...] = field(default_factory=lambda: tuple({} for _ in range(RUNS)))
    why: dict[str, str] = field(default_factory=dict)
    limits: tuple[MachineLimits, ...] = ()


def batches(need: Need, limits: Limits) -> tuple[int, ...]:
    """Those that are measured."""
    return tuple(batch for batch in need.batches if not limits.largest or batch <= limits.largest)


def job_of(need: Need, limits: Limits, again: bool = False) -> Job:
    """What a need asks of `compare`. Layers are timed of ours alone: that of all costs several times as long
    as the passes. again: for the second time, which is to show that the figures of passes come again: where
    time goes the first run tells, and what is named `once` is of that one alone."""
    counts = [count for count in (need.images, limits.images) if count]
    ours = tuple(name for name in need.backends if name.startswith("engine-"))
    layers = need.layers and not again and bool(ours)
    return Job(
        models=need.models,
        backends=tuple(name for name in need.backends if not again or name not in need.once),
        precisions=need.precisions,
        batches=batches(need, limits),
        images=(min(counts),) if counts else (),
        budget_s=limits.budget_s,
        instances=INSTANCES,
        layers=layers,
        layers_of=ours if layers else (),
        tune_reference=need.tune_reference,
        end_to_end=need.end_to_end,
    )


def take(goals: Goals, own: Path, limits: Limits, measures: bool = True) -> Taken:
    """All that the goals need. own: the folder of their runs; measures: whether anything is measured. A run
    that was started with other limits than these is told as the reason why there is none. Raises
    KeyboardInterrupt where the user cancelled."""
    from engine import backends

    taken = Taken(limits=_kept([own]))
    engine = f"engine-{goals.device}"
    if (reason := backends.get(engine).unavailable()) is not None and measures:
        why = NEEDS_GPU if goals.device == "cuda" else reason
        taken.why = dict.fromkeys((need.name for need in goals.needs), why)
        return taken
    for number, runs in enumerate(taken.runs):
        for need in goals.needs:
            if batches(need, limits):
                path, job = own / f"{need.name}{AGAIN * number}", job_of(need, limits, number > 0)
                _take(need, path, job, taken, runs, measures)
            else:
                taken.why[need.name] = BEYOND
    if measures:
        # Last: cases are held against what is known of the machine, and while it is busy that is too little.
        taken.limits = _measure_limits(goals.device, own) or taken.limits
    return taken


def _take(need: Need, path: Path, job: Job, taken: Taken, runs: dict[str, RunFolder], measures: bool) -> None:
    try:
        if measures:
            _measured(job, path)
        if kind_of(path) is COMPARISON:
            runs[need.name] = COMPARISON.open(path)
    except KernelscopeError as error:
        taken.why[need.name] = str(error)
    if need.name not in runs:
        taken.why.setdefault(need.name, NOT_MEASURED)


def _measured(job: Job, path: Path) -> None:
    from bench.commands import measuring
    from bench.kinds import folders
    from bench.questions import model_questions
    from bench.results.records import Run

    if kind_of(path) is not COMPARISON:
        run = Run(job=job, cases=model_questions.cases(job, None))
        line = COMPARISON.command_line(run.job)
        print(f"{path.name}: {line}", file=sys.stderr, flush=True)
        folders.begin(COMPARISON, run, path, path.parent, line).close()
    with measuring.gone_on(COMPARISON, path, job) as folder:
        if folder.missing() and measuring.measure([folder]).cancelled:
            raise KeyboardInterrupt


def given(goals: Goals, first: Sequence[Path], second: Sequence[Path] = (), measures: bool = True) -> Taken:
    """Runs that the user names, and the limits that lie beside them. measures: whether this machine's are,
    where none do. Raises InputError where one is no comparison."""
    runs: tuple[dict[str, RunFolder], ...] = tuple(
        {str(path): COMPARISON.open(path) for path in paths} for paths in (first, second)
    )
    kept = _kept([path.parent for path in (*first, *second)])
    return Taken(runs=runs, limits=kept or (_measure_limits(goals.device) if measures else ()))


def _measure_limits(device: str, own: Path | None = None) -> tuple[MachineLimits, ...]:
    """What this machine reaches, the most that was seen; kept beside the runs in `own`. Nothing where it
    cannot be measured."""
    from bench.measure import limits

    try:
        found = limits.limits(device)
    except KernelscopeError as error:
        print(f"warning: the machine's limits are not known: {error}", file=sys.stderr)
        return ()
    if own is not None:
        write_atomically(own / LIMITS_FILE, msgspec.json.format(msgspec.json.encode(found), indent=2))
    return (found,)


def _kept(folders: Sequence[Path]) -> tuple[MachineLimits, ...]:
    """What the folders have, each once: runs of several GPUs may lie apart, each with its own's limits."""
    found: list[MachineLimits] = []
    for folder in dict.fromkeys(folders):
        with contextlib.suppress(OSError, InputError):
            found.append(read_file(folder / LIMITS_FILE, MachineLimits, SCHEMA))
    return tuple(found)
