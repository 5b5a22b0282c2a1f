"""A node of a model and a rung → the operator that is exported in the node's place, at some batch sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from engine.graph.graph import Graph
from engine.graph.plan import Plan, Step
from engine.graph.skeleton import inferred
from engine.options import Options
from engine.planning import planner
from kernels import launch, registry
from kernels.errors import InputError, UnsupportedError
from kernels.exported import cpu, cuda
from kernels.exported.operator import Operator, identifier
from kernels.nearest import did_you_mean
from kernels.registry import Rung


@dataclass(frozen=True)
class Replacement:
    """nodes: the ONNX nodes that the operator stands for; inputs: for each of its inputs the model's tensor,
    or "" for weights that it brings along, as its kernel has packed them; output: the tensor that it
    computes."""

    operator: Operator
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    output: str


def replacement(graph: Graph, node: str, rung: Rung, batches: Sequence[int], arch: str = "") -> Replacement:
    """The operator of `rung` for a node. batches: sizes that it is to work at; arch: "sm_90", of a CUDA rung.

    Raises InputError for a node that is not there or is of another operator, UnsupportedError with the reason
    where the rung does not take the node or cannot be exported, KernelError, UnavailableError.
    """
    if (fixed := graph.fixed_batch) is not None and tuple(batches) != (fixed,):
        raise InputError(f"model {graph.name} has its batch fixed at {fixed}; leave the batch sizes away")
    for name, axis in graph.open_axes:
        raise UnsupportedError(
            f"input {name} of model {graph.name} leaves axis {axis} open beside its batch, and an exported "
            f"kernel has all its sizes in it; give that axis a size in the file first"
        )
    _check_node(graph, node)
    found = [_step(graph, node, rung, batch) for batch in sorted(set(batches))]
    plans, steps = zip(*found, strict=True)
    first: Step = steps[0]
    for step in steps:
        for reason in (
            rung.refusal(step.params),
            rung.device == "cuda" and launch.refusal(step.params, rung),
        ):
            if reason:
                raise UnsupportedError(f"node {node}: {reason}")
        if (step.nodes, step.inputs, step.output) != (first.nodes, first.inputs, first.output):
            raise UnsupportedError(
                f"node {node} shares its kernel with other nodes at another batch size; export one size at a "
                "time"
            )
    _check_tensors(graph, first, plans[0])
    weights = [_weight(plans[0], name) for name in first.inputs]
    given = [name for name, array in zip(first.inputs, weights, strict=True) if array is None]
    shapes = [
        ([made.tensors[name].shape for name in given], made.tensors[step.output].shape)
        for made, step in found
    ]
    name, words = identifier(rung.name, node), f"{node} by {rung.label}"
    sizes = [step.params for step in steps]
    if rung.device == "cuda":
        made = cuda.operator(name, words, rung, sizes, shapes, weights, arch)
    else:
        made = cpu.operator(name, words, rung, sizes, shapes, weights)
    in_file = set(graph.initializers)
    names = []
    for it in made.inputs:
        tensor = first.inputs[it.place]
        kept = it.array is None or (not it.packed and tensor in in_file and _same(graph, tensor, it.array))
        names.append(tensor if kept else "")
    return Replacement(made, first.nodes, tuple(names), first.output)


def named(graph: Graph, node: str, name: str, device: str, kernel_dirs: Sequence[Path], batch: int) -> Rung:
    """The rung of this name or number for a node, of the operator that computes the node alone, or of one
    that computes it with its neighbours. Raises InputError for a node or a rung that is not there."""
    _check_node(graph, node)
    ops: list[str] = []
    for joined in (False, True):
        made = planner.plan(graph, batch, device, options=Options(tuned=False), joined=joined)
        ops += [step.op for step in made.steps if node in step.nodes]
    if not ops:
        raise InputError(f"node {node} of model {graph.name} needs no kernel, so none can take its place")
    for op in dict.fromkeys(ops):
        for rung in registry.rungs(device, op, kernel_dirs):
            if name in (rung.name, str(rung.number)):
                return rung
    return registry.find(device, ops[0], name, kernel_dirs)  # which says what there is


def _check_node(graph: Graph, node: str) -> None:
    if node not in graph.by_name:
        names = [it.name for it in graph.nodes]
        few = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        hint = did_you_mean(node, names, f"; its nodes are {few}")
        raise InputError(f"model {graph.name} has no node {node!r}{hint}")


def _step(graph: Graph, node: str, rung: Rung, batch: int) -> tuple[Plan, Step]:
    """The step of the rung's operator that does this node, alone or with what shares a kernel with it."""
    others: set[str] = set()
    for joined in (False, True):
        made = planner.plan(graph, batch, rung.device, options=Options(tuned=False), joined=joined)
        for step in made.steps:
            if node in step.nodes:
                if step.op == rung.op:
                    return made, step
                others.add(step.op)
    does = f"is computed by kernels of {' and '.join(sorted(others))}" if others else "needs no kernel"
    raise InputError(f"node {node} of model {graph.name} {does}, and {rung.label} is one of {rung.op}")


def _weight(made: Plan, name: str) -> np.ndarray | None:
    return made.weights.get(made.aliases.get(name, name))


def _same(graph: Graph, name: str, array: np.ndarray) -> bool:
    """Whether the file has this weight as the kernel takes it, or as a view of the same bytes."""
    own = graph.initializers[name]
    return own.dtype == array.dtype and own.size == array.size and own.tobytes() == array.tobytes()


def _check_tensors(graph: Graph, step: Step, made: Plan) -> None:
    """Raise UnsupportedError where the step's tensors are not the model's own."""
    known = {info.name: info.dtype for info in graph.inputs}
    by_type = onnx.helper.tensor_dtype_to_np_dtype
    for value in (*(found := inferred(graph.proto, graph.name)).input, *found.value_info, *found.output):
        if (kind := value.type.tensor_type.elem_type) != 0:
            known[value.name] = by_type(kind).name
    of_file = {name for node in graph.nodes for name in node.outputs} | known.keys()
    computed = [name for name in step.inputs if _weight(made, name) is None]
    for name in (*computed, step.output):
        wanted = made.tensors[name].dtype
        own = name if name in of_file else name.rpartition(":")[0]  # "x:float32" is x in another type
        if known.get(own, wanted) != wanted:
            raise UnsupportedError(
                f"tensor {own} of node {step.nodes[0]} is {known[own]} in model {graph.name}, and the kernel "
                f"takes {wanted}"
            )
        if own != name:
            raise UnsupportedError(
                f"node {step.nodes[0]} reads or writes {name}, which only our engine's form of model "
                f"{graph.name} has: other libraries run the file as it is"
            )
