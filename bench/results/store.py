"""Run folders: what was measured is on the disk before it is shown; a cut at any moment loses one line.

`run.json` is replaced as a whole or not at all; `results.jsonl` grows by whole lines, each synced. A line
that a kill cut short is dropped when the run is opened again, and its case counts as not yet run.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bench.results import reading
from bench.results.claim import LOCK_FILE, Claim
from bench.results.inside import own_parts
from bench.results.records import (
    FROM_OUTSIDE,
    KILLED_BY,
    LOST,
    SCHEMA,
    Case,
    Environment,
    Hello,
    Job,
    Measurement,
    ModelInfo,
    ModelLoaded,
    Run,
)
from bench.results.results_file import ResultsFile
from kernels.errors import InputError

RUN_FILE, LADDER_FILE, PROFILE_FILE = "run.json", "ladder.json", "profile.json"
# What the folder that such a file lies in holds.
HOLDS = {RUN_FILE: "a comparison", LADDER_FILE: "a ladder", PROFILE_FILE: "a profile"}
RESULTS_FILE = "results.jsonl"
LOG_FILE = "worker.log"
# What a run consists of; a folder with anything else in it is somebody's, and not written to.
OWN = (RUN_FILE, RESULTS_FILE, LOG_FILE, LOCK_FILE, "predictions", "layers")
CHARTS = "charts"  # where those of any kind are drawn

R = TypeVar("R")


class RunFolder:
    """One run on the disk. Use `create`, `open` or `resume`; `close` (or `with`) when done with appending."""

    def __init__(self, path: Path, run: Run) -> None:
        self.path = path
        self.run = run
        self._results = ResultsFile(path / RESULTS_FILE, Measurement)
        self._claim = Claim(path)

    @classmethod
    def create(cls, path: Path, run: Run) -> RunFolder:
        """A new run in `path`, which is made if need be and must be empty.

        Raises InputError where it holds something or cannot be written.
        """
        path = Path(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            held = next(iter(sorted(path.iterdir())), None)
        except (FileExistsError, NotADirectoryError) as error:
            raise InputError(
                f"the run folder {path} cannot be made because a file is in the way; name another"
            ) from error
        except OSError as error:
            raise InputError(f"cannot write the run folder {path}: {_words(error)}; name another") from error
        if held is not None:
            if (path / RUN_FILE).is_file():
                raise InputError(
                    f"{path} already holds a run; go on with it by --resume, or name another folder"
                )
            raise InputError(f"{path} holds something else ({held.name}); name an empty or a new folder")
        folder = cls(path, run)
        folder._write_run()
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run. Raises InputError where there is none, or it is broken or of a newer version."""
        path = Path(path)
        try:
            run = read_record(path, RUN_FILE, Run, SCHEMA, OWN)
        except OSError as error:
            words = instead(path) or f": {RUN_FILE} {_words(error)}"
            raise InputError(f"{path} is not a run folder{words}") from error
        return cls(path, run)

    @classmethod
    def resume(cls, path: Path, job: Job | None = None) -> RunFolder:
        """An existing run to go on with; `job`, where given, must be the one it was started with.

        Raises InputError as `open` does, and where the jobs differ, naming the first field that does.
        """
        folder = cls.open(path)
        if job is not None and job != folder.run.job:
            field, theirs, ours = next(
                (name, getattr(folder.run.job, name), getattr(job, name))
                for name in Job.__struct_fields__
                if getattr(folder.run.job, name) != getattr(job, name)
            )
            raise InputError(
                f"{path} was started with {field} = {_show(theirs)}, not {_show(ours)}; "
                "resume with the same settings or start a new run"
            )
        return folder

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def log(self) -> Path:
        """Where the worker's standard error goes."""
        return self.path / LOG_FILE

    def describe(
        self,
        environment: Environment | None = None,
        model: ModelInfo | None = None,
        cases: tuple[Case, ...] = (),
    ) -> None:
        """Fill in what only the worker knows. A resumed run keeps the environment it was started in, and its
        cases where it had any; a model that is told again replaces what was known of it. Raises
        InputError."""
        run = self.run
        if environment is not None and run.environment == Environment():
            run = msgspec.structs.replace(run, environment=environment)
        if model is not None:
            models = {known.name: known for known in run.models} | {model.name: model}
            run = msgspec.structs.replace(run, models=tuple(models.values()))
        if cases and not run.cases:
            run = msgspec.structs.replace(run, cases=cases)
        if run != self.run:
            self.run = run
            self._write_run()

    def heard(self, message: object) -> None:
        """Keep what a message of the worker tells of the run. Raises InputError."""
        if isinstance(message, Hello):
            self.describe(environment=message.environment)
        elif isinstance(message, ModelLoaded):
            self.describe(model=message.model)

    def append(self, measurement: Measurement) -> None:
        """Write one measurement and sync it. On failure nothing of it stays; raises InputError."""
        self._results.append(measurement)

    def measurements(self) -> tuple[Measurement, ...]:
        """All measurements, the last of each case, in the order they were taken.

        A cut last line is left out, and one that is damaged, which is told. Raises InputError where they
        cannot be read.
        """
        return tuple(self._results.read().values())

    def missing(self, retry: bool = False) -> tuple[Case, ...]:
        """The cases still to run, in the run's order; those that crashed or timed out stay as they are unless
        they are to be tried again (`retry`), or their worker was killed from outside."""
        done = {m.case.key for m in self.measurements() if not to_run_again(m, retry)}
        return tuple(case for case in self.run.cases if case.key not in done)

    def claim(self) -> None:
        """Before writing: nobody else is to, until `close`. Raises InputError where somebody does."""
        self._claim.take()

    def close(self) -> None:
        """Let others write."""
        self._claim.release()

    def _write_run(self) -> None:
        write_atomically(self.path / RUN_FILE, msgspec.json.format(msgspec.json.encode(self.run), indent=2))


