"""`accuracy`: a model's accuracy over a large data set, in parts on all devices that there are."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bench.commands.given import Given, command
from bench.run import options
from bench.words.option import Number, Option, Text
from kernels.precision import FP32

if TYPE_CHECKING:
    from bench.extras.fleet.parts import Together

AS_COMPARE = ("backend", "precision", "dataset", "preprocess", "labels", "cluster", "gpu")
SUBJECT = "What is measured"
OPTIONS = (
    Option("model", Text(), "A model name or an .onnx file.", "MODEL", group=SUBJECT, argument=True),
    *(option for option in options.COMPARE if option.name in AS_COMPARE),
    Option("batch", Number(most=options.MAX_BATCH), "The batch size.", "N", group=SUBJECT),
    Option("images", Number(), "How many images; default: all.", "N", group="Images and answers"),
    Option("parts", Number(), "In how many parts; default: one a GPU, or one.", "N", group=SUBJECT),
    Option("out", Text(keep=Path), "The folder; an existing one is continued.", "DIR", group=SUBJECT),
)


@command(OPTIONS, "comparison")
def accuracy(
    given: Given,
    model: str = "",
    batch: int = 64,
    images: int = 0,
    parts: int = 0,
    cluster: str = "",
    gpu: str = "",
    out: Path = Path("accuracy"),
) -> int:
    """Count a model's right answers over a data set.

    The set is taken in parts, each on a device of its own. Every image counts once, whatever the parts; times
    are not the point here, and are those of a short look.
    Exit code 0: all parts were counted; 1: one could not be; 2: bad input; 130: cancelled.
    """
    import msgspec

    from bench.commands import measuring
    from bench.extras.fleet import devices
    from bench.extras.fleet import parts as in_parts
    from bench.extras.fleet.cluster import executor_of
    from bench.measure.cases import model_spec
    from bench.questions import model_questions
    from bench.results.records import Job
    from bench.run.kinds.comparison import KIND
    from bench.run.progress import RunProgress, callback
    from kernels.errors import InputError
    from models import datasets

    if not model:
        raise InputError("accuracy needs a model, by name or as an .onnx file: accuracy alexnet-digits")
    asked = {"models": (model,), "backends": (), "batches": (batch,)} | given.lasting | given.fields
    job = Job(**asked, budget_s=0.2, layers=False, tune="none")
    job = msgspec.structs.replace(job, dataset=model_spec(model, job).dataset)
    assert job.dataset is not None
    there = len(datasets.load(job.dataset, None, callback()))
    wanted = in_parts.jobs(job, min(images or there, there), parts or max(1, len(devices.gpus())))
    folders = in_parts.opened(out, wanted, model_questions.cases, measuring.command_line())
    missing = [case for folder in folders for case in folder.missing()]
    total = sum(len(folder.cases) for folder in folders)
    ended = measuring.Ending()
    if missing:
        with RunProgress(KIND, total, total - len(missing), missing, job) as shown:
            ended = in_parts.measure(folders, lambda device: executor_of(device, cluster, 1), shown, gpu)
    found = [measurement for folder in folders for measurement in folder.measurements()]
    left = sum(len(folder.missing()) for folder in folders)
    counted = in_parts.together(found) if found else []
    for one in counted:
        print(_line(one, len(folders)))
    text = json.dumps(
        {"model": model, "dataset": job.dataset, "found": [asdict(one) for one in counted]}, indent=2
    )
    (out / "accuracy.json").write_text(text + "\n", encoding="utf-8")
    print(f"written: {out / 'accuracy.json'}, and a run a part", file=sys.stderr)
    if left:
        print(f"{left} of {total} cases are missing; the same command goes on", file=sys.stderr)
    whole = all(one.parts == len(folders) for one in counted) and bool(counted)
    return ended.status(whole and not left)


def _line(one: Together, parts: int) -> str:
    def share(value: float | None) -> str:
        return "not known" if value is None else f"{value:.2%}"

    name = one.backend if one.precision == FP32 else f"{one.backend} {one.precision}"
    interval = one.top1_interval
    within = f" ({interval[0]:.2%} to {interval[1]:.2%})" if interval else ""
    some = "" if one.parts == parts else f", {one.parts} of {parts} parts alone"
    agrees = f", agrees with the reference in {share(one.agreement)}" if one.agreement is not None else ""
    return (
        f"{name}: top-1 {share(one.top1)}{within}, top-5 {share(one.top5)}{agrees}, on {one.images:,} "
        f"images{some}"
    )


COMMAND = accuracy
