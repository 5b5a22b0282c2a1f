"""The messages between a run and its worker: one Start to the worker, then one Message a line from it.

They are the same for every kind of run. J, C and M are its types of a job, a case and a measurement.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from bench.results.machine_limits import MachineLimits
from bench.results.records import C, J
from bench.results.surroundings import Environment, ModelInfo, Record

M = TypeVar("M")


class Start(Record, Generic[J, C], frozen=True):
    """The one line the worker reads. cases: those to run, () = all that the job means; folder: the run
    folder, where it writes what is too long for a line ("" = nowhere). started_ns: time.perf_counter_ns()
    (one clock for all processes of a machine) when the worker was started; 0: not known."""

    job: J
    cases: tuple[C, ...] = ()
    folder: str = ""
    started_ns: int = 0


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """Base of what the worker says."""


class Hello(Message, Generic[C], frozen=True, tag="hello"):
    """First message: the worker is up and knows its machine, and these are the cases it will run."""

    environment: Environment
    cases: tuple[C, ...] = ()


class ModelLoaded(Message, frozen=True, tag="model_loaded"):
    """A model was read: what the run is to keep about it."""

    model: ModelInfo


class LimitsMeasured(Message, frozen=True, tag="limits_measured"):
    """What a device of this machine reaches, measured now or read from the cache."""

    limits: MachineLimits


class CaseStarted(Message, Generic[C], frozen=True, tag="case_started"):
    """The worker turns to this case; what happens next is its doing. stage: "tune", "prepare", "check",
    "time", or another that its kind has words for (bench.results.kinds.Kind.stages)."""

    case: C
    stage: str


class Progress(Message, frozen=True, tag="progress"):
    """Something moved inside a stage (a download, a sampling round): words for the user, fraction 0–1 if
    known."""

    text: str
    fraction: float | None = None


class Provisional(Message, Generic[C, M], frozen=True, tag="provisional"):
    """What a pass of this case took so far, judged by its first samples (median, ns): something to look at
    while it is measured. Not a result: it has no interval and is never stored. measurement: once the case is
    timed and its timed passes are found right, what is known of it; what is looked at afterwards (the images
    of a data set, its layers) may still say otherwise."""

    case: C
    median_ns: float
    measurement: M | None = None


class Measured(Message, Generic[M], frozen=True, tag="measured"):
    """A case is done."""

    measurement: M


class Log(Message, frozen=True, tag="log"):
    """A line for the log: level "info", "warning" or "error"."""

    level: str
    text: str


class Done(Message, frozen=True, tag="done"):
    """The worker has no case left and ends. reason is not empty where it ended early."""

    reason: str = ""


WorkerMessage = (
    Hello[C]
    | ModelLoaded
    | LimitsMeasured
    | CaseStarted[C]
    | Progress
    | Provisional[C, M]
    | Measured[M]
    | Log
    | Done
)
