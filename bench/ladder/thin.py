"""A ladder made small: its samples packed, and where need be no error maps."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.ladder.kind import LadderFolder
from bench.ladder.records import RungMeasurement
from bench.results.inside import inside
from bench.results.records import LEFT_OUT

LESS = "measure it with fewer rungs (--rung)"


@dataclass(frozen=True)
class LadderGrade:
    """How much goes. maps: whether a wrong answer keeps its error map."""

    maps: bool


GRADES = (LadderGrade(True), LadderGrade(False))
WITHOUT = "its error map was left out to make the ladder small"


def lines(
    folder: LadderFolder, measurements: Sequence[RungMeasurement], target: Path, grade: LadderGrade
) -> Iterator[RungMeasurement]:
    """The measurements of `folder`, made small; their error maps into `target`."""
    for m in measurements:
        finding = m.finding
        if finding is not None and finding.map:
            kept = grade.maps and _kept(inside(folder.path, finding.map), target / finding.map)
            if not kept:
                m = msgspec.structs.replace(m, facts={**m.facts, LEFT_OUT: WITHOUT})
                finding = msgspec.structs.replace(finding, map="")
        yield msgspec.structs.replace(m, finding=finding)


def _kept(source: Path, target: Path) -> bool:
    """Copy a file; whether it is there."""
    with contextlib.suppress(FileNotFoundError):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return True
    return False
