"""`accuracy`: a model's accuracy over a large data set, in parts on all devices that there are."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from bench.extras.fleet.parts import Together


def accuracy(
    model: str = typer.Argument(metavar="MODEL", help="A model name or an .onnx file."),
    backend: list[str] = typer.Option([], metavar="NAME", help="A backend; may be repeated."),
    dataset: str = typer.Option("", metavar="NAME|folder:DIR", help="Data set; default: the model's own."),
    images: int = typer.Option(0, metavar="N", show_default=False, help="How many; default: all."),
    parts: int | None = typer.Option(
        None, "--parts", metavar="N", min=1, help="In how many parts; default: one a GPU, or one."
    ),
    batch: int = typer.Option(64, metavar="N", help="Batch size."),
    precision: str = typer.Option("fp32", metavar="P,P,…", help="One or more of fp32, fp32-tc, tf32, fp16."),
    preprocess: str = typer.Option("", metavar="P", help="As for compare."),
    labels: str = typer.Option("", metavar="FILE|imagenet|alphabetical", help="As for compare."),
    cluster: str = typer.Option("", metavar="ADDRESS|local", help="A Ray cluster; default: this machine."),
    gpu: str = typer.Option("", metavar="KIND", help="With --cluster: on this kind of GPU, such as H200."),
    out: Path = typer.Option(
        Path("accuracy"), metavar="DIR", help="The folder; an existing one is continued."
    ),
) -> None:
    """Count a model's right answers over a data set.

    The set is taken in parts, each on a device of its own. Every image counts once, whatever the parts; times
    are not the point here, and are those of a short look.
    Exit code 0: all parts were counted; 1: one could not be; 2: bad input; 130: cancelled.
    """
    import msgspec

    from bench.commands import measuring, parsing
    from bench.comparison.kind import KIND
    from bench.extras.fleet import devices
    from bench.extras.fleet import parts as in_parts
    from bench.extras.fleet.cluster import executor_of
    from bench.measure.cases import model_spec
    from bench.questions import model_questions
    from bench.results.records import Job
    from bench.run.progress import RunProgress, callback
    from models import datasets
    from models import labels as class_orders

    parsing.check_cluster(cluster, gpu)
    job = Job(
        models=(model,),
        backends=parsing.named(backend, "backend"),
        precisions=parsing.names([precision]),
        batches=(batch,),
        dataset=dataset or None,
        preprocess=(parsing.absolute(preprocess) if preprocess.endswith(".toml") else preprocess) or None,
        labels=class_orders.file_of(labels) or None,
        budget_s=0.2,
        layers=False,
        tune="none",
    )
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
    raise typer.Exit(ended.status(whole and not left))


def _line(one: Together, parts: int) -> str:
    def share(value: float | None) -> str:
        return "not known" if value is None else f"{value:.2%}"

    name = one.backend if one.precision == "fp32" else f"{one.backend} {one.precision}"
    interval = one.top1_interval
    within = f" ({interval[0]:.2%} to {interval[1]:.2%})" if interval else ""
    some = "" if one.parts == parts else f", {one.parts} of {parts} parts alone"
    agrees = f", agrees with the reference in {share(one.agreement)}" if one.agreement is not None else ""
    return (
        f"{name}: top-1 {share(one.top1)}{within}, top-5 {share(one.top5)}{agrees}, on {one.images:,} "
        f"images{some}"
    )


COMMAND = accuracy
