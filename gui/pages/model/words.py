"""A preview as the Model page shows it: boxes and arrows, what is said of a node and of the model, tables.
From records alone, without Qt."""

from __future__ import annotations

from collections.abc import Sequence

from bench.questions.preview import Preview, PreviewNode, Run, Tensor, Weight
from bench.views.charts import breakdown
from bench.views.tables.table import Column, Table
from bench.words import units
from gui.pages.model.facts import FAILED, Section
from gui.widgets.graph.items import Box

INPUT, OUTPUT = "input:", "output:"  # before the names of the model's ends, as keys of the graph


def engine(device: str) -> str:
    """The backend of ours on a device."""
    return f"engine-{device}"


def shape_text(shape: Sequence[int | str | None]) -> str:
    return " × ".join("?" if size is None else str(size) for size in shape) if shape else "one value"


def boxes(preview: Preview) -> tuple[list[Box], list[tuple[str, str]]]:
    """The nodes with the model's ends, in an order in which every arrow leads forward; and the arrows."""
    found = [Box(INPUT + t.name, f"{t.name}  {shape_text(t.shape)}", plain=True) for t in preview.inputs]
    made = {t.name: INPUT + t.name for t in preview.inputs}
    edges: list[tuple[str, str]] = []
    for node in preview.nodes:
        name = "" if node.name == node.op else node.name
        found.append(Box(node.name, node.op, name, shape_text(node.shape) if node.shape else ""))
        edges += [(made[tensor], node.name) for tensor in dict.fromkeys(node.inputs) if tensor in made]
        made.update((tensor, node.name) for tensor in node.outputs)
    for tensor in preview.outputs:
        if tensor.name in made:
            key = OUTPUT + tensor.name
            found.append(Box(key, f"{tensor.name}  {shape_text(tensor.shape)}", plain=True))
            edges.append((made[tensor.name], key))
    return found, edges


def family(node: PreviewNode) -> str:
    """A key of bench.words.palette.CATEGORIES: conv, pool, fc or other."""
    return breakdown.category_of(node.op)


def run_words(run: Run | None, node: str) -> str:
    """What our engine does for a node, or why not."""
    if run is None:
        return ""
    if run.refused:
        return FAILED + run.refused
    if run.note:
        return run.note
    others = [name for name in run.nodes if name != node]
    beside = f", in one step with {', '.join(others)}" if others else ""
    words = {"ladder": "by the ladder", "timed": "timed to be the fastest here", "layout": "for its layout"}
    how = words.get(run.chosen, run.chosen)
    return f"{run.kernel} ({how}){beside}"


def kernel_words(run: Run | None) -> str | None:
    """The same for a table's cell."""
    if run is None:
        return None
    return FAILED + "no kernel" if run.refused else run.kernel or run.note.partition(":")[0]


def refused(node: PreviewNode) -> bool:
    return any(run.refused for run in node.runs.values())


def tip(node: PreviewNode) -> str:
    lines = [f"{node.op} {node.name}"]
    lines += [f"{engine(d)}: {run_words(run, node.name)}" for d, run in node.runs.items()]
    return "\n".join(lines)


def searched(preview: Preview) -> list[tuple[str, str]]:
    """For each box its key and the text in which it is found."""
    found = [(INPUT + t.name, t.name) for t in preview.inputs]
    for node in preview.nodes:
        parts = [node.name, node.op, node.domain, *node.inputs, *node.weights, *node.outputs]
        parts += [f"{name} {value}" for name, value in node.attributes]
        parts += [run.kernel for run in node.runs.values()]
        found.append((node.name, "\n".join(parts)))
    return found + [(OUTPUT + t.name, t.name) for t in preview.outputs]


# ---------------------------------------------------------------------------------------------- sections


def of_model(preview: Preview) -> list[Section]:
    taken = [pair for pair in preview.takes.lines if pair[0] not in ("input", "output", "batch")]
    if preview.takes.refused:
        taken.append(("but", FAILED + preview.takes.refused))
    batch = preview.takes.fixed_batch
    return [
        ("File", preview.facts),
        ("Inputs and outputs", [
            *(("input", f"{t.name}: {_tensor(t)}") for t in preview.inputs),
            *(("output", f"{t.name}: {_tensor(t)}") for t in preview.outputs),
            ("batch size", f"{batch} alone: the file fixes it" if batch else "any"),
        ]),
        ("An image and its answer", taken),
        (f"What our engine runs at batch {preview.batch:,} in {preview.precision}", [
            (engine(d), (FAILED if words.startswith("does not") else "") + words)
            for d, words in preview.devices.items()
        ]),
        ("Not shown", [("too many", f"{preview.left_out:,} nodes and weights")] if preview.left_out else []),
    ]  # fmt: skip


