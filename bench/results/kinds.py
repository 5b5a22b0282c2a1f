"""What a kind of run is, and which there are: the descriptors `KIND` in `bench/run/kinds`, and those of
satellites in `bench/extras/*/kind.py`."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from bench import modules
from bench.results.claim import LOCK_FILE
from bench.results.folder import Folder
from bench.results.messages import Start, WorkerMessage
from bench.results.records import CaseResult, Header, stem
from bench.results.store import (
    CHARTS,
    ELSEWHERE_FILE,
    LOG_FILE,
    NOTE_FILE,
    PIECES,
    RESULTS_FILE,
    read_record,
)
from bench.words.called import command_line
from bench.words.option import Option, arguments
from kernels.errors import InputError, system_words

H = TypeVar("H", bound=Header[Any, Any])
M = TypeVar("M", bound=CaseResult[Any])


# What the modules that a kind names do with one.
_DONE = {
    "view": "shown, exported or thinned",
    "report": "reported",
    "diff": "held against another",
}


@dataclass(frozen=True)
class Listing:
    """What a folder's header says of it, for a list: `bench.results.summaries.Summary` has the rest."""

    what: str
    models: tuple[str, ...]
    backends: tuple[str, ...]
    batches: tuple[int, ...]
    machine: str
    node: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind(Generic[H, M]):
    """A kind of run: its folder, its worker's words, how it is told.

    name: as in "a ladder"; noun: what one is called where it is looked for (its name, unless given). file: of
    its header. job, case, header, line: its types of what was asked for (with `timeout_s`), of one thing to
    measure (with `key` and `words`), of the file's content and of what came of a case. schema: the newest
    version of a header that is read. parts: the folders that lie in its own.

    worker: what follows `python -m`.

    titled: job → what its folder is named after. listing: (header, its cases, or those that have lines) →
    what a list says. stages: a stage in words; dispositions: those that are called otherwise here; remark:
    what is said of a measured case beside how it came out; quiet: a terminal that shows how far it is needs
    no line for a case that is well. layered: its cases have layers, and one run can be laid over another.
    verb, options: the command line of a job; resumes: whether `verb --resume` goes on with one.

    Modules, loaded when they are needed:
    - view: `show` prints a folder in a format (bench.views.show), `below` gives the lines below it; `charts`,
      and `numbers`, the tables by the name of their file; `result` says in a few words what came of the
      whole, for a list, from the fields `READS` of each line; `GRADES`, `LESS` and `lines` make a small copy
      (bench.results.thin). It may have `pictures`, which are no charts, called PICTURE; and `OUTPUT`, the
      type of its JSON, as "module:name".
    - report: `write`. diff: `compared`, two of them held against each other (bench.views.diff).
    """

    name: str
    noun: str = ""
    file: str
    job: type[Any]
    case: type[Any]
    header: type[H]
    line: type[M]
    schema: int = 1
    parts: tuple[str, ...] = ()

    worker: tuple[str, ...]

    titled: Callable[[Any], str]
    listing: Callable[[H, Sequence[Any]], Listing]
    stages: Mapping[str, str]
    dispositions: Mapping[str, str] = field(default_factory=dict)
    remark: Callable[[M], str] = lambda measurement: ""
    quiet: bool = False
    layered: bool = False
    verb: str
    options: tuple[Option, ...] = ()
    resumes: bool = False

    view: str = ""
    report: str = ""
    diff: str = ""

    # ------------------------------------------------------------------------------------------ its folders

    @property
    def a(self) -> str:
        """As a folder's content is named: "a ladder"."""
        return f"a {self.name}"

    @property
    def called(self) -> str:
        return self.noun or self.name

    @property
    def own(self) -> tuple[str, ...]:
        """What a folder of this kind consists of; anything else in it is somebody's."""
        files = (self.file, RESULTS_FILE, LOG_FILE, NOTE_FILE, LOCK_FILE, ELSEWHERE_FILE)
        return (*files, *self.parts, CHARTS, PIECES)

    def create(self, path: Path, header: H) -> Folder[H, M]:
        """A new one in `path`, which is made if need be and must be empty. Raises InputError where it holds
        something or cannot be written."""
        folder = Folder(Path(path), self, replace(header, schema=self.schema))
        folder.make()
        return folder

    def open(self, path: Path) -> Folder[H, M]:
        """One that is there. Raises InputError where there is none, it is broken or of a newer version."""
        path = Path(path)
        try:
            header = read_record(path, self.file, self.header, self.schema, self.own)
        except OSError as error:
            words = instead(path) or f" ({system_words(error)})"
            raise InputError(f"{path} holds no {self.called}{words}") from error
        return Folder(path, self, header)

    def resume(self, path: Path, job: Any = None) -> Folder[H, M]:
        """One to go on with; `job`, where given, must be the one it was started with. Raises InputError as
        `open` does, and where the jobs differ, naming the first field that does."""
        folder = self.open(path)
        for name in type(job).__struct_fields__ if job is not None else ():
            theirs, ours = getattr(folder.job, name), getattr(job, name)
            if theirs != ours:
                raise InputError(
                    f"{path} was started with {name} = {_show(theirs)}, not {_show(ours)}; "
                    "resume with the same settings or start a new run"
                )
        return folder

    # ------------------------------------------------------------------------------------------ its worker

    @property
    def reads(self) -> Any:
        """The type of the line that its worker reads."""
        return _typed(Start, self.job, self.case)

    @property
    def says(self) -> Any:
        """The type of the lines that its worker writes."""
        return _typed(WorkerMessage, self.case, self.line)

    # ------------------------------------------------------------------------------------------- its words

    def lost(self, case: Any, disposition: str, reason: str) -> M:
        """The measurement of a case that a worker took with it."""
        make: Any = self.line
        return make(case=case, disposition=disposition, reason=reason)

    def outcome(self, disposition: str) -> str:
        """How a case came out, in a word or two."""
        return self.dispositions.get(disposition, disposition.replace("_", " "))

    def turn(self, case: Any, stage: str) -> str:
        """What the worker is at."""
        return f"{self.stages.get(stage, stage)} {case_words(case)}"

    def arguments(self, job: Any) -> list[str]:
        """What follows `python main.py` to run a job; options that have the command's own default are left
        out."""
        return [self.verb, *arguments(job, self.options)]

    def command_line(self, job: Any) -> str:
        """The whole command, quoted for a shell."""
        return command_line(self.arguments(job))

    def part(self, which: str) -> ModuleType:
        """The module of "view", "report" or "diff". Raises InputError where this kind has none."""
        name = getattr(self, which)
        if not name:
            raise InputError(f"{self.a} cannot be {_DONE[which]}: its kind names no module that does it")
        return importlib.import_module(name)


