"""A profile made small: its samples packed, and where need be the events of fewer cases. What stands in the
records (breakdown, cold start, process) stays of all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.profile.kind import ProfileFolder
from bench.profile.records import CaseProfile
from bench.results.inside import inside

LESS = "profile fewer cases"
WITHOUT = "its events were left out to make the profile small: it has no timeline, and no tables of them"


@dataclass(frozen=True)
class ProfileGrade:
    """How much goes. batches: of how many batch sizes the events are kept, the largest and then the smallest
    ones (None: of all)."""

    batches: int | None


GRADES = tuple(map(ProfileGrade, (None, 3, 2, 1, 0)))


def lines(
    folder: ProfileFolder, measurements: Sequence[CaseProfile], target: Path, grade: ProfileGrade
) -> Iterator[CaseProfile]:
    """The measurements of `folder`, made small; their events into `target`."""
    with_events = _batches(measurements, grade.batches)
    for m in measurements:
        file = inside(folder.path, m.file) if m.file else None
        if file is not None and file.is_file() and m.case.batch in with_events:
            (target / m.file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target / m.file)
        elif m.file:
            m = msgspec.structs.replace(m, file="", events={}, notes=(*m.notes, WITHOUT))
        yield m


def _batches(measurements: Sequence[CaseProfile], count: int | None) -> set[int]:
    sizes = sorted({m.case.batch for m in measurements if m.file}, reverse=True)
    # The largest first, then the smallest: where the work counts, and where starting it does.
    order = [*sizes[:1], *sizes[:0:-1]]
    return set(order if count is None else order[:count])
