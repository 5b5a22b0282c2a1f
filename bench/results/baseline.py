"""The runs that others are held against: a file beside the run folders, so that it goes where they go.

Of every kind of run there is one for the same models (of a ladder: the same operator of it). A path inside
the folder is kept as it lies there; one that lies elsewhere as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from bench.results.records import Record
from bench.results.store import read_file, write_atomically
from bench.results.summaries import Summary, listed
from bench.words import plain
from kernels.errors import InputError, system_words

FILE = "baselines.json"
SCHEMA = 1


class Baseline(Record, frozen=True):
    """A run's folder and what it is of."""

    path: str
    kind: str
    models: tuple[str, ...] = ()
    node: str = ""


class Baselines(Record, frozen=True):
    """The latest first."""

    kept: tuple[Baseline, ...] = ()
    schema: int = SCHEMA


def read(runs: Path) -> tuple[tuple[Path, Baseline], ...]:
    """Those that are kept in a folder of runs, each with where it lies; none where there is no such file.
    Raises InputError where it is broken or of a newer version."""
    file = Path(runs) / FILE
    try:
        held = read_file(file, Baselines, SCHEMA)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise InputError(f"cannot read {file}: {system_words(error)}") from error
    return tuple((Path(runs) / plain.printable(kept.path), kept) for kept in held.kept)


def keep(runs: Path, run: Path) -> Baseline:
    """Make a run the baseline of what it is of, in place of the one before. Raises InputError where it is no
    run, holds nothing, or the file cannot be written."""
    found = listed(run)
    if found is None or found.problem:
        raise InputError(f"{run} is no run to hold others against" + (f": {found.problem}" if found else ""))
    if not found.measured:
        raise InputError(f"{run} holds no measurement yet, so nothing can be held against it")
    made = Baseline(
        path=_within(runs, run), kind=found.kind, models=tuple(sorted(found.models)), node=found.node
    )
    others = tuple(kept for _, kept in read(runs) if _of(kept) != _of(made))
    _write(runs, (made, *others))
    return made


def clear(runs: Path, run: Path | None = None) -> int:
    """Let go of one, or of all; of how many. Raises InputError."""
    held = read(runs)
    left = () if run is None else tuple(kept for path, kept in held if not _same(path, run))
    if len(left) < len(held):
        _write(runs, left)
    return len(held) - len(left)


def of(runs: Path, run: Summary) -> Path | None:
    """The baseline of a run: that of the same models, else the latest that shares one. None where there is
    none, or it is the run itself."""
    return _among(read(runs), run)


def anywhere(run: Summary, *places: Path) -> Path | None:
    """The same of several folders of runs, the first that has one."""
    return next((kept for place in places if (kept := of(place, run)) is not None), None)


def of_each(runs: Path, items: Iterable[Summary]) -> dict[Path, Path]:
    """Of those that have one, by the run's own path; none where what is kept cannot be read."""
    try:
        held = read(runs)
    except InputError:
        return {}
    return {run.path: kept for run in items if held and (kept := _among(held, run)) is not None}


def kept(runs: Path) -> tuple[Path, ...]:
    """Where the baselines lie; none where what is kept cannot be read."""
    try:
        return tuple(path for path, _ in read(runs))
    except InputError:
        return ()


def _among(held: Sequence[tuple[Path, Baseline]], run: Summary) -> Path | None:
    mine = [(path, kept) for path, kept in held if (kept.kind, kept.node) == (run.kind, run.node)]
    models = set(run.models)
    exact = [path for path, kept in mine if set(kept.models) == models]
    some = [path for path, kept in mine if models.intersection(kept.models)]
    return next((path for path in [*exact, *some] if not _same(path, run.path)), None)


def _of(kept: Baseline) -> tuple[object, ...]:
    return kept.kind, kept.models, kept.node


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _within(runs: Path, run: Path) -> str:
    inside, of_all = Path(os.path.realpath(run)), Path(os.path.realpath(runs))
    return str(inside.relative_to(of_all) if inside.is_relative_to(of_all) else inside)


def _write(runs: Path, kept: tuple[Baseline, ...]) -> None:
    file = Path(runs) / FILE
    try:
        if kept:
            data = msgspec.json.format(msgspec.json.encode(Baselines(kept=kept)), indent=2)
            write_atomically(file, data)
        else:
            file.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {file}: {system_words(error)}") from error
