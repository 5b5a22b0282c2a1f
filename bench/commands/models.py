"""`models list`, `models show` and `models build`: the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from engine.graph import Graph
    from engine.plan import Plan, Step

app = typer.Typer(no_args_is_help=True, help="The catalogue of models.", rich_markup_mode=None)


@app.command("list")
def list_command() -> None:
    """Every model of the catalogue."""
    from rich import box
    from rich.table import Table

    from bench import units
    from bench.commands.terminal import console
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
    from rich.text import Text

    from bench import units
    from bench.cases import model_spec
    from bench.commands import parsing
    from bench.commands.terminal import console
    from bench.progress import callback
    from bench.records import Job
    from engine import importer
    from models import catalogue, names

    parsing.one_of(device, ("cpu", "cuda"), "device")
    spec = model_spec(model, Job(models=(model,), backends=()))
    path = spec.file(callback())
    graph = importer.load(path)
    lines = [("model", spec.name), ("title", spec.title), ("file", str(path)), ("opset", str(graph.opset))]
    for kind, infos in (("input", graph.inputs), ("output", graph.outputs)):
        for info in infos:
            shape = " × ".join(
                "batch" if i == 0 and not isinstance(d, int) else str(d) for i, d in enumerate(info.shape)
            )
            lines.append((kind, f"{info.name}: {info.dtype}, {shape}"))
    lines.append(("nodes", str(len(graph.nodes))))
    parameters = sum(int(array.size) for array in graph.initializers.values())
    lines.append(("parameters", f"{parameters:,}"))
    lines.append(("preprocess", spec.preprocess))
    lines.append(("data set", spec.dataset))
    if model in names.models():
        entry = catalogue.get(model)
        if entry.accuracy is not None:
            lines.append(("top-1", units.percent(entry.accuracy)))
        lines.append(("provenance", entry.provenance))
    table = _plan(graph, batch, device, precision) if plan else _nodes(graph)
    for name, text in lines:
        console().print(Text(f"{name:<12}", style="bold") + Text(text), soft_wrap=True)
    console().print(table)


@app.command("build")
def build_command(model: str = typer.Argument(metavar="MODEL", help="A name of the catalogue.")) -> None:
    """Build a model's ONNX file into the cache and print its path."""
    from bench.progress import callback
    from models import catalogue

    print(catalogue.path(model, callback()))


def _nodes(graph: Graph) -> RenderableType:
    from rich import box
    from rich.table import Table

    table = Table("node", "op", "inputs", "output", box=box.SIMPLE_HEAD, pad_edge=False)
    for node in graph.nodes:
        table.add_row(node.name, node.op_type, ", ".join(filter(None, node.inputs)), ", ".join(node.outputs))
    return table


def _plan(graph: Graph, batch: int, device: str, precision: str) -> RenderableType:
    from rich import box
    from rich.console import Group
    from rich.table import Table

    from bench import units
    from engine.planner import plan

    made = plan(graph, batch, device, precision)
    table = Table("step", "nodes", "kernel", "chosen", "output", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("FLOPs", justify="right")
    table.add_column("bytes", justify="right")
    for step in made.steps:
        shape = "×".join(map(str, made.tensors[step.output].shape))
        flops = units.si(step.params.flops)
        table.add_row(
            step.name,
            ", ".join(step.nodes),
            f"{step.op}/{step.rung}",
            _chosen(made, step),
            shape,
            flops,
            units.nbytes(step.params.nbytes),
        )
    total = (
        f"batch {batch:,} on {device} in {precision}: kernels {made.chosen_words}; "
        f"weights {units.nbytes(made.weights_nbytes)}, activations {units.nbytes(made.arena_nbytes)}, "
        f"peak {units.nbytes(made.peak_nbytes)}"
    )
    return Group(table, total)


def _chosen(plan: Plan, step: Step) -> str:
    """What chose a step's kernel; of a timed one, by how much and when."""
    from bench import units
    from engine import choices

    if step.chosen != "timed":
        return {"ladder": "by the ladder"}.get(step.chosen, step.chosen)
    known = all(plan.holder(name) in plan.weights for name in step.inputs[1:])
    rungs = choices.candidates(plan.device, step.params, plan.precision, known)
    kept = choices.read(plan.device, step.params, plan.precision, rungs)
    own = kept.of(kept.rung) if kept else None
    if kept is None or own is None or (own.time_ns or own.first_ns) is None:
        return "timed"
    text = f"timed {kept.timed_at[:10]}: {units.duration(own.time_ns or own.first_ns or 0.0)}"
    ladder = kept.of(kept.ladder)
    if kept.ladder != kept.rung and ladder is not None and (ladder.time_ns or ladder.first_ns):
        text += f" ({kept.ladder} {units.duration(ladder.time_ns or ladder.first_ns or 0.0)})"
    return text
