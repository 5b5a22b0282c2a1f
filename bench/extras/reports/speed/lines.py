"""Of several sittings what is the newest: a line for each case, with the rivals that were not measured
later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from bench.extras.reports.speed.sitting import Rival, Sitting, SittingCase

NEAR = 0.02  # a ratio whose interval was not kept decides nothing within this


@dataclass(frozen=True)
class Line:
    """A case of a sitting. own: whether its time is the newest (else an older one with rivals that were not
    measured again)."""

    sitting: Sitting
    case: SittingCase
    own: bool = True

    @property
    def day(self) -> str:
        return self.sitting.last


@dataclass(frozen=True)
class Pair:
    """A case with one rival."""

    line: Line
    beside: Rival


def by_processor(sittings: Sequence[Sitting]) -> dict[str, list[Sitting]]:
    """The processors, GPUs first and then that of the newest sitting; of each the newest sitting first."""
    found: dict[str, list[Sitting]] = {}
    for sitting in sorted(
        sittings, key=lambda one: (one.device == "cuda", one.last, one.created_at), reverse=True
    ):
        found.setdefault(sitting.processor, []).append(sitting)
    return found


def newest(sittings: Sequence[Sitting]) -> list[Line]:
    """The lines of one processor, whose sittings come newest first: by model, precision and batch size; of a
    case the newest first."""
    seen: dict[tuple[str, str, int, bool], set[str]] = {}
    found = []
    for sitting in sittings:
        for case in sitting.cases:
            key = case.model, case.precision, case.batch, case.flowing
            known = seen.get(key)
            beside = tuple(one for one in case.beside if known is None or one.name not in known)
            if known is None or beside:
                found.append(Line(sitting, replace(case, beside=beside), known is None))
            seen.setdefault(key, set()).update(one.name for one in case.beside)
    models = list(dict.fromkeys(line.case.model for line in found))
    precisions = list(dict.fromkeys(line.case.precision for line in found))

    def place(line: Line) -> tuple[int, int, int]:
        case = line.case
        return models.index(case.model), precisions.index(case.precision), case.batch

    return sorted(found, key=place)


def pairs(lines: Sequence[Line]) -> Iterator[Pair]:
    for line in lines:
        for beside in line.case.beside:
            yield Pair(line, beside)


def order(beside: Rival) -> int:
    """1 where the whole interval says that ours is ahead, -1 where that it is behind, 0 where neither, or
    where a doubt stands against a ratio that has none."""
    if beside.low is None and beside.doubts:
        return 0
    low = beside.ratio / (1 + NEAR) if beside.low is None else beside.low
    high = beside.ratio * (1 + NEAR) if beside.high is None else beside.high
    return (low > 1) - (high < 1)
