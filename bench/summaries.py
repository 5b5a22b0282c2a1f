"""What a list of runs says of each, read quickly: of every measurement only its case and how it ended."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from bench.ladder_records import Ladder
from bench.ladder_store import LadderFolder, list_ladders
from bench.records import Case, Run
from bench.rows import FAILURES, title
from bench.store import RESULTS_FILE, RunFolder, list_runs

SAMPLE = Path(__file__).parent / "sample_run"  # the run that comes with the program, thinned


@dataclass(frozen=True)
class Summary:
    """A run folder as one line. cases: how many the run means (0: not known yet); measured: how many are
    done; ok: as they should be; failed: failures of the comparison (neither refusals nor cancelled)."""

    path: Path
    run: Run
    measured: int
    ok: int
    failed: int
    backends: tuple[str, ...]
    batches: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.path.absolute().name

    @property
    def started(self) -> str:
        """Year to minute, in the zone it was measured in."""
        return self.run.created_at.replace("T", " ")[:16]

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(title(name) for name in self.run.job.models)

    @property
    def what(self) -> str:
        return ", ".join(self.models)

    @property
    def cases(self) -> int:
        return len(self.run.cases)

    @property
    def machine(self) -> str:
        return self.run.environment.gpu or self.run.environment.cpu


@dataclass(frozen=True)
class LadderSummary:
    """A ladder's folder as one line; the words mean what Summary's do."""

    folder: LadderFolder

    @property
    def ladder(self) -> Ladder:
        return self.folder.ladder

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def name(self) -> str:
        return self.path.absolute().name

    @property
    def started(self) -> str:
        return self.ladder.created_at.replace("T", " ")[:16]

    @property
    def what(self) -> str:
        job = self.ladder.job
        where = f"{title(job.model)} {job.node}, batch {job.batch:,}" if job.model else job.title
        return f"{job.op} ladder: {where}"

    @property
    def machine(self) -> str:
        env = self.ladder.environment
        return env.gpu if self.ladder.job.device == "cuda" else env.cpu

    @property
    def cases(self) -> int:
        return len(self.ladder.cases)

    @cached_property
    def _ended(self) -> list[str]:
        return [m.disposition for m in self.folder.measurements()]

    @property
    def measured(self) -> int:
        return len(self._ended)

    @property
    def failed(self) -> int:
        return sum(self._ended.count(name) for name in FAILURES)


def everything(directory: Path) -> tuple[Summary | LadderSummary, ...]:
    """Runs and ladders that lie in `directory`, oldest first."""
    found: list[Summary | LadderSummary] = [*summaries(directory)]
    found += [LadderSummary(folder) for folder in list_ladders(directory)]
    return tuple(sorted(found, key=lambda item: (item.started, item.name)))


def summary(path: Path) -> Summary:
    """One run folder. Raises InputError where it is none or cannot be read; lines that are broken are passed
    over, as opening the run names them."""
    return _summary(RunFolder.open(path))


def summaries(directory: Path) -> tuple[Summary, ...]:
    """The runs that lie in `directory`, oldest first; what is no run, or a broken one, is passed over."""
    return tuple(_summary(folder) for folder in list_runs(directory))


def _summary(folder: RunFolder) -> Summary:
    ended = _ended(folder.path / RESULTS_FILE)
    cases = folder.run.cases or tuple(ended)
    dispositions = list(ended.values())
    return Summary(
        path=folder.path,
        run=folder.run,
        measured=len(ended),
        ok=dispositions.count("ok"),
        failed=sum(dispositions.count(name) for name in FAILURES),
        backends=tuple(dict.fromkeys(case.backend for case in cases)),
        batches=tuple(sorted({case.batch for case in cases})),
    )


class _Ended(msgspec.Struct):
    case: Case
    disposition: str


def _ended(path: Path) -> dict[Case, str]:
    """How each case ended, the last of it counting; samples and layers are skipped, not read."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return {}
    decoder = msgspec.json.Decoder(_Ended)
    found: dict[Case, str] = {}
    for line in lines[:-1]:
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            ended = decoder.decode(line)
            found[ended.case] = ended.disposition
    return found
