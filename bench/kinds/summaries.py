"""What a list of runs, ladders and profiles says of each, read quickly: of every measurement only its case
and how it ended."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from bench.ladder import store as ladder_store
from bench.ladder.records import RungCase
from bench.ladder.store import LadderFolder, is_ladder
from bench.profile import store as profile_store
from bench.profile.store import ProfileFolder, is_profile
from bench.results import store
from bench.results.records import Case
from bench.results.results_file import ResultsFile
from bench.results.rows import FAILURES, title
from bench.results.store import (
    CHARTS,
    LADDER_FILE,
    PROFILE_FILE,
    RESULTS_FILE,
    RUN_FILE,
    NewerError,
    RunFolder,
)
from bench.words import plain
from kernels.errors import InputError

SAMPLE = Path(__file__).parent / "sample_run"  # the run that comes with the program, thinned

Kind = Literal["comparison", "ladder", "profile"]
# The files and folders that one of a kind consists of.
OWN: dict[Kind, tuple[str, ...]] = {
    "comparison": (*store.OWN, CHARTS),
    "ladder": ladder_store.OWN,
    "profile": profile_store.OWN,
}


@dataclass(frozen=True)
class Summary:
    """A folder as one line. created_at: ISO, in the zone it was measured in; models: their titles; node: of a
    ladder, "" else; what: all that it is of, in words. cases: how many are meant (0: not known yet); ended:
    how each of them that is done did. problem: why nothing else is known of it, "" where it can be read."""

    path: Path
    kind: Kind
    created_at: str
    what: str
    models: tuple[str, ...]
    backends: tuple[str, ...]
    batches: tuple[int, ...]
    machine: str
    cases: int
    ended: tuple[str, ...]
    node: str = ""
    command: str = ""
    problem: str = ""

    @property
    def name(self) -> str:
        return self.path.absolute().name

    @property
    def measured(self) -> int:
        return len(self.ended)

    @property
    def ok(self) -> int:
        """As they should be."""
        return self.ended.count("ok")

    @property
    def failed(self) -> int:
        """Failures: neither refusals nor cancelled."""
        return sum(self.ended.count(name) for name in FAILURES)

    @property
    def started(self) -> str:
        """Year to minute, in the zone it was measured in."""
        return self.created_at.replace("T", " ")[:16]


class _Ended(msgspec.Struct):
    case: Case
    disposition: str


class _EndedRung(msgspec.Struct):
    case: RungCase
    disposition: str


_E = TypeVar("_E", _Ended, _EndedRung)


def kind_of(path: Path) -> Kind | None:
    """What a folder holds; None where it holds none of them."""
    if is_ladder(path):
        return "ladder"
    if is_profile(path):
        return "profile"
    return "comparison" if (Path(path) / RUN_FILE).is_file() else None


def summary(path: Path) -> Summary:
    """One folder, also one that a newer program recorded. Raises InputError where it is none or cannot be
    read; lines that are broken are passed over, as opening it names them."""
    path = Path(path)
    kind = kind_of(path)
    try:
        match kind:
            case "ladder":
                return _ladder(LadderFolder.open(path))
            case "profile":
                return _profile(ProfileFolder.open(path))
            case _:
                return _comparison(RunFolder.open(path))
    except NewerError as error:
        return _newer(path, kind or "comparison", error)


def summaries(directory: Path) -> tuple[Summary, ...]:
    """Those that lie in `directory`, oldest first; what is none is passed over. Of one that is broken, or
    that a newer program recorded, it is said that it is."""
    found: list[Summary] = []
    with contextlib.suppress(OSError):
        found = [item for path in Path(directory).iterdir() if (item := listed(path)) is not None]
    return tuple(sorted(found, key=lambda item: (item.started, item.name)))


def listed(path: Path) -> Summary | None:
    """As `summary`, of whatever there is: None where it is no run, ladder or profile, and one with a problem
    where it was to be one and cannot be read, so that it neither hides the others nor is hidden."""
    kind: Kind | None = None
    try:
        kind = _meant(path)
        return summary(path) if kind is not None else None
    except InputError as error:
        problem = plain.printable(str(error)).removeprefix(str(path)).lstrip("/\\: ")
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
    except (ValueError, OverflowError) as error:
        problem = plain.printable(" ".join(str(error).split()))
    return _known_of_none(path, kind or "comparison", f"cannot be read: {problem}")


def _meant(path: Path) -> Kind | None:
    """What a folder holds, or was to hold: its record may be a link to nowhere, a folder, a device."""
    if (kind := kind_of(path)) is not None:
        return kind
    kinds: dict[str, Kind] = {RUN_FILE: "comparison", LADDER_FILE: "ladder", PROFILE_FILE: "profile"}
    return next((kind for file, kind in kinds.items() if os.path.lexists(path / file)), None)


def _newer(path: Path, kind: Kind, error: NewerError) -> Summary:
    problem = f"recorded by a newer Kernelscope (schema {error.schema})"
    return _known_of_none(path, kind, problem, error.created_at)


def _known_of_none(path: Path, kind: Kind, problem: str, created_at: str = "") -> Summary:
    return Summary(
        path=path,
        kind=kind,
        created_at=created_at,
        what=problem,
        models=(),
        backends=(),
        batches=(),
        machine="",
        cases=0,
        ended=(),
        problem=problem,
    )


def _comparison(folder: RunFolder) -> Summary:
    run = folder.run
    ended = _ended(folder.path, _Ended)
    cases = run.cases or tuple(line.case for line in ended.values())
    models = tuple(title(name) for name in run.job.models)
    return Summary(
        path=folder.path,
        kind="comparison",
        created_at=run.created_at,
        what=f"comparison: {', '.join(models)}",
        models=models,
        backends=tuple(dict.fromkeys(case.backend for case in cases)),
        batches=tuple(sorted({case.batch for case in cases})),
        machine=run.environment.gpu or run.environment.cpu,
        cases=len(run.cases),
        command=run.command,
        ended=tuple(line.disposition for line in ended.values()),
    )


def _ladder(folder: LadderFolder) -> Summary:
    ladder = folder.ladder
    job, environment = ladder.job, ladder.environment
    where = f"{title(job.model)} {job.node}, batch {job.batch:,}" if job.model else job.title
    return Summary(
        path=folder.path,
        kind="ladder",
        created_at=ladder.created_at,
        what=f"{job.op} ladder: {where}",
        models=(title(job.model),) if job.model else (),
        node=job.node or job.title,
        backends=(f"engine-{job.device}",),
        batches=(job.batch,),
        machine=environment.gpu if job.device == "cuda" else environment.cpu,
        cases=len(ladder.cases),
        command=ladder.command,
        ended=tuple(line.disposition for line in _ended(folder.path, _EndedRung).values()),
    )


def _profile(folder: ProfileFolder) -> Summary:
    profile = folder.profile
    backends = tuple(dict.fromkeys(case.backend for case in profile.cases))
    environment = profile.environment
    on_gpu = any(name.endswith("-cuda") for name in backends)
    return Summary(
        path=folder.path,
        kind="profile",
        created_at=profile.created_at,
        what=f"profile: {title(profile.job.model)}",
        models=(title(profile.job.model),),
        backends=backends,
        batches=tuple(sorted({case.batch for case in profile.cases})),
        machine=(environment.gpu if on_gpu else "") or environment.cpu,
        cases=len(profile.cases),
        command=profile.command,
        ended=tuple(line.disposition for line in _ended(folder.path, _Ended).values()),
    )


def _ended(folder: Path, line_type: type[_E]) -> dict[str, _E]:
    """How each case ended, by its key, the last line of a case counting; samples and layers are skipped, not
    read, and so are lines that are damaged."""
    return ResultsFile(folder / RESULTS_FILE, line_type).read(tell=False)
