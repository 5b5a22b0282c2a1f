"""What our engine would run for each node of a model on one device, or why it cannot: for all nodes, where a
plan stops at the first refused one."""

from __future__ import annotations

from collections import Counter

from bench.questions.preview import Run
from bench.words import units
from engine.graph.graph import Graph, Node
from engine.graph.plan import Plan
from engine.graph.shapes import infer_node
from engine.ops import LISTED, Kernel, View
from engine.options import Options
from engine.passes import known
from engine.passes.trace import advance, start
from engine.planning.planner import Choose, Chosen, ladder_choice, plan
from kernels import registry
from kernels.errors import InputError, UnsupportedError
from kernels.ops import Params
from kernels.precision import FP32, budget

FOLDED = "computed once, before the first run"
VIEW = "nothing to run: another view of the same bytes"
DEAD = "left out: no output depends on it"
UNKNOWN = "not known: a node before it has no kernel, so the shape of its input is not known"
# Whose operators ONNX Runtime has; those of others come from a library that a program of one's own loads.
ITS_DOMAINS = ("", "ai.onnx", "com.microsoft")
Runs = dict[str, Run]


def runs(graph: Graph, batch: int, device: str, precision: str) -> tuple[Runs, str]:
    """By the node's name; and a sentence for the whole model. A precision that the device does not have
    becomes fp32."""
    if budget(precision) is None and not registry.offers(device, precision):
        precision = FP32
    choose = _with_reason(ladder_choice(Options()))
    try:
        planned = plan(graph, batch, device, precision, choose=choose)
    except InputError as error:
        return {}, f"does not run it: {error}"
    except UnsupportedError:
        return _one_by_one(graph, batch, device, precision, choose)
    return _planned(graph, planned)


def _with_reason(usual: Choose) -> Choose:
    """Chooses a rung as `usual`; if there is none, the reason stands in `by`."""

    def choose(device: str, wanted: Params, node: str, weights_known: bool, asked: str) -> Chosen:
        try:
            return usual(device, wanted, node, weights_known, asked)
        except UnsupportedError as error:
            return Chosen("", str(error))

    return choose


def _run(op: str, chosen: Chosen, nodes: tuple[str, ...], before: Run | None) -> Run:
    """One kernel of a node, added to what the node has already."""
    if not chosen.rung:
        return Run(nodes=nodes, refused=chosen.by)
    kernel, by = f"{op}/{chosen.rung}", chosen.by
    if before is None:
        return Run(kernel=kernel, chosen=by, nodes=nodes)
    if before.refused:
        return before
    every = tuple(dict.fromkeys([*before.nodes, *nodes]))
    return Run(kernel=f"{before.kernel} + {kernel}", chosen=before.chosen, nodes=every)


def _planned(graph: Graph, made: Plan) -> tuple[Runs, str]:
    by_node: Runs = {}
    for step in made.steps:
        for name in step.nodes:
            by_node[name] = _run(step.op, Chosen(step.rung, step.chosen), step.nodes, by_node.get(name))
    constants = known(graph, made.batch).constants
    for node in graph.nodes:
        if node.name not in by_node:
            folded = all(name in constants for name in node.outputs if name)
            view = any(name in made.aliases for name in node.outputs)
            by_node[node.name] = Run(note=FOLDED if folded else VIEW if view else DEAD)
    if any(run.refused for run in by_node.values()):
        return by_node, _refused(graph, by_node)
    words = (
        f"{len(made.steps)} step{'s' * (len(made.steps) != 1)}; weights {units.nbytes(made.weights_nbytes)}, "
        f"activations {units.nbytes(made.arena_nbytes)}"
    )
    return by_node, words


def _one_by_one(graph: Graph, batch: int, device: str, precision: str, choose: Choose) -> tuple[Runs, str]:
    """Each node as if it ran alone; what would be fused is not known."""
    try:
        scope = start(graph, batch)
    except UnsupportedError as error:
        return {}, f"does not run it: {error}"
    by_node: Runs = {}
    for node in graph.nodes:
        try:
            lowered = advance(node, scope, graph)
        except UnsupportedError as error:
            unknown = any(name not in scope.specs for name in node.reads)
            by_node[node.name] = Run(note=UNKNOWN) if unknown else Run(refused=_reason(str(error), node))
            scope.specs.update(infer_node(node, scope.specs, scope.constants, graph))
            continue
        if lowered is None:
            by_node[node.name] = Run(note=FOLDED)
            continue
        for item in lowered.items:
            if isinstance(item, View):
                by_node.setdefault(node.name, Run(note=VIEW))
            elif isinstance(item, Kernel):
                known_weights = all(name in scope.constants for name in item.inputs[1:])
                chosen = choose(device, item.params, node.name, known_weights, precision)
                before = by_node.get(node.name)
                before = None if before is not None and before.note else before
                by_node[node.name] = _run(item.params.op, chosen, (node.name,), before)
    return by_node, _refused(graph, by_node)


def _reason(text: str, node: Node) -> str:
    """The reason without the name of the node and without where the operators are listed."""
    text = text.removeprefix(f"node {node.name!r} ({node.op_type}): ")
    return text.removesuffix(f"; {LISTED}")


def _refused(graph: Graph, found: Runs) -> str:
    ops = Counter(node.op_type for node in graph.nodes if found.get(node.name, Run()).refused)
    if not ops:
        return "does not run it, though each node alone has a kernel"
    named = ", ".join(f"{op} × {n}" if n > 1 else op for op, n in ops.most_common(6))
    more = ", …" if len(ops) > 6 else ""
    count = sum(ops.values())
    foreign = dict.fromkeys(node.domain for node in graph.nodes if not _is_its_own(node.domain))
    return (
        f"does not run it: {count:,} of {len(graph.nodes):,} nodes {'has' if count == 1 else 'have'} no "
        f"kernel ({named}{more}); "
        + (
            f"nor has ONNX Runtime operators of {', '.join(foreign)}"
            if foreign
            else "ONNX Runtime runs it alone"
        )
    )


def _is_its_own(domain: str) -> bool:
    return domain in ITS_DOMAINS or domain.startswith(tuple(f"{of}." for of in ITS_DOMAINS if of))
