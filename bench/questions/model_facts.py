"""What `models show` prints of a model: its file, inputs and outputs, its nodes, or the engine's plan for
it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from bench.measure.cases import model_spec
from bench.measure.images import model_file
from bench.measure.images.image_feed import ImageFeed
from bench.questions import model_takes
from bench.questions.messages import ColumnTitle, ModelFacts, WhichFacts
from bench.results.records import Job
from bench.words import units
from engine.cuda.stages import Launches
from engine.graph.graph import Graph
from engine.graph.plan import Plan, Step
from engine.options import Options
from engine.planning import choices, mixed, runs, traffic
from engine.planning.layouts import LayoutRung, Timed
from engine.planning.layouts import read as kept_layouts
from engine.planning.planner import plan
from kernels import layouts
from kernels import precision as precisions
from models import catalogue, names


def facts(asked: WhichFacts, progress: Callable[[str, float | None], None] | None = None) -> ModelFacts:
    """The answer. Raises KernelscopeError where the model cannot be read, or not planned although a plan is
    asked for."""
    job = Job(models=(asked.model,), backends=())
    spec = model_spec(asked.model, job)
    path = spec.file(progress)
    graph, notes = model_file.read(path)
    lines = [("model", spec.name), ("title", spec.title), ("file", str(path)), ("opset", str(graph.opset))]
    feed = ImageFeed(graph, job, spec.preprocess, spec.classes, spec.dataset)
    lines += model_takes.lines(feed)
    lines += [("note", note) for note in notes]
    lines.append(("nodes", str(len(graph.nodes))))
    parameters = sum(int(array.size) for array in graph.initializers.values())
    lines.append(("parameters", f"{parameters:,}"))
    lines.append(("preprocess", feed.named_preprocess))
    lines.append(("data set", spec.dataset))
    if asked.model in names.models():
        entry = catalogue.get(asked.model)
        if entry.accuracy is not None:
            lines.append(("top-1", units.percent(entry.accuracy)))
        lines.append(("provenance", entry.provenance))
    if asked.device:
        precision = precisions.asked(asked.precision)
        planned = _counted(plan(graph, asked.batch, asked.device, precision))
        known = _timed_layouts(graph, planned)
        rows = _steps(planned, _layout_rungs(known, planned))
        told = ""
        if precisions.budget(precision) is not None:
            told = f"{precision}: {mixed.fact(planned, graph, precision, Options())}"
        below = "\n".join(filter(None, (_total(planned), _tried(known, planned), told)))
        return ModelFacts(lines=tuple(lines), columns=_STEPS, rows=rows, below=below)
    return ModelFacts(lines=tuple(lines), columns=_NODES, rows=_nodes(graph))


def _counted(made: Plan) -> Plan:
    """The plan with the bytes that its steps move. On the CPU all is float32, as operators count it."""
    if made.device != "cuda":
        return made
    launches = Launches(Options())
    return replace(
        made, steps=traffic.planned_traffic(made, [launches.of_step(step)[1] for step in made.steps])
    )


_NODES = tuple(map(ColumnTitle, ("node", "op", "inputs", "output")))
_STEPS = (
    *map(ColumnTitle, ("step", "nodes", "kernel", "chosen", "output", "layout")),
    *(ColumnTitle(name, right=True) for name in ("FLOPs", "bytes")),
)


def _nodes(graph: Graph) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (node.name, node.op_type, ", ".join(filter(None, node.inputs)), ", ".join(node.outputs))
        for node in graph.nodes
    )


def _timed_layouts(graph: Graph, made: Plan) -> Timed | None:
    """What is known on this machine of the plan's layouts."""
    if not any(step.writes != layouts.PLAIN for step in made.steps):
        return None
    return kept_layouts(plan(graph, made.batch, made.device, made.precision, Options(layouts="none")))


def _layout_rungs(known: Timed | None, made: Plan) -> dict[int, LayoutRung]:
    """The steps whose rungs were timed to be the fastest in their layouts, by index."""
    return (
        {} if known is None else {better.place: better for better in known.rungs if better.is_of(made.steps)}
    )


def _tried(known: Timed | None, made: Plan) -> str:
    """Which rungs were tried in their steps' layouts, and their times."""
    by_place: dict[int, list[str]] = {}
    for tried in known.tried if known is not None else ():
        if tried.place < len(made.steps):
            result = units.duration(tried.time_ns) if tried.time_ns else f"none ({tried.refused})"
            by_place.setdefault(tried.place, []).append(f"{tried.rung} {result}")
    steps = "; ".join(f"{made.steps[place].name} {', '.join(result)}" for place, result in by_place.items())
    return f"timed in the layouts: {steps}" if steps else ""


def _steps(made: Plan, better: Mapping[int, LayoutRung]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            step.name,
            ", ".join(step.nodes),
            f"{step.op}/{step.rung}" + (f" in {step.precision}" if made.mixed or made.finer(step) else ""),
            _chosen(made, step, better.get(place)),
            "×".join(map(str, made.tensors[step.output].shape)),
            _layout(made, step),
            units.si(step.params.flops),
            units.nbytes(step.nbytes),
        )
        for place, step in enumerate(made.steps)
    )


def _layout(made: Plan, step: Step) -> str:
    """The layout of a step's output: the order of the axes, if they are those of images, and the type."""
    spec = made.tensors[step.output]
    if step.writes != layouts.PLAIN:
        return step.writes
    return f"nchw {spec.dtype}" if step.params.images and len(spec.shape) == 4 else spec.dtype


def _total(made: Plan) -> str:
    return (
        f"batch {made.batch:,} on {made.device} in {made.precision}: kernels {made.chosen_words}; "
        f"weights {units.nbytes(made.weights_nbytes)}, activations {units.nbytes(made.arena_nbytes)}, "
        f"peak {units.nbytes(made.peak_nbytes)}{_as_one(made)}{'; ' * bool(made.turns)}{made.turns_words}"
    )


def _as_one(made: Plan) -> str:
    """Which steps are one kernel, where that was timed to be faster here."""
    run = runs.longest(made) if made.device == "cuda" else None
    known = runs.read(made, run) if run is not None else None
    if run is None or known is None or known.taken is None:
        return ""
    return (
        f"; {len(run.steps)} steps as one kernel in fp32 ({known.taken.words}), timed: a pass "
        f"{units.duration(known.one_ns)}, {units.duration(known.apart_ns)} one by one"
    )


def _chosen(plan: Plan, step: Step, better: LayoutRung | None) -> str:
    """What chose a step's kernel; for a timed one, by how much and when."""
    if better is not None:
        times = f"{units.duration(better.time_ns)} ({better.own} {units.duration(better.own_ns)})"
        return f"timed in a pass: {times}" if better.whole else f"timed in its layout: {times}"
    if step.chosen != "timed":
        words = {"ladder": "by the ladder", "layout": "for its layout"}
        return words.get(step.chosen, step.chosen)
    known = all(plan.holder(name) in plan.weights for name in step.inputs[1:])
    rungs = choices.candidates(plan.device, step.params, step.asked, known)
    choice = choices.read(plan.device, step.params, step.asked, rungs)
    own = choice.of(choice.best) if choice else None
    if choice is None or own is None or own.ns is None:
        return "timed"
    text = f"timed {choice.chosen_at[:10]}: {units.duration(own.ns)}"
    ladder = choice.of(choice.default)
    if choice.default != choice.best and ladder is not None and ladder.ns:
        text += f" ({choice.default} {units.duration(ladder.ns)})"
    return text
