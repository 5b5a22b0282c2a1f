"""Files of a run's folder: written completely or not at all, read within limits (bench.results.reading), and
refused if a newer version wrote them. bench.results.folder is the whole folder."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bench.results import reading
from bench.results.inside import own_parts
from bench.results.records import FROM_OUTSIDE, KILLED_BY, LOST, CaseResult
from kernels.cache import atomic_file
from kernels.errors import InputError, system_words

RESULTS_FILE = "results.jsonl"
LOG_FILE = "worker.log"
SAVES_FILE = "saves.jsonl"  # versions of the user's rungs (bench.results.saves)
NOTE_FILE = "note.json"  # what the user calls it (bench.results.note)
PIECES = ".pieces"  # a folder for each part of it that a machine elsewhere has not handed over yet
ELSEWHERE_FILE = ".elsewhere.json"  # its session on a machine elsewhere, where it was measured on one
CHARTS = "charts"  # where those of any kind are drawn

R = TypeVar("R")


def to_run_again(measurement: CaseResult[Any], retry: bool) -> bool:
    """Whether a resume measures this case again: it was cancelled, its worker was killed by somebody and not
    by what it did, or (`retry`) it crashed or timed out."""
    if measurement.disposition in LOST:
        return retry or measurement.facts.get(KILLED_BY, "") in FROM_OUTSIDE
    return measurement.disposition == "cancelled"


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all (a temporary neighbour, synced, renamed). Raises InputError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {system_words(error)}") from error


def read_record(folder: Path, name: str, record: type[R], schema: int, own: Iterable[str]) -> R:
    """What the header `name` of a folder holds, of which `own` are the parts.
    Raises OSError where it cannot be read, NewerError where it is of a version newer than `schema`,
    InputError where it is broken or a part of it leads out of the folder."""
    if folder.is_file():
        raise InputError(f"{folder} is a file; name the folder of a run")
    own_parts(folder, {name, *own, CHARTS})
    return read_file(folder / name, record, schema, folder)


def read_file(file: Path, record: type[R], schema: int, of: Path | None = None) -> R:
    """What one JSON file holds. of: what it speaks for, if not for itself. Raises as `read_record`."""
    try:
        data = reading.whole(file)
        held = reading.decoded(data, _Schema)
        if held.schema > schema:
            raise NewerError(of or file, held.schema, schema, held.created_at)
        if max(held.schema, 1) < schema:
            data = _upgraded(data, schema)
        return reading.decoded(data, record)
    except reading.Unreadable as error:
        raise InputError(f"{file} is broken ({error})") from error


def _upgraded(data: bytes, schema: int) -> bytes:
    """A header of the first version, as it would be written now: a ladder kept the limits of its one device,
    a profile its one model."""
    held = reading.decoded(data, dict[str, Any])
    match held.get("limits"):
        case {"device": str(device)} as limits:
            held["limits"] = {device: limits}
    if "model" in held:
        held["models"] = [held.pop("model")]
    return msgspec.json.encode(held | {"schema": schema})


class NewerError(InputError):
    """A record of a version that this program does not know yet."""

    def __init__(self, folder: Path, schema: int, known: int, created_at: str) -> None:
        super().__init__(
            f"{folder} was recorded by a newer Kernelscope (schema {schema}, this one reads {known}); "
            "update Kernelscope"
        )
        self.schema = schema
        self.created_at = created_at


class _Schema(msgspec.Struct):
    schema: int = 0
    created_at: str = ""


RUNS = Path("runs")


def new_folder(runs: Path, stamp: datetime.datetime, name: str) -> Path:
    """A path in `runs` that nothing has yet, by the time and the name."""
    base = runs / f"{stamp:%Y%m%d-%H%M%S}-{name}"
    path, number = base, 1
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path
