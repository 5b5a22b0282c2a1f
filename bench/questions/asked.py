"""Questions to a process that reads models, and its answers, as far as the window asks them, too. Light: it
imports nothing that reads a model."""

from __future__ import annotations

import sys

import msgspec

from bench.results.records import Job


class Question(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of what is asked, one JSON line."""


class WhichTakes(Question, frozen=True, tag="takes"):
    """What the first model of a job takes and gives, and what the job will do to an image for it
    (bench.questions.model_takes)."""

    job: Job


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of what is answered, one JSON line."""


class Takes(Answer, frozen=True, tag="took"):
    """lines: facts as (name, value); fixed_batch: the only batch size that the file can run at (None: any);
    refused: what speaks against running the job so, in a sentence."""

    model: str
    lines: tuple[tuple[str, str], ...]
    fixed_batch: int | None = None
    refused: str = ""


class Failed(Answer, frozen=True, tag="failed"):
    """kind: the error's class in kernels.errors; text: its sentence."""

    kind: str
    text: str


class Looking(Answer, frozen=True, tag="looking"):
    """The process begins to read this model's file."""

    model: str


def reader_command() -> list[str]:
    return [sys.executable, "-P", "-m", "bench.questions.model_reader"]
