"""Which nodes of a model run as one step. These groups are the rows of a layer-by-layer comparison, for every
backend."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from engine.graph.graph import Graph, Node
from engine.ops import Kernel, View
from engine.passes import grouped, trace
from engine.passes.trace import Program, Walk, check_batch, walk
from engine.planning.step_fusion import fused_on
from kernels.errors import UnsupportedError
from kernels.ops import Params

# Operators that take time of their own; the others end in a step of theirs, or begin it.
MAIN = frozenset(
    {
        "Attention",
        "Conv",
        "Gemm",
        "MatMul",
        "MaxPool",
        "AveragePool",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "LRN",
        "Softmax",
    }
)


@dataclass(frozen=True)
class Group:
    """Nodes that run as one step.

    nodes: ONNX names, in order. op_type: of all together (`together`). inputs: the tensors it reads that are
    neither constant nor its own. output: its last tensor, of `shape` at the batch size. parameters: elements
    of the constants it reads. flops, nbytes: as `kernels.ops` counts them; 0 for what is only another view
    of bytes, and for a node that the engine cannot run. params: of its kernels.
    """

    nodes: tuple[str, ...]
    op_type: str
    inputs: tuple[str, ...]
    output: str
    shape: tuple[int, ...]
    parameters: int
    flops: int
    nbytes: int
    params: tuple[Params, ...] = ()


def groups(graph: Graph, batch: int) -> tuple[Group, ...]:
    """The groups of a model at one batch size, in the order they run.

    Constant nodes (folded before a run) and nodes that no output depends on are in none; every other node is
    in exactly one. In a model that the engine refuses, every node is a group of its own. Kept with the graph.
    Raises InputError or UnsupportedError for the batch size alone.
    """
    number = check_batch(batch)
    return graph.remembered("groups", number, lambda: _groups(graph, number))


def _groups(graph: Graph, batch: int) -> tuple[Group, ...]:
    walked = walk(graph, batch)
    try:
        traced = trace(graph, batch)
    except UnsupportedError:
        return _single(graph, walked)
    program = grouped(traced, fused_on(graph.devices))
    gathered: list[list[Kernel | View]] = []
    place: dict[str, int] = {}
    for item in program.items:
        # BatchNormalization that nothing could absorb is two kernels of one node.
        index = next((place[name] for name in item.nodes if name in place), len(gathered))
        if index == len(gathered):
            gathered.append([])
        gathered[index].append(item)
        place.update((name, index) for name in item.nodes)
    return tuple(_group(items, graph.by_name, program) for items in gathered)


def _group(items: Sequence[Kernel | View], by_name: Mapping[str, Node], program: Program) -> Group:
    names = tuple(dict.fromkeys(name for item in items for name in item.nodes))
    nodes = [by_name[name] for name in names]
    kernels = [item for item in items if isinstance(item, Kernel)]
    output = items[-1].output
    return Group(
        nodes=names,
        op_type=together([node.op_type for node in nodes]),
        inputs=outside(nodes, program.constants),
        output=output,
        shape=program.specs[output].shape,
        parameters=sum(kernel.parameters for kernel in kernels),
        flops=sum(kernel.params.flops for kernel in kernels),
        nbytes=sum(kernel.params.nbytes for kernel in kernels),
        params=tuple(kernel.params for kernel in kernels),
    )


def together(op_types: Sequence[str]) -> str:
    """The name of nodes that run as one: their main operators ("LRN+MaxPool"), else the first; "" for
    none."""
    return "+".join(dict.fromkeys(t for t in op_types if t in MAIN)) or (op_types[0] if op_types else "")


def outside(nodes: Sequence[Node], constants: Container[str]) -> tuple[str, ...]:
    """The tensors that these nodes read and that are neither constant nor written by one of them, in order of
    first use."""
    inner = {name for node in nodes for name in node.outputs}
    read = dict.fromkeys(name for node in nodes for name in node.reads)
    return tuple(name for name in read if name not in inner and name not in constants)


def _single(graph: Graph, walked: Walk) -> tuple[Group, ...]:
    """One group for each live node that is not folded. A node that the engine cannot run has no cost."""
    groups_found: list[tuple[Node, int, tuple[Params, ...]]] = []
    scope = walked.scope
    for node, lowered in walked.nodes:
        if lowered is None:
            groups_found.append((node, 0, ()))
            continue
        kernels = [item for item in lowered.items if isinstance(item, Kernel)]
        groups_found.append(
            (
                node,
                sum(scope.elements(item.inputs) for item in kernels),
                tuple(item.params for item in kernels),
            )
        )
    needed = {info.name for info in graph.outputs}
    result: list[Group] = []
    for node, parameters, params in reversed(groups_found):
        if needed.isdisjoint(node.outputs):
            continue
        output = next(name for name in node.outputs if name in needed)
        needed.update(node.reads)
        spec = scope.specs.get(output)
        result.append(
            Group(
                nodes=(node.name,),
                op_type=node.op_type,
                inputs=outside([node], scope.constants),
                output=output,
                shape=spec.shape if spec else (),
                parameters=parameters,
                flops=sum(p.flops for p in params),
                nbytes=sum(p.nbytes for p in params),
                params=params,
            )
        )
    return tuple(reversed(result))
