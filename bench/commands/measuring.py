"""What every command that measures does: folders begun or gone on with, their cases run, what is left
told."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bench.words import called, plain
from bench.words.exits import CANCELLED
from kernels.errors import InputError

if TYPE_CHECKING:
    from bench.results.folder import Folder
    from bench.results.kinds import Kind
    from bench.results.records import CaseResult, Header
    from bench.run.client import StandbyWorker

CHARTS = ("png", "svg", "pdf")  # of a run, unless told otherwise

H = TypeVar("H", bound="Header[Any, Any]")
M = TypeVar("M", bound="CaseResult[Any]")


@dataclass(frozen=True)
class Ending:
    """Whether the user cancelled, and why workers gave up."""

    cancelled: bool = False
    reasons: tuple[str, ...] = ()

    def status(self, fine: bool) -> int:
        """Say the reasons; the exit code."""
        for reason in self.reasons:
            print(reason, file=sys.stderr)
        return CANCELLED if self.cancelled else 0 if fine and not self.reasons else 1


@dataclass(frozen=True)
class Where:
    """Where it is measured: here, or on a cluster at this address, on which kind of its GPUs; or on places
    elsewhere, by their names."""

    cluster: str = ""
    gpu: str = ""
    on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.cluster and self.on:
            raise InputError("--on and --cluster say two things; give one of them")


HERE = Where()


def command_line() -> str:
    """The command as the user typed it, to stand in the footer of every chart."""
    return called.command_line(sys.argv[1:])


def begin(kind: Kind[H, M], header: H, out: Path | None) -> Folder[H, M]:
    """A new folder, `out` or a dated one."""
    from bench.results import folders
    from bench.run import settings

    warn_of_runtime()
    return folders.begin(kind, header, out, settings.runs_folder(), command_line())


def warn_of_runtime() -> None:
    """Say it where there is no ONNX Runtime to compare with, or a broken one, and what mends it."""
    from bench.commands.checks import runtime_problem

    if (sentence := runtime_problem()) is not None:
        print(f"warning: {sentence}", file=sys.stderr)


@contextlib.contextmanager
def gone_on(
    kind: Kind[H, M], path: Path, job: Any = None, trusted: bool = False, retry: bool = False
) -> Iterator[Folder[H, M]]:
    """A folder claimed to go on with, as `job` if that is given. trusted: the user has agreed to run the
    kernels that it names."""
    from bench.results import trust

    warn_of_runtime()
    with kind.resume(path, job) as folder:
        folder.claim()
        if folder.missing(retry):
            trust.ask(folder.path, folder.job.kernel_dirs, trusted)
        yield folder


def measure(
    folders: Sequence[Folder[H, M]],
    retry: bool = False,
    where: Where = HERE,
    spare: StandbyWorker | None = None,
) -> Ending:
    """Run what is missing of each; of one without cases, those that its worker says. spare: has the first
    worker, if one was started ahead."""
    from bench.results.store import PIECES
    from bench.run import beforehand, client, elsewhere
    from bench.run.past import Past
    from bench.run.progress import RunProgress

    total = sum(len(folder.cases) for folder in folders)
    missing = [folder.missing(retry) for folder in folders]
    cancelled, reasons = False, []
    unknown = [folder.kind.resumes and not folder.cases for folder in folders]
    if not any(missing) and not any(unknown):
        return Ending()
    to_come = [case for cases in missing for case in cases]
    kind, job = folders[0].kind, folders[0].job
    where = _where_begun(folders, where)
    shared = bool(where.on) and (folders[0].path / PIECES).is_dir()  # and parts of it may be there
    if where.cluster or len(where.on) > 1 or shared:
        return _on_several(folders[0], missing[0], where)
    command = elsewhere.worker_command(where.on[0], kind) if where.on else None
    past = None if where.on else Past(kind.verb, job)
    with (
        RunProgress(kind, total, total - len(to_come), to_come, job, past) as shown,
        contextlib.nullcontext() if where.on else beforehand.looked_at(kind.verb, shown.looked),
    ):
        for folder, cases, open_ in zip(folders, missing, unknown, strict=True):
            if (cases or open_) and not cancelled:
                outcome = client.run(folder.job, cases, folder, shown, command=command, spare=spare)
                cancelled = outcome.cancelled
                reasons += [outcome.reason] if outcome.reason else []
    return Ending(cancelled, tuple(reasons))


def _where_begun(folders: Sequence[Folder[H, M]], where: Where) -> Where:
    """Where it is gone on: where a run was begun elsewhere, and may have what nobody has fetched, unless the
    user says another place."""
    from bench.run import elsewhere

    begun = {name for folder in folders for name in elsewhere.of_run(folder.path).split(",") if name}
    if not begun - {*where.on} or where.cluster:
        return where
    told = ",".join(sorted(begun))
    if where.on:
        print(f"warning: this run was begun on {told}; --on {told} goes on there", file=sys.stderr)
        return where
    if gone := begun - {place.name for place in elsewhere.offered()}:
        names = " and ".join(sorted(gone))
        print(
            f"warning: this run was begun on {names}, which is no place any more; it goes on here",
            file=sys.stderr,
        )
        return where
    print(f"this run was begun on {told} and goes on there", file=sys.stderr)
    return Where(on=tuple(sorted(begun)))


def _on_several(folder: Folder[H, M], missing: Sequence[Any], where: Where) -> Ending:
    from bench import modules
    from kernels.errors import UnavailableError

    for satellite in modules("extras/*/cluster.py"):
        ending: Ending = satellite.measure(folder, missing, where)
        return ending
    asked = "--cluster" if where.cluster else "--on with several places"
    raise UnavailableError(f"{asked} needs bench/extras/fleet, which this copy of the program lacks")


def _tell_left(folder: Folder[Any, Any]) -> None:
    """Say how many cases of a kind that can be gone on with are not measured, and how it is."""
    if folder.kind.resumes and (left := len(folder.missing())):
        from bench.run import elsewhere

        words = [folder.kind.verb, "--resume", str(folder.path)]
        again = called.command_line([*words, *elsewhere.arguments(elsewhere.of_run(folder.path))])
        print(f"{left} of {len(folder.cases)} cases were not measured; `{again}` goes on", file=sys.stderr)


def _tell_baseline(folder: Folder[Any, Any]) -> None:
    """Say how what was measured stands to the baseline that is kept beside it, where there is one and all of
    it is measured."""
    from bench.run import settings
    from bench.views.diff.between import with_baseline
    from bench.views.sentences import diff_sentences as sentences

    if folder.missing():
        return
    try:
        found = with_baseline(folder.path, settings.runs_folder(), folder.path.absolute().parent)
    except InputError as error:
        print(f"warning: the baseline: {error}", file=sys.stderr)
        return
    if found is not None:
        print(plain.printable(sentences.summary(found)), file=sys.stderr)
        again = called.command_line(["runs", "diff", str(found.a.path), str(found.b.path)])
        print(f"`{again}` tells the difference", file=sys.stderr)


def leave(folder: Folder[Any, Any], formats: Sequence[str]) -> None:
    """Say where a run is; draw its charts in these formats; say what of it is left, and how it stands to the
    baseline."""
    from bench.views import show

    print(f"{folder.kind.called}: {folder.path}", file=sys.stderr)
    if formats and (written := len(show.write_charts(folder, formats))):
        print(f"charts: {folder.path / 'charts'} ({written} files)", file=sys.stderr)
    _tell_left(folder)
    _tell_baseline(folder)
