"""Kernels that are watched while somebody edits them: which files have changed, and what is timed again.

A rung that was saved is first run alone. What it is compared with was timed at another time, when the machine
was in another state: that is said of it, and both are timed together once the verdict is shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from bench.results.ladder_records import Ladder, LadderJob, RungCase, RungMeasurement
from bench.results.ladder_rows import rows

EARLIER = "it was timed before what was saved last"
QUICK_BUDGET_S = 0.3  # of samples, for a rung that was just saved


TASK_FILE = "task.toml"  # as kernels.tasks.FILE


def of_a_task(path: Path) -> bool:
    """Whether a file says what a task is and what is right, and is no kernel of it."""
    beside = path.suffix == ".py" and not path.name[:2].isdecimal() and (path.parent / TASK_FILE).is_file()
    return path.suffix in (".toml", ".onnx") or beside


def quick(job: LadderJob) -> LadderJob:
    """The same for what was just saved: fewer checks and samples, as somebody waits."""
    return msgspec.structs.replace(job, quick=True, budget_s=min(QUICK_BUDGET_S, job.budget_s))


def beside(
    ladder: Ladder, known: Mapping[str, RungMeasurement], run: Sequence[RungCase]
) -> tuple[RungCase, ...]:
    """The cases to be timed together: those that were run alone and are right, and all that these are
    compared with, in the ladder's order; none where they are compared with nothing that was timed at another
    time."""
    found = [known[case.key] for case in ladder.cases if case.key in known]
    alone = {case.key for case in run}
    shown = [row for row in rows(ladder, found) if row.case.key in alone and row.time is not None]
    others = {m.case.key for row in shown for m in (row.reference, row.lower) if m is not None} - alone
    wanted = others | {row.case.key for row in shown}
    return tuple(case for case in ladder.cases if case.key in wanted) if others else ()


def aged(known: Mapping[str, RungMeasurement], alone: Collection[str]) -> dict[str, RungMeasurement]:
    """All but those that were run alone, by key, with the doubt that they were timed at another time. Also
    those that are not timed again: what they are compared with then has another time."""
    return {key: _aged(measurement) for key, measurement in known.items() if key not in alone}


def _aged(measurement: RungMeasurement) -> RungMeasurement:
    validity = measurement.validity
    if EARLIER in validity.warnings:
        return measurement
    warnings = (*validity.warnings, EARLIER)
    return msgspec.structs.replace(measurement, validity=msgspec.structs.replace(validity, warnings=warnings))


SOURCES = (".cu", ".cuh", ".py", ".toml", ".onnx")

Stamps = dict[Path, tuple[int, int]]


def stamps(folders: Iterable[str | Path]) -> Stamps:
    """When each source file of the folders was last written, and its size: kernels, and what a task is."""
    found: Stamps = {}
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix in SOURCES and "__pycache__" not in path.parts:
                try:
                    stat = path.stat()
                except OSError:  # an editor that replaces the file on saving
                    continue
                found[path.resolve()] = stat.st_mtime_ns, stat.st_size
    return found
