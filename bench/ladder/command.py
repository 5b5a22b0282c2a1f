"""A ladder's job on a model's node as the command line that runs the same one without a window."""

from __future__ import annotations

import shlex

from bench.ladder.records import LadderJob
from bench.run.command import measuring, several

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
    words += measuring(job, _PLAIN)
    words += several(job.instances)
    if job.whole_model:
        words.append("--whole-model")
    return words


def command_line(job: LadderJob) -> str:
    """The whole command, quoted for a shell."""
    return shlex.join(["python", "main.py", *arguments(job)])
