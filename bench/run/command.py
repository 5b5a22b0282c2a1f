"""A job as the command line that runs the same comparison without a window."""

from __future__ import annotations

import itertools
import shlex
from typing import Any

from bench.results.records import Job
from bench.run.bounds import INSTANCES

_PLAIN = Job(models=(), backends=())


def arguments(job: Job) -> list[str]:
    """What follows `python main.py`; options that have the command's own default are left out."""
    words = ["compare", *job.models]
    for backend in job.backends:
        words += ["--backend", backend]
    words += ["--batch", batches(job.batches)]
    for model, own in job.own_batches.items():
        words += ["--batch", f"{model}={batches(own)}"]
    if job.precisions != _PLAIN.precisions:
        words += ["--precision", ",".join(job.precisions)]
    if job.dataset is not None:
        words += ["--dataset", job.dataset]
    if job.images:
        words += ["--images", ",".join(map(str, job.images))]
    for model, own in job.own_images.items():
        words += ["--images", f"{model}={','.join(map(str, own))}"]
    if job.preprocess is not None:
        words += ["--preprocess", job.preprocess]
    words += measuring(job, _PLAIN)
    words += several(job.instances)
    if not job.layers:
        words.append("--no-layer-pass")
    if job.tune != _PLAIN.tune:
        words.append("--no-tune" if job.tune == "none" else "--tune")
    if job.tune_reference:
        words.append("--tune-reference")
    for node, rung in job.rungs.items():
        words += ["--rung", f"{node}={rung}"]
    for folder in job.kernel_dirs:
        words += ["--kernels", folder]
    return words


def command_line(job: Job) -> str:
    """The whole command, quoted for a shell."""
    return shlex.join(["python", "main.py", *arguments(job)])


def measuring(job: Any, plain: Any) -> list[str]:
    """The options of how a job is measured that differ from a plain one's, of the same kind."""
    words = []
    if job.threads is not None:
        words += ["--threads", str(job.threads)]
    if job.l2 != plain.l2:
        words += ["--l2", job.l2]
    if job.budget_s != plain.budget_s:
        words += ["--budget", f"{job.budget_s:g}"]
    if job.timeout_s != plain.timeout_s:
        words += ["--timeout", f"{job.timeout_s:g}"]
    return words


def several(instances: int) -> list[str]:
    """The option of how many instances of each are timed, where they are not as many as commands take."""
    return [] if instances == INSTANCES else ["--instances", str(instances)]


def batches(values: tuple[int, ...]) -> str:
    """Batch sizes as the option takes them: "1..256" where they double, else "1,100,10000"."""
    doubling = all(later == 2 * earlier for earlier, later in itertools.pairwise(values))
    if len(values) > 2 and doubling:
        return f"{values[0]}..{values[-1]}"
    return ",".join(map(str, values))
