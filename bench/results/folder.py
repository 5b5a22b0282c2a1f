"""The folder of a run on the disk, for every kind of run. A measurement is written to the disk before it is
shown.

The header file (`run.json`, `ladder.json`, …) is replaced as a whole or not at all. `results.jsonl` grows by
one line for each measurement, and each line is synced to the disk. If the program is killed at any moment, at
most the last line is lost: when the folder is opened again, a line that was cut short is ignored, and its
case counts as not yet run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from bench.results.claim import Claim
from bench.results.messages import Hello, LimitsMeasured, ModelLoaded
from bench.results.records import CaseResult, Environment, Header
from bench.results.results_file import ResultsFile
from bench.results.store import LOG_FILE, RESULTS_FILE, to_run_again, write_atomically
from bench.words.called import CALLED
from kernels.errors import InputError, system_words

if TYPE_CHECKING:
    from bench.results.kinds import Kind

H = TypeVar("H", bound=Header[Any, Any])
M = TypeVar("M", bound=CaseResult[Any])


class CannotMake(InputError):
    """A run folder cannot be created. `cannot` is the message without its last part, the advice. A caller
    that knows who chose the folder can put better advice behind it."""

    def __init__(self, cannot: str) -> None:
        super().__init__(f"{cannot}; name another folder")
        self.cannot = cannot


def header_after(header: H, message: object) -> H:
    """Return a copy of `header` that includes what a message of the worker says. Only Hello, ModelLoaded and
    LimitsMeasured change it; for any other message the header is returned as it is.

    A resumed run keeps the environment in which it was started, and its cases if it had any. If a model or a
    device is reported again, the new report replaces the old one.
    """
    match message:
        case Hello(environment=environment, cases=cases):
            known = header.environment if header.environment != Environment() else environment
            return replace(header, environment=known, cases=header.cases or cases)
        case ModelLoaded(model=model):
            models = {known.name: known for known in header.models} | {model.name: model}
            return replace(header, models=tuple(models.values()))
        case LimitsMeasured(limits=limits):
            return replace(header, limits=header.limits | {limits.device: limits})
    return header


class Folder(Generic[H, M]):
    """One run on the disk, with its `header`. A Kind makes it: `Kind.create` (new), `Kind.open` (to read) or
    `Kind.resume` (to go on with). H is the type of the header, M the type of one measurement.

    A writer calls `claim`, then `append` for each measurement, then `close` (or uses `with`, which closes).
    """

    def __init__(self, path: Path, kind: Kind[H, M], header: H) -> None:
        self.path = path
        self.kind = kind
        self.header = header
        self._results: ResultsFile[M] = ResultsFile(path / RESULTS_FILE, kind.line)
        self._claim = Claim(path)

    def __enter__(self) -> Folder[H, M]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def log(self) -> Path:
        """The file that receives the standard error of the worker."""
        return self.path / LOG_FILE

    @property
    def job(self) -> Any:
        """What the user asked for."""
        return self.header.job

    @property
    def cases(self) -> tuple[Any, ...]:
        """The cases that the run is to measure; () as long as only the worker knows them."""
        return self.header.cases

    def make(self) -> None:
        """Create the folder and write its header. Raises InputError if the folder is not empty, and if it
        cannot be created or written (CannotMake)."""
        path, noun = self.path, self.kind.called
        try:
            path.mkdir(parents=True, exist_ok=True)
            held = next(iter(sorted(path.iterdir())), None)
        except (FileExistsError, NotADirectoryError) as error:
            raise CannotMake(
                f"the {noun} folder {path} cannot be made because a file is in the way"
            ) from error
        except OSError as error:
            words = system_words(error)
            raise CannotMake(f"cannot write the {noun} folder {path}: {words}") from error
        if held is not None:
            if (path / self.kind.file).is_file():
                resume = "go on with it by --resume, or " if self.kind.resumes else ""
                raise InputError(f"{path} already holds a {noun}; {resume}name another folder")
            raise InputError(f"{path} holds something else ({held.name}); name an empty or a new folder")
        self._write()

    def take_message(self, message: object) -> None:
        """Update the header by a message of the worker (see the function `header_after`), and write it if it
        changed. Raises InputError if it cannot be written."""
        self.update(header_after(self.header, message))

    def update(self, header: H) -> None:
        """Take another header, and write it if it differs. Raises InputError if it cannot be written."""
        if header != self.header:
            self.header = header
            self._write()

    def append(self, measurement: M) -> None:
        """Write one measurement as one line and sync it to the disk. If that fails, nothing of the line stays
        in the file and InputError is raised."""
        self._results.append(measurement)

    def check(self) -> None:
        """Restore what somebody else has changed of the measurements since `claim`. Raises InputError where
        there was such a change."""
        if told := self._results.restored():
            raise InputError(f"{told}. A kernel of a user's that writes there cannot be trusted")

    def measurements(self) -> tuple[M, ...]:
        """Read all measurements, one for each case. If a case was measured more than once, the last one
        counts. First come the cases of the header in their order, then any others in the order in which they
        were measured.

        A last line that was cut short is left out. A damaged line is left out too, and a warning is logged.
        Raises InputError if the file cannot be read.
        """
        found = self._results.read()
        named = {case.key: found[case.key] for case in self.cases if case.key in found}
        return tuple((named | found).values())

    def measured(self) -> tuple[M, ...]:
        """The same as `measurements`, but raises InputError also if there is no measurement yet."""
        if found := self.measurements():
            return found
        again = f"; `{CALLED} {self.kind.verb} --resume {self.path}` takes them" * self.kind.resumes
        raise InputError(f"{self.path} holds no measurement yet{again}")

    def missing(self, retry: bool = False) -> tuple[Any, ...]:
        """The cases that are still to run, in the order of the header. A case that crashed or timed out
        counts as done, except in two cases: `retry` is true, or somebody outside the program killed its
        worker."""
        done = {m.case.key for m in self.measurements() if not to_run_again(m, retry)}
        return tuple(case for case in self.cases if case.key not in done)

    def claim(self) -> None:
        """Reserve the folder for writing until `close`. Call it before the first write. Raises InputError if
        another process has reserved it, or if the folder cannot be written."""
        self._claim.take()
        try:
            self._results.begin()
        except InputError:
            self._claim.release()
            raise

    def close(self) -> None:
        """Give up the claim, so that others may write."""
        self._claim.release()

    def _write(self) -> None:
        data = msgspec.json.format(msgspec.json.encode(self.header), indent=2)
        write_atomically(self.path / self.kind.file, data)