def of_node(preview: Preview, key: str) -> list[Section]:
    """Of a box of the graph; nothing where there is none of this key."""
    for kind, words, tensors in (
        (INPUT, "Input of the model", preview.inputs),
        (OUTPUT, "Output of the model", preview.outputs),
    ):
        for tensor in tensors:
            if key == kind + tensor.name:
                return [(words, [("name", tensor.name), ("holds", _tensor(tensor))])]
    node = next((node for node in preview.nodes if node.name == key), None)
    if node is None:
        return []
    weights = {weight.name: weight for weight in preview.weights}
    return [
        (node.op, [
            ("name", node.name),
            *([("domain", node.domain)] if node.domain else []),
            *([("output shape", shape_text(node.shape))] if node.shape else []),
        ]),
        ("What our engine runs", _runs(node)),
        ("Attributes", node.attributes),
        ("Inputs", [("tensor", name) for name in node.inputs]),
        ("Weights", [(name, weight_words(weights[name])) for name in node.weights if name in weights]),
        ("Outputs", [("tensor", name) for name in node.outputs]),
    ]  # fmt: skip


def _runs(node: PreviewNode) -> list[tuple[str, str]]:
    """Devices of which the same is to be said stand together."""
    found: dict[str, list[str]] = {}
    for device, run in node.runs.items():
        found.setdefault(run_words(run, node.name), []).append(engine(device))
    return [("\n".join(devices), told) for told, devices in found.items()]


def _tensor(tensor: Tensor) -> str:
    return f"{tensor.dtype}, {shape_text(tensor.shape)}"


def weight_words(weight: Weight) -> str:
    words = f"{weight.dtype}, {shape_text(weight.shape)}"
    if weight.counts:
        words += f"; {weight.low:.4g} to {weight.high:.4g}"
    return words


def spread_words(weight: Weight) -> str:
    """Below a histogram."""
    if not weight.counts:
        return "Its values are no numbers to count."
    parts = [f"mean {weight.mean:.4g}, standard deviation {weight.std:.4g}"]
    if weight.zeros:
        parts.append(f"{units.percent(weight.zeros, 1)} are 0")
    if weight.not_finite:
        parts.append(f"{weight.not_finite:,} are NaN or infinite")
    if weight.taken < weight.elements:
        parts.append(f"of {weight.taken:,} values, evenly spread over {weight.elements:,}")
    return "; ".join(parts)


# ------------------------------------------------------------------------------------------------ tables


def nodes_table(preview: Preview) -> Table[PreviewNode]:
    sizes = {weight.name: weight.elements for weight in preview.weights}
    place = {node.name: index for index, node in enumerate(preview.nodes, start=1)}

    def runs(device: str) -> Column[PreviewNode]:
        return Column(
            f"{device} kernel",
            lambda node: kernel_words(node.runs.get(device)),
            title=engine(device),
            tip=f"what {engine(device)} runs for the node, or why it runs nothing",
            left=True,
        )

    columns: tuple[Column[PreviewNode], ...] = (
        Column("place", lambda node: place[node.name], title="#"),
        Column("node", lambda node: node.name, left=True),
        Column("op", left=True),
        Column("shape", lambda n: shape_text(n.shape) if n.shape else None, title="output shape", left=True),
        *map(runs, preview.devices),
        Column("parameters", lambda n: sum(sizes.get(name, 0) for name in n.weights) or None),
    )
    return Table(columns, preview.nodes)


def weights_table(preview: Preview) -> Table[Weight]:
    columns: tuple[Column[Weight], ...] = (
        Column("weight", lambda weight: weight.name, left=True),
        Column("shape", lambda weight: shape_text(weight.shape), left=True),
        Column("dtype", title="type", left=True),
        Column("elements"),
        Column("nbytes", text=units.nbytes, title="bytes"),
        Column("low", lambda w: w.low if w.counts else None, _figure, title="lowest"),
        Column("high", lambda w: w.high if w.counts else None, _figure, title="highest"),
        Column("mean", lambda w: w.mean if w.counts else None, _figure),
        Column("std", lambda w: w.std if w.counts else None, _figure, title="deviation"),
        Column("zeros", lambda w: w.zeros or None, lambda value: units.percent(value, 1), title="zeros"),
        Column("not_finite", lambda w: w.not_finite or None, title="not finite", tip="NaN or infinite"),
    )
    return Table(columns, preview.weights)


def _figure(value: float) -> str:
    return f"{value:.3g}"
