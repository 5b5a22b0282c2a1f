"""Compares two run folders: A, the run before, and B, the run after. The result is a Diff
(bench.views.diff.records), which the views show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.results import baseline, note
from bench.results.folder import Folder
from bench.results.folders import open_folder
from bench.results.stats import SAME_BOUND
from bench.results.summaries import summary
from bench.views.diff import differs, judging
from bench.views.diff.records import Compared, Diff, Named
from kernels.errors import InputError


def between(a: Path, b: Path, bound: float = SAME_BOUND) -> Diff:
    """Compare run B with run A, case by case. a, b: the two run folders. bound: times within ±bound of each
    other are the same (0.02: 2 %). A ratio above 1 in the result means that B is faster.

    Raises InputError if one folder holds no run, if the runs are of different kinds, or if they have no case
    in common.
    """
    one, other = open_folder(a), open_folder(b)
    if one.kind is not other.kind:
        raise InputError(f"{a} is {one.kind.a} and {b} is {other.kind.a}: only two of a kind can be compared")
    found: Compared = one.kind.part("diff").compared(one, other)
    machine = differs.one_machine(one.header.environment, other.header.environment)
    changes = tuple(judging.judged(pair, bound, machine, not found.no_verdict) for pair in found.pairs)
    if not any(change.matched for change in changes):
        raise InputError(f"{a} and {b} have no case in common, so there is nothing to compare")
    differences = (
        *differs.environments(one.header.environment, other.header.environment),
        *differs.clocks(found.pairs),
        *found.differences,
        *differs.cases(found.pairs),
    )
    return Diff(
        kind=one.kind.name,
        a=_named(one),
        b=_named(other),
        bound=bound,
        one_machine=machine,
        changes=changes,
        differences=tuple(dict.fromkeys(differences)),
        waterfalls=tuple(found.waterfalls),
        who=found.who,
        no_verdict=found.no_verdict,
    )


def with_baseline(run: Path, *places: Path, bound: float = SAME_BOUND) -> Diff | None:
    """Compare a run (as B) with its baseline (as A). A baseline is an earlier run that the user marked as the
    one to compare with. places: folders of runs; the first one that keeps a baseline for this run counts.

    Returns None if there is no baseline for it, or if nothing of the run is measured. Raises InputError if
    the two cannot be compared.
    """
    found = summary(run)
    kept = baseline.anywhere(found, *places) if found.measured else None
    return None if kept is None else between(kept, run, bound)


def _named(folder: Folder[Any, Any]) -> Named:
    """What the result says of a run as a whole: its name, date, machine and command."""
    header = folder.header
    told = folder.kind.listing(header, folder.cases)
    return Named(
        path=folder.path,
        name=note.read(folder.path).name or folder.path.absolute().name,
        created_at=header.created_at,
        machine=" ".join(filter(None, (header.environment.machine, told.machine))),
        command=header.command,
    )
