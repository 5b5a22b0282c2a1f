"""What a list of runs says of each, of whichever kind, read quickly: of every measurement its case, how it
ended, and what the result of the whole is told from."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from bench.results import note
from bench.results.folder import Folder
from bench.results.folders import open_folder
from bench.results.kinds import Kind, kinds, meant
from bench.results.results_file import ResultsFile
from bench.results.rows import FAILURES
from bench.results.store import RESULTS_FILE, NewerError, to_run_again
from bench.words import plain
from kernels.errors import InputError, system_words

SAMPLE = Path(__file__).parent / "sample_run"  # the run that comes with the program, thinned
BESIDE_SAMPLE = tuple(SAMPLE.with_name(name) for name in ("sample_ladder", "sample_profile"))


@dataclass(frozen=True)
class Summary:
    """A folder as one line. kind: its name. created_at: ISO, in the zone it was measured in; models: their
    titles; node: of a ladder, "" else; what: all that it is of, in words. cases: how many are meant (0: not
    known yet); ended: how each of them that is done did; left: how many going on with it would measure; lost:
    how many crashed or timed out. called, note: what the user names it and noted; result: what came of it, in
    a few words. problem: why nothing else is known of it, "" where it can be read."""

    path: Path
    kind: str
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
    left: int = 0
    lost: int = 0
    called: str = ""
    note: str = ""
    result: str = ""
    problem: str = ""

    @property
    def name(self) -> str:
        return self.path.absolute().name

    @property
    def resumable(self) -> bool:
        """Whether there is something to go on with: cases that are not measured, or none that is known."""
        return self._able and (self.left > 0 or not self.cases)

    @property
    def retriable(self) -> bool:
        """Whether there are cases that crashed or timed out, which may be measured again."""
        return self._able and self.lost > 0

    @property
    def _able(self) -> bool:
        return not self.problem and any(kind.resumes for kind in kinds() if kind.name == self.kind)

    @property
    def layered(self) -> bool:
        """Whether it can be laid over another."""
        return any(kind.layered for kind in kinds() if kind.name == self.kind)

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


def summary(path: Path) -> Summary:
    """One folder, also one that a newer program recorded. Raises InputError where it is none or cannot be
    read; lines that are broken are passed over, as opening it names them."""
    path = Path(path)
    try:
        return _told(open_folder(path))
    except NewerError as error:
        problem = f"recorded by a newer Kernelscope (schema {error.schema})"
        return _unread(path, meant(path), problem, error.created_at)


def summaries(directory: Path) -> tuple[Summary, ...]:
    """Those that lie in `directory`, oldest first; what is none is passed over. Of one that is broken, or
    that a newer program recorded, it is said that it is."""
    found: list[Summary] = []
    with contextlib.suppress(OSError):
        found = [item for path in Path(directory).iterdir() if (item := listed(path)) is not None]
    return tuple(sorted(found, key=lambda item: (item.started, item.name)))


def listed(path: Path) -> Summary | None:
    """As `summary`, of whatever there is: None where it is of no kind, and one with a problem where it was to
    be of one and cannot be read, so that it neither hides the others nor is hidden."""
    kind: Kind[Any, Any] | None = None
    try:
        kind = meant(path)
        return summary(path) if kind is not None else None
    except InputError as error:
        problem = plain.printable(str(error)).removeprefix(str(path)).lstrip("/\\: ")
    except OSError as error:
        problem = system_words(error)
    except (ValueError, OverflowError) as error:
        problem = plain.printable(" ".join(str(error).split()))
    return _unread(path, kind, f"cannot be read: {problem}")


def _unread(path: Path, kind: Kind[Any, Any] | None, problem: str, created_at: str = "") -> Summary:
    return Summary(
        path=path,
        kind=kind.name if kind is not None else "",
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


@functools.cache
def _ended(kind: Kind[Any, Any]) -> Any:
    """Of a line its case, how it ended, and what a result is told from; layers are skipped, not read."""
    wanted = ("case", "disposition", "facts", *(kind.part("view").READS if kind.view else ()))
    types = get_type_hints(kind.line) | {"case": kind.case}
    plain_of = {field.name: field for field in msgspec.structs.fields(kind.line)}
    fields: list[Any] = []
    for name in dict.fromkeys(wanted):
        field = plain_of[name]
        if field.required:
            fields.append((name, types[name]))
        elif field.default is not msgspec.NODEFAULT:
            fields.append((name, types[name], field.default))
        else:
            fields.append((name, types[name], msgspec.field(default_factory=field.default_factory)))
    return msgspec.defstruct("_Ended", fields, frozen=True)


def _told(folder: Folder[Any, Any]) -> Summary:
    header = folder.header
    # The last line of a case counts; lines that are damaged are passed over.
    ended = ResultsFile(folder.path / RESULTS_FILE, _ended(folder.kind)).read(tell=False)
    told = folder.kind.listing(header, folder.cases or tuple(line.case for line in ended.values()))
    done = {key for key, line in ended.items() if not to_run_again(line, retry=False)}
    lost = {key for key in done if to_run_again(ended[key], retry=True)}
    noted = note.read(folder.path)
    return Summary(
        path=folder.path,
        kind=folder.kind.name,
        created_at=header.created_at,
        what=told.what,
        models=told.models,
        backends=told.backends,
        batches=told.batches,
        machine=told.machine,
        node=told.node,
        cases=len(folder.cases),
        command=header.command,
        ended=tuple(line.disposition for line in ended.values()),
        left=sum(case.key not in done for case in folder.cases),
        lost=sum(case.key in lost for case in folder.cases),
        called=noted.name,
        note=noted.text,
        result=_result(folder, tuple(ended.values())),
    )


def _result(folder: Folder[Any, Any], lines: tuple[Any, ...]) -> str:
    if not folder.kind.view or not lines:
        return ""
    with contextlib.suppress(ValueError, ArithmeticError):  # of times that no machine takes: it stays listed
        words: str = folder.kind.part("view").result(folder.header, lines)
        return words
    return ""
