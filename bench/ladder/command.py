"""A ladder's job on a model's node as the command line that runs the same one without a window."""

from __future__ import annotations

import shlex

from bench.ladder.records import LadderJob

_PLAIN = LadderJob(op="", params={}, device="")


def arguments(job: LadderJob) -> list[str]:
    """What follows `python main.py`; options that have the command's own default are left out."""
    words = ["ladder", job.op, "--model", job.model, "--node", job.node, "--batch", str(job.batch)]
    words += ["--device", job.device]
    for rung in job.rungs:
        words += ["--rung", rung]
    if job.precision:
        words += ["--precision", job.precision]
    for folder in job.kernel_dirs:
        words += ["--kernels", folder]
    if job.threads is not None:
        words += ["--threads", str(job.threads)]
    if job.l2 != _PLAIN.l2:
        words += ["--l2", job.l2]
    if job.budget_s != _PLAIN.budget_s:
        words += ["--budget", f"{job.budget_s:g}"]
    if job.timeout_s != _PLAIN.timeout_s:
        words += ["--timeout", f"{job.timeout_s:g}"]
    if job.whole_model:
        words.append("--whole-model")
    return words


def command_line(job: LadderJob) -> str:
    """The whole command, quoted for a shell."""
    return shlex.join(["python", "main.py", *arguments(job)])
