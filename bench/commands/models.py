"""`models list`, `models show` and `models build`: the catalogue."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True, help="The catalogue of models.", rich_markup_mode=None)


@app.command("list")
def list_command() -> None:
    """Every model of the catalogue."""
    from rich import box
    from rich.table import Table

    from bench.commands.terminal import console
    from bench.words import units
    from models import catalogue

    table = Table("model", "title", "input", "data set", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("top-1", justify="right")
    for entry in catalogue.entries().values():
        accuracy = units.percent(entry.accuracy) if entry.accuracy is not None else ""
        shape = "×".join(map(str, entry.input_shape))
        table.add_row(entry.name, entry.title, shape, entry.dataset, accuracy)
    console().print(table)


@app.command("show")
def show_command(
    model: str = typer.Argument(metavar="MODEL", help="A name of the catalogue or an .onnx file."),
    plan: bool = typer.Option(False, "--plan", help="The engine's plan: steps, kernels, memory."),
    batch: int = typer.Option(1, metavar="N", help="Batch size of the plan."),
    device: str = typer.Option("cpu", metavar="cpu|cuda", help="Device of the plan."),
    precision: str = typer.Option("fp32", metavar="P", help="Precision of the plan."),
) -> None:
    """What a model is: input, data set, provenance, layers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from bench.commands import parsing
    from bench.commands.terminal import console
    from bench.questions import model_questions
    from bench.run.progress import callback

    parsing.one_of(device, ("cpu", "cuda"), "device")
    asked = model_questions.WhichFacts(
        model=model, batch=batch, device=device if plan else "", precision=precision
    )
    found = model_questions.facts(asked, callback())
    for name, text in found.lines:
        console().print(Text(f"{name:<12}", style="bold") + Text(text), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=not plan)
    for column in found.columns:
        table.add_column(column.name, justify="right" if column.right else "left")
    for row in found.rows:
        table.add_row(*map(Text, row))
    console().print(table)
    if found.below:
        console().print(Text(found.below))


@app.command("build")
def build_command(model: str = typer.Argument(metavar="MODEL", help="A name of the catalogue.")) -> None:
    """Build a model's ONNX file into the cache and print its path."""
    from bench.run.progress import callback
    from models import catalogue

    print(catalogue.path(model, callback()))
