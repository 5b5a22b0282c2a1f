"""A ladder driven from outside its worker: which cases a job means, and running them."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any

from bench.ladder.records import (
    LADDER,
    LadderJob,
    LadderMessage,
    LadderStart,
    RungCase,
    RungMeasured,
    RungMeasurement,
    RungStarted,
)
from bench.ladder.store import LadderFolder
from bench.run import client, supervisor

VOCABULARY = supervisor.Vocabulary(
    start=lambda job, cases, folder: LadderStart(job=job, cases=cases, folder=folder),
    message=LadderMessage,
    started=RungStarted,
    measured=RungMeasured,
    lost=lambda case, disposition, reason: RungMeasurement(case=case, disposition=disposition, reason=reason),
)


def worker_command() -> list[str]:
    """How a ladder's worker is started."""
    return [*client.worker_command(), LADDER]


class Spare:
    """A worker kept ready, its libraries loaded, for whoever asks next."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start one, where there is none."""
        if self._process is None:
            self._process = client.start_worker([*worker_command(), supervisor.WARM], subprocess.DEVNULL)

    def take(self) -> subprocess.Popen[bytes] | None:
        process, self._process = self._process, None
        return process

    def close(self) -> None:
        """End the worker that nobody took."""
        process = self.take()
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def run(
    job: LadderJob,
    cases: Sequence[RungCase],
    folder: LadderFolder,
    on_event: Callable[[Any], None] = lambda event: None,
    *,
    command: Sequence[str] | None = None,
    stop: threading.Event | None = None,
    spare: Spare | None = None,
) -> client.Outcome:
    """As bench.run.client.run: a rung that crashes its worker or does not end costs that rung, and the ladder
    goes on in another worker. spare: whose worker is taken first, and who starts the next one."""
    machine = supervisor.Supervisor(job, cases, str(folder.path), VOCABULARY)
    first = spare.take() if spare is not None else None
    try:
        return client.drive(machine, folder, on_event, command or worker_command(), stop, first)
    finally:
        if spare is not None:
            spare.start()
