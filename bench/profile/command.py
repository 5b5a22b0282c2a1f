"""A profile's job as the command line that takes the same one without a window."""

from __future__ import annotations

import shlex

from bench.profile.records import ProfileJob
from bench.run.command import batches

_PLAIN = ProfileJob(model="", backends=())


def arguments(job: ProfileJob) -> list[str]:
    """What follows `python main.py`; options that have the command's own default are left out."""
    words = ["profile", job.model]
    if job.backends:
        words += ["--backend", ",".join(job.backends)]
    words += ["--batch", batches(job.batches)]
    if job.precision != _PLAIN.precision:
        words += ["--precision", job.precision]
    if job.runs != _PLAIN.runs:
        words += ["--runs", str(job.runs)]
    if job.counters:
        words += ["--counters"]
    if job.dataset is not None:
        words += ["--dataset", job.dataset]
    if job.preprocess is not None:
        words += ["--preprocess", job.preprocess]
    if job.threads is not None:
        words += ["--threads", str(job.threads)]
    for node, rung in job.rungs.items():
        words += ["--rung", f"{node}={rung}"]
    for folder in job.kernel_dirs:
        words += ["--kernels", folder]
    if job.budget_s != _PLAIN.budget_s:
        words += ["--budget", f"{job.budget_s:g}"]
    if job.timeout_s != _PLAIN.timeout_s:
        words += ["--timeout", f"{job.timeout_s:g}"]
    return words


def command_line(job: ProfileJob) -> str:
    """The whole command, quoted for a shell."""
    return shlex.join(["python", "main.py", *arguments(job)])
