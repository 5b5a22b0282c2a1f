"""A ladder on the disk: a folder with `ladder.json`, `results.jsonl`, the worker's log and error maps."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from bench.ladder.records import SCHEMA, Ladder, LimitsMeasured, RungCase, RungMeasurement
from bench.results.claim import LOCK_FILE, Claim
from bench.results.records import Environment, Hello
from bench.results.results_file import ResultsFile
from bench.results.store import (
    CHARTS,
    LADDER_FILE,
    LOG_FILE,
    RESULTS_FILE,
    instead,
    read_record,
    to_run_again,
    write_atomically,
)
from kernels.errors import InputError

OWN = (LADDER_FILE, RESULTS_FILE, LOG_FILE, LOCK_FILE, "errors", CHARTS)  # what a ladder consists of


class LadderFolder:
    """One ladder's folder; `create` a new one or `open` one to read."""

    def __init__(self, path: Path, ladder: Ladder) -> None:
        self.path = path
        self.ladder = ladder
        self._results = ResultsFile(path / RESULTS_FILE, RungMeasurement)
        self._claim = Claim(path)

    @classmethod
    def create(cls, path: Path, ladder: Ladder) -> LadderFolder:
        """A new or empty folder. Raises InputError where it holds something or cannot be written."""
        path = Path(path)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if any(path.iterdir()):
                raise InputError(f"{path} holds something already; name an empty or a new folder")
        made = cls(path, ladder)
        made._write()
        return made

    @classmethod
    def open(cls, path: Path) -> LadderFolder:
        """Raises InputError where there is no ladder, its file is broken or of a newer version."""
        path = Path(path)
        try:
            ladder = read_record(path, LADDER_FILE, Ladder, SCHEMA, OWN)
        except OSError as error:
            words = instead(path) or f" ({(error.strerror or '').lower()})"
            raise InputError(f"{path} holds no ladder{words}") from error
        return cls(path, ladder)

    @property
    def log(self) -> Path:
        """Where the worker's standard error goes."""
        return self.path / LOG_FILE

    def heard(self, message: object) -> None:
        """Keep what a message of the worker tells of the ladder; one that is gone on with keeps the
        environment that it was started in. Raises InputError."""
        changed = self.ladder
        if isinstance(message, Hello) and changed.environment == Environment():
            changed = msgspec.structs.replace(changed, environment=message.environment)
        elif isinstance(message, LimitsMeasured):
            changed = msgspec.structs.replace(changed, limits=message.limits)
        if changed != self.ladder:
            self.ladder = changed
            self._write()

    def append(self, measurement: RungMeasurement) -> None:
        """Write one measurement and sync it. On failure nothing of it stays; raises InputError."""
        self._results.append(measurement)

    def measurements(self) -> tuple[RungMeasurement, ...]:
        """All measurements, the last of each case, in the order of the ladder's cases; damaged lines
        are left out and told. Raises InputError where they cannot be read."""
        found = self._results.read()
        return tuple(found[case.key] for case in self.ladder.cases if case.key in found)

    def missing(self, retry: bool = False) -> tuple[RungCase, ...]:
        """The cases still to run, in the ladder's order; those that crashed or hung as of a run's."""
        done = {m.case.key for m in self.measurements() if not to_run_again(m, retry)}
        return tuple(case for case in self.ladder.cases if case.key not in done)

    def claim(self) -> None:
        """Before writing: nobody else is to, until `close`. Raises InputError where somebody does."""
        self._claim.take()

    def close(self) -> None:
        """Let others write."""
        self._claim.release()

    def _write(self) -> None:
        data = msgspec.json.format(msgspec.json.encode(self.ladder), indent=2)
        write_atomically(self.path / LADDER_FILE, data)


def is_ladder(path: Path) -> bool:
    """Whether a folder holds a ladder, and not a run."""
    return (Path(path) / LADDER_FILE).is_file()
