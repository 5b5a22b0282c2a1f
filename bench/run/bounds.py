"""How many cases a job has, and about how long they take; needs no model and no backend."""

from __future__ import annotations

from typing import Any

from bench.results.records import Job


def count(job: Job, backends: int) -> int:
    """How many cases the job has on so many backends, before any is refused."""
    a_size = backends * len(set(job.precisions))
    return sum(
        a_size * len(set(job.batches_of(model))) * len(set(job.images_of(model)) or {None})
        for model in set(job.models)
    )


# Seconds that a case may take beside its budget, and by how much that is overdrawn by warm-ups and turns.
BESIDE, BESIDE_AN_INSTANCE, OVER = 2.0, 2.0, 1.15


def estimate_s(cases: int, job: Any) -> tuple[float, float]:
    """The seconds that so many cases take: at least (warm-ups, the shortest sampling, checks), and at most,
    if passes are short. A first guess, used until finished cases tell more. job: of a kind of run that says
    how long a case is sampled."""
    sampling = min(job.budget_s, 0.5)
    layers = 0.5 if getattr(job, "layers", False) else 0.0
    beside = BESIDE + BESIDE_AN_INSTANCE * getattr(job, "instances", 1)
    clocks = 2 if getattr(job, "end_to_end", False) else 1  # samples of both, each of sessions of its own
    least, most = 1.2 * clocks + sampling * clocks + layers, job.budget_s * OVER * clocks + beside
    return cases * least, cases * most
