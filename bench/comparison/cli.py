"""`compare`: run models on backends over batch sizes, then a table, charts and a run folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from bench.comparison.kind import RunFolder
    from bench.results.records import Job, Measurement, Run
    from bench.run.client import Spare

DEFAULT_BATCHES = "1..256"
DEFAULT_CHARTS = "png,svg,pdf"


@dataclass(frozen=True)
class Output:
    """What comes of a run beside its folder, and where it is measured. charts: formats, () for none."""

    format: str = "table"
    charts: tuple[str, ...] = ("png", "svg", "pdf")
    layers: bool = False
    bisect: bool = False
    cluster: str = ""
    gpu: str = ""


def compare(
    context: typer.Context,
    models: list[str] | None = typer.Argument(
        None,
        metavar="MODEL",
        help="Model names (see `models list`) or .onnx files (`models show FILE` says what one takes).",
    ),
    backend: list[str] = typer.Option(
        [], metavar="NAME", help="A backend; may be repeated. Default: all that can run here."
    ),
    batch: list[str] = typer.Option(
        [DEFAULT_BATCHES],
        metavar="[MODEL=]N,N,…",
        help="Batch sizes; 1..1024 doubles from 1 to 1024. Repeat with MODEL= for one model only. A file "
        "that fixes "
        "its batch runs at that one.",
    ),
    precision: str = typer.Option("fp32", metavar="P,P,…", help="One or more of fp32, fp32-tc, tf32, fp16."),
    dataset: str = typer.Option(
        "", metavar="NAME|folder:DIR|random", help="Data set; default: the model's own."
    ),
    images: list[str] = typer.Option(
        [], metavar="[MODEL=]N,N,…", help="Number of images for the accuracy; MODEL= as for --batch."
    ),
    preprocess: str = typer.Option(
        "",
        metavar="P",
        help="What is done to an image: unit (0 to 1), raw, imagenet, caffe, MEAN,STD or a .toml file; "
        "default: "
        "what the model's file says of itself, else unit.",
    ),
    labels: str = typer.Option(
        "",
        metavar="FILE|imagenet|alphabetical",
        help="The order of a model file's classes: a text file, a class a line, ImageNet's 1,000, or that of "
        "the names; "
        "default: "
        "what the model's file says, else folders named by number.",
    ),
    scores: str = typer.Option(
        "", metavar="NAME", help="The output that holds the class scores; default: found by its shape."
    ),
    input_: list[str] = typer.Option(
        [],
        "--input",
        metavar="NAME=NUMBER|FILE.npy",
        help="What an input beside the images is given, the same for each image; may be repeated.",
    ),
    dim: list[str] = typer.Option(
        [],
        metavar="[MODEL:]NAME=N",
        help="The size of an axis that a file leaves open, beside its batch (height=224); may be repeated. "
        "Default: guessed from the data set, and told.",
    ),
    threads: int = typer.Option(
        0, metavar="N", show_default=False, help="CPU threads; default: one per core."
    ),
    l2: str = typer.Option("warm", metavar="warm|cold", help="State of the L2 cache before a pass."),
    budget: float = typer.Option(15.0, metavar="S", help="The most seconds of samples per case."),
    timeout: float = typer.Option(
        600.0, metavar="S", help="Abandon a case that is still running after S seconds."
    ),
    instances: int = typer.Option(
        0,
        metavar="N",
        show_default=False,
        help="Sessions of each backend at least, timed in turn; default: 3, and more where they are quickly "
        "made.",
    ),
    layers: bool = typer.Option(False, "--layers", help="Also print the time and errors of every layer."),
    layer_pass: bool = typer.Option(
        True, "--layer-pass/--no-layer-pass", help="Also measure every layer, in separate passes."
    ),
    layer_pass_of: list[str] = typer.Option(
        [],
        metavar="NAME",
        show_default=False,
        help="Measure the layers of this backend alone, which is quicker; may be repeated.",
    ),
    bisect: bool = typer.Option(
        False,
        "--bisect",
        help="Also say at which layer each backend first leaves the reference, and whether by itself.",
    ),
    tune: bool | None = typer.Option(
        None,
        "--tune/--no-tune",
        show_default=False,
        help="Time our kernels for each step once and use the fastest; default: only on CUDA.",
    ),
    tune_reference: bool = typer.Option(
        False,
        "--tune-reference",
        help="Also run ONNX Runtime (CUDA) with its best options, searched once per case and kept.",
    ),
    end_to_end: bool = typer.Option(
        False,
        "--end-to-end",
        help="Also measure host images to host answers: several batches in flight, copies and kernels at "
        "once.",
    ),
    top_k: int | None = typer.Option(
        None,
        metavar="K",
        show_default=False,
        help="With --end-to-end: bring back the K best classes alone, chosen on the device.",
    ),
    rung: list[str] = typer.Option(
        [],
        metavar="[MODEL:]NODE=[cpu/|cuda/]RUNG",
        help="Kernel for a node, in one model or in all, on one device or on both; may be repeated.",
    ),
    kernels: list[str] = typer.Option([], metavar="DIR", help="Folder of your own kernels; may be repeated."),
    resume: Path | None = typer.Option(None, metavar="RUN", help="Continue an unfinished run."),
    retry: bool = typer.Option(
        False, "--retry", help="With --resume: also repeat what crashed or timed out."
    ),
    trust_kernels: bool = typer.Option(
        False, "--trust-kernels", help="With --resume: run the kernels of others that the run names."
    ),
    cluster: str = typer.Option(
        "", metavar="ADDRESS|local", help="Have a Ray cluster do it (needs the extra `cluster`)."
    ),
    gpu: str = typer.Option("", metavar="KIND", help="With --cluster: on this kind of GPU, such as H200."),
    out: Path | None = typer.Option(
        None, metavar="DIR", help="The run folder; default: a dated one in ./runs."
    ),
    charts: str = typer.Option(DEFAULT_CHARTS, metavar="F,F,…", help="Some of png, svg, pdf; or none."),
    output: str = typer.Option("table", "--format", metavar="table|csv|json|md", help="What goes to stdout."),
) -> None:
    """Run models on backends, check the answers, measure the times.

    Leaves a run folder with the measurements and charts; the table goes to standard output. Exit code 0: all
    well; 1: a case failed; 2: bad input; 130: cancelled (what was measured is kept).
    """
    from bench.commands import parsing
    from bench.results import trust
    from bench.results.names import with_distinct_stems
    from bench.results.records import Job
    from bench.run import bounds
    from bench.show.table import FORMATS
    from kernels.errors import InputError
    from models import labels as class_orders

    wanted = Output(
        parsing.one_of(output, FORMATS, "format"), parsing.formats(charts), layers, bisect, cluster, gpu
    )
    parsing.check_cluster(cluster, gpu)
    for option, given in (("--layers", layers), ("--bisect", bisect)):
        if given and not layer_pass:
            raise InputError(
                f"{option} is of the layer pass, which --no-layer-pass skips; leave one of them away"
            )
    if layer_pass_of and not layer_pass:
        raise InputError("--layer-pass-of asks for what --no-layer-pass skips; leave one of them away")
    if top_k is not None and top_k < 1:
        raise InputError(f"--top-k {top_k} is out of range; ask for 1 or more classes")
    if top_k is not None and not end_to_end and resume is None:
        raise InputError("--top-k belongs to --end-to-end; give that too")
    batches, own_batches = parsing.sizes(batch, "batch", parsing.integers(DEFAULT_BATCHES, "batch"))
    counts, own_counts = parsing.sizes(images, "images")
    job = Job(
        models=with_distinct_stems(models or ("lenet5-digits",)),
        backends=parsing.named(backend, "backend"),
        precisions=parsing.names([precision]),
        batches=batches,
        own_batches=own_batches,
        images=counts,
        own_images=own_counts,
        dataset=dataset or None,
        preprocess=(parsing.absolute(preprocess) if preprocess.endswith(".toml") else preprocess) or None,
        labels=class_orders.file_of(labels) or None,
        scores=scores or None,
        inputs=parsing.inputs(input_),
        dims=parsing.dims(dim),
        threads=threads if parsing.given(context, "threads") else None,
        l2=parsing.one_of(l2, ("warm", "cold"), "L2 mode"),  # type: ignore[arg-type]
        budget_s=budget,
        timeout_s=timeout,
        instances=instances if parsing.given(context, "instances") else bounds.INSTANCES,
        layers=layer_pass,
        layers_of=parsing.named(layer_pass_of, "layer-pass-of"),
        tune="cuda" if tune is None else "all" if tune else "none",
        tune_reference=tune_reference,
        end_to_end=end_to_end,
        top_k=top_k or 0,
        rungs=parsing.rungs(rung),
        kernel_dirs=tuple(str(Path(folder).expanduser().absolute()) for folder in kernels),
    )
    if resume is None:
        for option, given in ((trust.OPTION, trust_kernels), ("--retry", retry)):
            if given:
                raise InputError(f"{option} is of a run that is gone on with; give --resume too")
        raise typer.Exit(run_jobs([(job, out)], wanted))
    if out is not None:
        raise InputError("--resume writes into the run it goes on with; leave --out away")
    fields = [field for name, set_ in _FIELDS.items() if parsing.given(context, name) for field in set_]
    raise typer.Exit(go_on(resume, job, fields, wanted, trust_kernels, retry))


# Parameter → the Job's fields that it sets.
_FIELDS = {
    "models": ("models",),
    "backend": ("backends",),
    "batch": ("batches", "own_batches"),
    "precision": ("precisions",),
    "dataset": ("dataset",),
    "images": ("images", "own_images"),
    "preprocess": ("preprocess",),
    "labels": ("labels",),
    "scores": ("scores",),
    "input_": ("inputs",),
    "dim": ("dims",),
    "threads": ("threads",),
    "l2": ("l2",),
    "budget": ("budget_s",),
    "timeout": ("timeout_s",),
    "instances": ("instances",),
    "layer_pass": ("layers",),
    "layer_pass_of": ("layers_of",),
    "tune": ("tune",),
    "tune_reference": ("tune_reference",),
    "end_to_end": ("end_to_end",),
    "top_k": ("top_k",),
    "rung": ("rungs",),
    "kernels": ("kernel_dirs",),
}


def default() -> int:
    """The default comparison; the exit code. Its charts are pictures alone: whoever wants them for a paper
    exports them, and who wants to see what this program does waits for half as long."""
    from bench.run import defaults

    return run_jobs([(defaults.job(), None)], Output(charts=("png",)))


def run_jobs(jobs: Sequence[tuple[Job, Path | None]], output: Output) -> int:
    """Run each job into its folder (None: a new one under ./runs), then show all of it. The exit code."""
    from bench.commands import measuring
    from bench.comparison.kind import KIND as COMPARISON
    from bench.run import client

    # Its libraries are loaded while the cases are planned, which takes as long.
    with client.Spare(COMPARISON, renewed=False) as spare:
        from bench.questions import model_questions
        from bench.results.records import Run
        from bench.run import progress

        warn_twice_installed()
        planned = [
            (Run(job=job, cases=model_questions.cases(job, progress.callback())), out) for job, out in jobs
        ]
        return _run([measuring.begin(COMPARISON, run, out) for run, out in planned], output, spare=spare)


def go_on(
    path: Path, job: Job, fields: Sequence[str], output: Output, trusted: bool = False, retry: bool = False
) -> int:
    """Run what is missing of a run; `fields` of `job` were given and must be those it was started with.
    trusted: the user has agreed to run the kernels that it names, as he has where he named them again. retry:
    what crashed or timed out is missing too."""
    import msgspec

    from bench.commands import measuring
    from bench.comparison.kind import KIND as COMPARISON

    warn_twice_installed()
    held = COMPARISON.open(path).job
    wanted = msgspec.structs.replace(held, **{field: getattr(job, field) for field in fields})
    with measuring.gone_on(COMPARISON, path, wanted, trusted or "kernel_dirs" in fields, retry) as folder:
        return _run([folder], output, retry)


def _run(
    folders: Sequence[RunFolder], output: Output, retry: bool = False, spare: Spare | None = None
) -> int:
    from bench.commands import measuring
    from bench.comparison.saved import print_tables
    from bench.results.rows import in_order
    from bench.show import draw_pool

    if output.charts and any(folder.missing(retry) for folder in folders):
        draw_pool.expect()
    outcome = measuring.measure(folders, retry, output.cluster, output.gpu, spare)
    found = [(folder.header, in_order(folder.header, folder.measurements())) for folder in folders]
    print_tables(found, output.format, output.layers, output.bisect)
    for (run, measurements), folder in zip(found, folders, strict=True):
        _leave(run, measurements, folder.path, output.charts)
        measuring.tell_left(folder)
        measuring.tell_baseline(folder)
    return outcome.status(not failed(found))


def _leave(run: Run, measurements: Sequence[Measurement], path: Path, formats: Sequence[str]) -> None:
    """Draw the charts of a run and say where everything is."""
    print(f"run: {path}", file=sys.stderr)
    if formats and measurements:
        from bench.charts import charts
        from bench.commands import measuring
        from bench.show import draw_together

        measuring.tell_charts(
            path, len(draw_together.write(charts([(run, measurements)]), path / "charts", formats))
        )


def failed(found: Sequence[tuple[Run, Sequence[Measurement]]]) -> bool:
    """Whether a case failed, nothing at all of a model could be measured, or every engine of ours that was
    asked for by name refused a model: that was what was asked, and there is no answer."""
    from bench.results.rows import FAILURES
    from engine import backends

    for run, measured in found:
        named = [name for name in run.job.backends if backends.get(name).reference != name]
        for model in dict.fromkeys(m.case.model for m in measured):
            of = [m for m in measured if m.case.model == model]
            if any(m.disposition in FAILURES for m in of) or not any(m.disposition == "ok" for m in of):
                return True
            ours = [m for m in of if m.case.backend in named]
            if ours and all(m.disposition == "unsupported" for m in ours):
                return True
    return not any(measured for _, measured in found)


def warn_twice_installed() -> None:
    """Say it where onnxruntime and onnxruntime-gpu are both installed: they overwrite each other's files."""
    from bench.commands.checks import both_runtimes

    if (sentence := both_runtimes()) is not None:
        print(f"warning: {sentence}", file=sys.stderr)


COMMAND = compare  # as main.py finds it
