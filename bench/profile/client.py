"""A profile driven from outside its workers: each case in a process of its own."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.profile.records import (
    CaseProfile,
    Profiled,
    ProfileJob,
    ProfileMessage,
    ProfileStart,
    ProfileStarted,
)
from bench.profile.store import ProfileFolder
from bench.results.records import Case
from bench.run import client, supervisor

VOCABULARY = supervisor.Vocabulary(
    # The line is made when the worker is started, which is where its cold start begins.
    start=lambda job, cases, folder: ProfileStart(
        job=job, cases=cases, folder=folder, started_ns=time.perf_counter_ns()
    ),
    message=ProfileMessage,
    started=ProfileStarted,
    measured=Profiled,
    lost=lambda case, disposition, reason: CaseProfile(case=case, disposition=disposition, reason=reason),
)


def worker_command() -> list[str]:
    """How a profile's worker is started."""
    return [sys.executable, "-m", "bench.profile.measure.worker"]


def run(
    job: ProfileJob,
    cases: Sequence[Case],
    folder: ProfileFolder,
    on_event: Callable[[Any], None] = lambda event: None,
    *,
    command: Sequence[str] | None = None,
    stop: threading.Event | None = None,
) -> client.Outcome:
    """As bench.run.client.run: a case that crashes its worker or does not end costs that case."""
    machine = supervisor.Supervisor(job, cases, str(folder.path), VOCABULARY)
    return client.drive(machine, folder, on_event, command or worker_command(), stop)
