"""The messages between a comparison and its worker: one Start to the worker, then one Message a line from it.

Other kinds of run have messages of their own beside those of every worker (Hello, Progress, Log, Done).
"""

from __future__ import annotations

import msgspec

from bench.results.records import Case, Environment, Job, Measurement, ModelInfo, Record


class Start(Record, frozen=True):
    """The one line the worker reads. cases: those to run, () = all that the job means; folder: the run
    folder, where it writes predictions and layers ("" = nowhere)."""

    job: Job
    cases: tuple[Case, ...] = ()
    folder: str = ""


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """Base of what the worker says."""


class Hello(Message, frozen=True, tag="hello"):
    """First message: the worker is up and knows its machine, and these are the cases it will run."""

    environment: Environment
    cases: tuple[Case, ...] = ()


class ModelLoaded(Message, frozen=True, tag="model_loaded"):
    """A model was read: what the run is to keep about it."""

    model: ModelInfo


class CaseStarted(Message, frozen=True, tag="case_started"):
    """The worker turns to this case; what happens next is its doing. stage: "tune", "prepare", "check",
    "time", "layers", "end_to_end"."""

    case: Case
    stage: str


class Progress(Message, frozen=True, tag="progress"):
    """Something moved inside a stage (a download, a sampling round): words for the user, fraction 0–1 if
    known."""

    text: str
    fraction: float | None = None


class Provisional(Message, frozen=True, tag="provisional"):
    """What a pass of this case took so far, judged by its first samples (median, ns): something to look at
    while it is measured. Not a result: it has no interval and is never stored."""

    case: Case
    median_ns: float


class Measured(Message, frozen=True, tag="measured"):
    """A case is done."""

    measurement: Measurement


class Log(Message, frozen=True, tag="log"):
    """A line for the log: level "info", "warning" or "error"."""

    level: str
    text: str


class Done(Message, frozen=True, tag="done"):
    """The worker has no case left and ends. reason is not empty where it ended early."""

    reason: str = ""


WorkerMessage = Hello | ModelLoaded | CaseStarted | Progress | Provisional | Measured | Log | Done
