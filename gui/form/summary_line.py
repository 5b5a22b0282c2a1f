"""The form's choices in a line, for where it is folded away."""

from __future__ import annotations

from collections.abc import Sequence

from bench.results.records import Job, stem
from bench.words.option import numbers_text

MANY = 3  # names, beyond which they are counted


def in_a_line(job: Job, backends: Sequence[str]) -> str:
    """Models, backends, precisions and batch sizes; `backends`: those that are compared."""
    parts = [
        _several([stem(model) for model in job.models], "models"),
        _several(list(backends), "backends"),
        ", ".join(job.precisions),
        f"batch {numbers_text(job.batches)}",
    ]
    return "  ·  ".join(filter(None, parts))


def _several(names: Sequence[str], what: str) -> str:
    return ", ".join(names) if len(names) <= MANY else f"{len(names)} {what}"
