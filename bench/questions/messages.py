"""Questions about a model, which may be anybody's, and the answers: the lines between our process and the one
that reads the model."""

from __future__ import annotations

from typing import Any

import msgspec

from bench.questions.asked import Answer, Failed, Looking, Question, Takes, WhichTakes
from bench.questions.preview import Preview, WhichPreview
from bench.results.messages import Progress
from bench.results.profile_records import ProfileJob
from bench.results.records import Case, Job
from kernels.precision import FP32

FORMATS = (
    "qdq",
    "qoperator",
)  # of quantised files: each operator between conversions, or one of whole numbers


class WhichCases(Question, frozen=True, tag="cases"):
    """The cases of a comparison (bench.measure.cases.plan). unread: models not to be looked at; here: they
    run on this machine."""

    job: Job
    unread: tuple[str, ...] = ()
    here: bool = True


class WhichProfile(Question, frozen=True, tag="profile"):
    """A profile's job, filled in, and its cases (bench.questions.profile_plan.plan)."""

    job: ProfileJob


class WhichNode(Question, frozen=True, tag="node"):
    """A node of a ladder (bench.questions.ladder_plan.node_of)."""

    model: str
    op: str
    node: str
    batch: int
    device: str


class WhichFacts(Question, frozen=True, tag="facts"):
    """What `models show` shows (bench.questions.model_facts). device: of the plan; "" for no plan."""

    model: str
    batch: int = 1
    device: str = ""
    precision: str = FP32


class WhichQuantized(Question, frozen=True, tag="quantize"):
    """A model's file in eight bits, which is to be written (bench.questions.quantizing). out: where; images:
    so many to find ranges on, of `dataset` (None: the model's own); format: one of FORMATS."""

    model: str
    out: str
    images: int
    dataset: str | None = None
    preprocess: str | None = None
    format: str = FORMATS[0]
    per_channel: bool = True


AnyQuestion = WhichCases | WhichProfile | WhichNode | WhichFacts | WhichTakes | WhichPreview | WhichQuantized


class Cases(Answer, frozen=True, tag="cases"):
    cases: tuple[Case, ...]


class ProfileCases(Answer, frozen=True, tag="profile"):
    job: ProfileJob
    cases: tuple[Case, ...]


class NodeFound(Answer, frozen=True, tag="node"):
    """params: as bench.results.ladder_records.LadderJob has them; node: the name of the step's first."""

    params: dict[str, Any]
    node: str


class ColumnTitle(msgspec.Struct, frozen=True):
    name: str
    right: bool = False


class ModelFacts(Answer, frozen=True, tag="facts"):
    """lines: what is to be known, and what it is called; then a table, and what stands below it."""

    lines: tuple[tuple[str, str], ...]
    columns: tuple[ColumnTitle, ...]
    rows: tuple[tuple[str, ...], ...]
    below: str = ""


class Quantized(Answer, frozen=True, tag="quantized"):
    """lines: what became of it, and what that is called."""

    lines: tuple[tuple[str, str], ...]


AnyAnswer = (
    Cases | ProfileCases | NodeFound | ModelFacts | Takes | Preview | Quantized | Failed | Looking | Progress
)
