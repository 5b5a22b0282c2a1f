"""A run's folder, of whichever kind: what was measured is on the disk before it is shown; a cut at any moment
loses one line.

The header (`run.json`, `ladder.json`, …) is replaced as a whole or not at all; `results.jsonl` grows by whole
lines, each synced. A line that a kill cut short is dropped when the run is opened again, and its case counts
as not yet run.
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
from kernels.errors import InputError, system_words

if TYPE_CHECKING:
    from bench.kinds.registry import Kind

H = TypeVar("H", bound=Header[Any, Any])
M = TypeVar("M", bound=CaseResult[Any])


class CannotMake(InputError):
    """A folder cannot be made; `cannot`: without what would work, which depends on who named it."""

    def __init__(self, cannot: str) -> None:
        super().__init__(f"{cannot}; name another folder")
        self.cannot = cannot


def heard(header: H, message: object) -> H:
    """A header with what a message of the worker tells. A run that is gone on with keeps the environment that
    it was started in, and its cases where it had any; a model that is told again replaces what was known."""
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
    """One run on the disk, with its `header`. Kinds `create`, `open` and `resume` them; `close` (or `with`)
    when done with appending."""

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
        """Where the worker's standard error goes."""
        return self.path / LOG_FILE

    @property
    def job(self) -> Any:
        """What the user asked for."""
        return self.header.job

    @property
    def cases(self) -> tuple[Any, ...]:
        """What it means to measure; () while only its worker knows."""
        return self.header.cases

    def make(self) -> None:
        """Write a new one. Raises InputError where its folder holds something or cannot be written."""
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

    def heard(self, message: object) -> None:
        """Keep what a message of the worker tells of the whole. Raises InputError."""
        changed = heard(self.header, message)
        if changed != self.header:
            self.header = changed
            self._write()

    def append(self, measurement: M) -> None:
        """Write one measurement and sync it. On failure nothing of it stays; raises InputError."""
        self._results.append(measurement)

    def measurements(self) -> tuple[M, ...]:
        """All measurements, the last of each case, in the order of the cases; then those that the header does
        not name, as they were taken.

        A cut last line is left out, and one that is damaged, which is told. Raises InputError where they
        cannot be read.
        """
        found = self._results.read()
        named = {case.key: found[case.key] for case in self.cases if case.key in found}
        return tuple((named | found).values())

    def measured(self) -> tuple[M, ...]:
        """The same. Raises InputError also where there is none yet."""
        if found := self.measurements():
            return found
        again = f"; `python main.py {self.kind.verb} --resume {self.path}` takes them" * self.kind.resumes
        raise InputError(f"{self.path} holds no measurement yet{again}")

    def missing(self, retry: bool = False) -> tuple[Any, ...]:
        """The cases still to run, in their order; those that crashed or timed out stay as they are unless
        they are to be tried again (`retry`), or their worker was killed from outside."""
        done = {m.case.key for m in self.measurements() if not to_run_again(m, retry)}
        return tuple(case for case in self.cases if case.key not in done)

    def claim(self) -> None:
        """Before writing: nobody else is to, until `close`. Raises InputError where somebody does."""
        self._claim.take()

    def close(self) -> None:
        """Let others write."""
        self._claim.release()

    def _write(self) -> None:
        data = msgspec.json.format(msgspec.json.encode(self.header), indent=2)
        write_atomically(self.path / self.kind.file, data)
