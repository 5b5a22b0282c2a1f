"""What a job may ask for, and about how long it takes: known without a model or a backend at hand."""

from __future__ import annotations

from bench.results.records import Job

MAX_BATCH = 100_000
MAX_IMAGES = 1_000_000
MAX_THREADS = 4096
MAX_INSTANCES = 100
# How many sessions of each contender are timed where nobody says how many.
INSTANCES = 3


def count(job: Job, backends: int) -> int:
    """How many cases the job means on that many backends, before any is refused."""
    a_size = backends * len(set(job.precisions))
    return sum(
        a_size * len(set(job.batches_of(model))) * len(set(job.images_of(model)) or {None})
        for model in set(job.models)
    )


def estimate_s(cases: int, job: Job) -> float:
    """Seconds that many cases take at the least: warm-ups, the shortest sampling, checks; a first guess,
    until cases that are done tell better."""
    sampling = min(job.budget_s, 0.5)
    layers = 0.5 if job.layers else 0.0
    return cases * (1.2 + sampling + layers)
