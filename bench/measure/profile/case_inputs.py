"""A profile's case as a comparison has it: its job, and a full batch of its inputs."""

from __future__ import annotations

import numpy as np

from bench.measure.loaded_model import LoadedModel
from bench.results.profile_records import ProfileJob
from bench.results.records import Case, Job

IMAGES = 64  # different ones at the most; a larger batch repeats them


def asked(job: ProfileJob, case: Case) -> Job:
    """A profile's job as one of comparisons, for one case."""
    return Job(
        models=(job.model,),
        backends=(case.backend,),
        precisions=(job.precision,),
        batches=(case.batch,),
        dataset=job.dataset,
        preprocess=job.preprocess,
        threads=job.threads,
        layers=False,
        cuda_graph=job.cuda_graph,
        rungs=dict(job.rungs),
        kernel_dirs=job.kernel_dirs,
        seed=job.seed,
    )


def batch_inputs(loaded: LoadedModel, batch: int) -> dict[str, np.ndarray]:
    """A full batch of the job's images, or of random numbers where the model takes no images."""
    if not loaded.takes_images:
        given = ((name, loaded.graph.batch_axes.get(name, 0), a) for name, a in loaded.given().items())
        return {name: np.take(a, np.arange(batch) % a.shape[axis], axis) for name, axis, a in given}
    pixels = loaded.feed.first_pixels(loaded.dataset(min(batch, IMAGES)), min(batch, IMAGES))
    return loaded.feed.inputs(np.ascontiguousarray(pixels[np.arange(batch) % len(pixels)]))