def to_run_again(measurement: Any, retry: bool) -> bool:
    """Whether a resume measures this case again: it was cancelled, its worker was killed by somebody and not
    by what it did, or (`retry`) it crashed or timed out."""
    if measurement.disposition in LOST:
        return retry or measurement.facts.get(KILLED_BY, "") in FROM_OUTSIDE
    return bool(measurement.disposition == "cancelled")


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all (a temporary neighbour, synced, renamed). Raises InputError."""
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(  # called as models.cache.atomic_file's, by which it is cleared
            dir=path.parent, prefix=f".{path.name}.", suffix=".part", delete=False
        ) as file:
            temporary = file.name
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise InputError(f"cannot write {path}: {_words(error)}") from error


def read_record(folder: Path, name: str, record: type[R], schema: int, own: Iterable[str]) -> R:
    """What `run.json`, `ladder.json` or `profile.json` of a folder holds, of which `own` are the parts.
    Raises OSError where it cannot be read, NewerError where it is of a version newer than `schema`,
    InputError where it is broken or a part of it leads out of the folder."""
    if folder.is_file():
        raise InputError(f"{folder} is a file; name the folder of a run, a ladder or a profile")
    own_parts(folder, {name, *own, CHARTS})
    return read_file(folder / name, record, schema, folder)


def read_file(file: Path, record: type[R], schema: int, of: Path | None = None) -> R:
    """What one JSON file holds. of: what it speaks for, if not for itself. Raises as `read_record`."""
    try:
        data = reading.whole(file)
        held = reading.decoded(data, _Schema)
        if held.schema > schema:
            raise NewerError(of or file, held.schema, schema, held.created_at)
        return reading.decoded(data, record)
    except reading.Refused as error:
        raise InputError(f"{file} is broken ({error})") from error


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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def instead(path: Path) -> str:
    """What a folder holds that something else was looked for in (", but holds a ladder"); "" where nothing is
    known of it."""
    return next((f", but holds {what}" for file, what in HOLDS.items() if (path / file).is_file()), "")


def _words(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _show(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}={_show(part)}" for key, part in value.items()) or "none"
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text or "none"