def _typed(message: Any, *types: type[Any]) -> Any:
    """A message of these types of records."""
    return message[types]


def case_words(case: Any) -> str:
    """A case as one says it, a model given by path by its file's stem."""
    model = getattr(case, "model", "")
    words: str = case.words
    return words.replace(model, stem(model), 1) if model else words


@functools.cache
def kinds() -> tuple[Kind[Any, Any], ...]:
    """Every kind that there is, by name."""
    return tuple(module.KIND for module in (*modules("run/kinds/[a-z]*.py"), *modules("extras/*/kind.py")))


def kind_of(path: Path) -> Kind[Any, Any] | None:
    """Of which kind a folder is; None where it is of none."""
    return next((kind for kind in kinds() if (Path(path) / kind.file).is_file()), None)


def meant(path: Path) -> Kind[Any, Any] | None:
    """As `kind_of`, also where what should be its header is a link to nowhere, a folder, a device."""
    return kind_of(path) or next((kind for kind in kinds() if os.path.lexists(Path(path) / kind.file)), None)


def instead(path: Path) -> str:
    """What a folder holds that something else was looked for in (", but holds a ladder"); "" where nothing is
    known of it."""
    kind = kind_of(path)
    return f", but holds {kind.a}" if kind is not None else ""


def any_kind() -> str:
    """ "a comparison, a ladder or a profile"."""
    *first, last = (kind.a for kind in kinds())
    return f"{', '.join(first)} or {last}"


def _show(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}={_show(part)}" for key, part in value.items()) or "none"
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text or "none"
