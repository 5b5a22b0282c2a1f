"""`models list`, `show`, `build`, `quantize` and `remove`: the catalogue, what the user has added to it, and
its models in eight bits."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path

import typer

from bench.commands.given import number
from bench.words.option import Number
from kernels.precision import FP32

app = typer.Typer(no_args_is_help=True, help="The catalogue of models.", rich_markup_mode=None)


@app.command("list")
def list_command() -> None:
    """Every model of the catalogue."""
    from bench.views.tables.grid import Grid
    from bench.views.tables.table import Column, Table
    from bench.words import units
    from bench.words.terminal import console
    from models import catalogue
    from models.catalogue import Entry

    columns: tuple[Column[Entry], ...] = (
        Column("name", title="model", left=True),
        Column("title", left=True),
        Column("input_shape", text=lambda shape: "×".join(map(str, shape)), title="input", left=True),
        Column("dataset", title="data set", left=True),
        Column("accuracy", text=units.percent, title="top-1"),
    )
    table = Table(columns, list(catalogue.entries().values()))
    console().print(Grid(table, wraps={column.name for column in columns}, airy=True))


@app.command("show")
def show_command(
    model: str = typer.Argument(metavar="MODEL", help="A name of the catalogue or an .onnx file."),
    plan: bool = typer.Option(False, "--plan", help="The engine's plan: steps, kernels, memory."),
    batch: int = number(1, "--batch", Number(), "Batch size of the plan."),
    device: str = typer.Option("cpu", metavar="cpu|cuda", help="Device of the plan."),
    precision: str = typer.Option(FP32, metavar="P", help="Precision of the plan."),
) -> None:
    """What a model is: input, data set, provenance, layers."""
    from rich.text import Text

    from bench.questions import messages, model_questions
    from bench.run.options import DEVICES
    from bench.run.progress import callback
    from bench.views.tables.grid import Grid
    from bench.views.tables.table import Column, Table
    from bench.words.option import one_of
    from bench.words.terminal import console

    one_of(device, DEVICES, "--device")
    asked = messages.WhichFacts(model=model, batch=batch, device=device if plan else "", precision=precision)
    found = model_questions.facts(asked, callback())
    for name, text in found.lines:
        console().print(Text(f"{name:<12}", style="bold") + Text(text), soft_wrap=True)
    columns: list[Column[tuple[str, ...]]] = [
        Column(told.name, itemgetter(place), left=not told.right) for place, told in enumerate(found.columns)
    ]
    wraps = {column.name for column in columns}
    console().print(Grid(Table(columns, found.rows), wraps=wraps, airy=True, framed=not plan))
    if found.below:
        console().print(Text(found.below))


@app.command("build")
def build_command(model: str = typer.Argument(metavar="MODEL", help="A name of the catalogue.")) -> None:
    """Build a model's ONNX file into the cache and print its path."""
    from bench.run.progress import callback
    from models import catalogue

    print(catalogue.path(model, callback()))


@app.command("quantize")
def quantize_command(
    model: str = typer.Argument(metavar="MODEL", help="A name of the catalogue or an .onnx file."),
    out: Path | None = typer.Option(
        None, "--out", metavar="FILE", help="Where the file is written; default: MODEL-int8.onnx."
    ),
    images: int = number(
        128, "--images", Number(), "Images on which the ranges of the activations are found."
    ),
    dataset: str | None = typer.Option(
        None,
        "--dataset",
        metavar="NAME|folder:DIR|random",
        help="Whose they are; default: the model's own.",
    ),
    preprocess: str | None = typer.Option(
        None, "--preprocess", metavar="NAME|FILE", help="What is done to an image, as in compare."
    ),
    format: str = typer.Option(
        "qdq",
        "--format",
        metavar="qdq|qoperator",
        help="Each operator between conversions, or operators of whole numbers.",
    ),
    per_channel: bool = typer.Option(
        True,
        "--per-channel/--per-tensor",
        help="Weights by a scale for each output channel, or by one for all.",
    ),
) -> None:
    """Write a model in eight bits, with ONNX Runtime's static quantiser.

    At the end, how many images it still answers right."""
    from rich.text import Text

    from bench.questions import messages, model_questions
    from bench.results.records import stem
    from bench.run.progress import callback
    from bench.words.option import one_of
    from bench.words.terminal import console

    one_of(format, messages.FORMATS, "--format")
    asked = messages.WhichQuantized(
        model=model,
        out=str(out or f"{stem(model)}-int8.onnx"),
        images=images,
        dataset=dataset,
        preprocess=preprocess,
        format=format,
        per_channel=per_channel,
    )
    for name, text in model_questions.quantized(asked, callback()).lines:
        console().print(Text(f"{name:<14}", style="bold") + Text(text), soft_wrap=True)


@app.command("remove")
def remove_command(model: str = typer.Argument(metavar="MODEL", help="A name that was imported.")) -> None:
    """Delete an imported model from the catalogue."""
    from models import imported

    imported.remove(model)
