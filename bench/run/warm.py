"""Cases run again and again, each time in a fresh worker whose libraries were loaded before: for whoever
waits for the answer. `ladder --watch` and `judge --serve` keep one."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from bench.results.kinds import Kind
from bench.results.records import CaseResult, Header
from bench.run import client

H = TypeVar("H", bound=Header[Any, Any])
M = TypeVar("M", bound=CaseResult[Any])


MOST_SAID = 10  # lines
_READ, _LONGEST = 1 << 16, 200  # bytes of them, letters of one


@dataclass(frozen=True)
class Ran(Generic[H, M]):
    """What came of it. header: with what the worker said of the machine. said: what came on standard error,
    as what a kernel prints does: the first MOST_SAID different lines."""

    header: H
    measurements: tuple[M, ...]
    outcome: client.Outcome
    said: tuple[str, ...] = ()


class Warm(Generic[H, M]):
    """Runs in a folder that nobody keeps. The next worker is started at the end of each run, so that it does
    not disturb what is measured."""

    def __init__(self, kind: Kind[H, M], command: Sequence[str] | None = None) -> None:
        """command: what starts a worker, in place of the kind's own."""
        self._kind = kind
        self._command = command
        self._spare = client.StandbyWorker(kind, command=command)

    def start(self) -> None:
        """Start the first worker before there is anything to run."""
        self._spare.start()

    def run(
        self, header: H, on_event: Callable[[Any], None], stop: threading.Event | None = None
    ) -> Ran[H, M]:
        """Run all cases of a header. on_event, stop: as of bench.run.client.run, and raises as it does."""
        with tempfile.TemporaryDirectory(prefix="kernelscope-", ignore_cleanup_errors=True) as directory:
            folder = self._kind.create(Path(directory) / self._kind.name, header)
            outcome = client.run(
                header.job,
                header.cases,
                folder,
                on_event,
                command=self._command,
                stop=stop,
                spare=self._spare,
            )
            return Ran(folder.header, folder.measurements(), outcome, _said(folder.log))

    def close(self) -> None:
        """End the worker that waits."""
        self._spare.close()

    def __enter__(self) -> Warm[H, M]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _said(log: Path) -> tuple[str, ...]:
    """The first different lines of a log."""
    try:
        with log.open("rb") as file:
            text = file.read(_READ).decode(errors="replace")
    except OSError:
        return ()
    lines = (line.strip()[:_LONGEST] for line in text.splitlines())
    return tuple(dict.fromkeys(filter(None, lines)))[:MOST_SAID]
