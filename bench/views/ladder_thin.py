"""A ladder made small: its samples packed, and where need be no error maps."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.results.inside import inside
from bench.results.ladder_records import Ladder, RungMeasurement
from bench.results.records import LEFT_OUT
from bench.results.results_file import packed_line_of
from bench.results.store import RESULTS_FILE, write_atomically
from bench.results.thin import public, public_dirs, public_limits
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.kinds.ladder import LadderFolder

LESS = "measure it with fewer rungs (--rung)"


@dataclass(frozen=True)
class LadderGrade:
    """How much goes. maps: whether a wrong answer keeps its error map."""

    maps: bool


GRADES = (LadderGrade(True), LadderGrade(False))
WITHOUT = "its error map was left out to make the ladder small"


def write(
    folder: LadderFolder, measurements: Sequence[RungMeasurement], target: Path, grade: LadderGrade
) -> None:
    """The ladder of `folder`, made small, into `target`."""
    lines = []
    for m in measurements:
        finding = m.finding
        if finding is not None and finding.map:
            kept = grade.maps and _kept(inside(folder.path, finding.map), target / finding.map)
            if not kept:
                m = msgspec.structs.replace(m, facts={**m.facts, LEFT_OUT: WITHOUT})
                finding = msgspec.structs.replace(finding, map="")
        lines.append(packed_line_of(msgspec.structs.replace(m, finding=finding)))
    write_atomically(target / LADDER.file, msgspec.json.encode(_public(folder.header)))
    write_atomically(target / RESULTS_FILE, b"".join(lines))


def _public(ladder: Ladder) -> Ladder:
    job = msgspec.structs.replace(ladder.job, kernel_dirs=public_dirs(ladder.job.kernel_dirs))
    limits = ladder.limits and public_limits(ladder.limits, ladder.environment)
    return msgspec.structs.replace(ladder, job=job, limits=limits, environment=public(ladder.environment))


def _kept(source: Path, target: Path) -> bool:
    """Copy a file; whether it is there."""
    with contextlib.suppress(FileNotFoundError):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return True
    return False
