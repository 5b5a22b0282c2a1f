"""What was typed → a profile's job and cases; everything wrong with it is said here, before anything runs."""

from __future__ import annotations

import msgspec

from bench.measure import cases, rung_check
from bench.results.profile_records import ProfileJob, planned
from bench.results.records import Case, Job
from bench.run import options
from bench.words.option import check
from engine.graph import importer


def plan(job: ProfileJob) -> tuple[ProfileJob, tuple[Case, ...]]:
    """The job with its backends filled in and its model by its name, and its cases. Raises InputError, one
    sentence. A backend asked for by name that cannot run here keeps its cases, as long as another can."""
    asked = Job(
        models=(job.model,),
        backends=job.backends,
        precisions=(job.precision,),
        max_error=job.max_error,
        batches=job.batches,
        dataset=job.dataset,
        preprocess=job.preprocess,
        threads=job.threads,
        budget_s=job.budget_s,
        timeout_s=job.timeout_s,
        rungs=job.rungs,
        kernel_dirs=job.kernel_dirs,
    )
    cases.check(asked)
    check(job, options.PROFILE)
    spec = cases.model_spec(job.model, asked)
    if spec.path is not None:
        importer.load(spec.path)  # a broken file is told now
    chosen = cases.choose_backends(job.backends)
    rung_check.check(asked, [spec], chosen)
    cases.default_images(spec)  # images that cannot be had are told now as well
    job = msgspec.structs.replace(
        job,
        model=spec.name,
        backends=tuple(backend.name for backend in chosen),
        batches=tuple(sorted(set(job.batches))),
    )
    return job, planned(job)
