"""If, Loop and Scan, written out as the nodes of their graphs.

Of an If whose condition is constant that is the branch taken, else both branches and a choice between what
they give; of a Loop or a Scan the body, once for each turn, whose number must be constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.graph import Graph, Node
from engine.graph.plan import TensorSpec
from engine.ops import DEFAULT_DOMAINS, Kernel, Lowered, Refused, Scope
from engine.ops.binary import walks
from engine.passes.written_out import Advance, Writing, guarded
from kernels.ops.where import Where

CONTROL = ("If", "Loop", "Scan")


def controlled(node: Node, scope: Scope, graph: Graph, advance: Advance) -> Lowered | None:
    """An If, Loop or Scan, written out; None for any other node. Raises UnsupportedError."""
    if node.domain not in DEFAULT_DOMAINS or node.op_type not in CONTROL:
        return None
    write = {"If": _if, "Loop": _loop, "Scan": _scan}[node.op_type]
    return guarded(node, lambda: write(node, Writing(node, scope, graph, advance)))


def _attribute(node: Node, name: str) -> Any:
    """Raises Refused where a damaged file lacks it."""
    if name not in node.attributes:
        raise Refused(f"its attribute {name!r} is missing")
    return node.attributes[name]


def _value(scope: Scope, name: str, what: str) -> np.ndarray:
    """Raises Refused where it is computed."""
    if name not in scope.constants:
        raise Refused(f"its {what} must be constant, and {name!r} depends on the graph's inputs")
    value = np.asarray(scope.constants[name])
    if value.size != 1:
        raise Refused(f"its {what} must be one number, and it has the shape {value.shape}")
    return value.reshape(())


def _if(node: Node, write: Writing) -> Lowered:
    scope, condition = write.scope, node.inputs[0]
    branches = {name: _attribute(node, f"{name}_branch") for name in ("then", "else")}
    if condition in scope.constants:
        branch_name = "then" if _value(scope, condition, "condition") else "else"
        ends = write.graph_of(branches[branch_name], (), branch_name, node.outputs)
        _check_ends(ends, node)
        for end, output in zip(ends, node.outputs, strict=True):
            if output:
                write.same(end, output)
        return write.finished()
    if math.prod(scope.shape(condition)) != 1:
        raise Refused(f"its condition has the shape {scope.shape(condition)}, and one truth value is wanted")
    ends_of = [write.graph_of(branch, (), name) for name, branch in branches.items()]
    for ends in ends_of:
        _check_ends(ends, node)
    for one, other, output in zip(*ends_of, node.outputs, strict=True):
        if not output:
            continue
        spec = scope.spec(one)
        if spec != scope.spec(other):
            raise Refused(
                f"its condition is computed, and its branches give {_words(spec)} and "
                f"{_words(scope.spec(other))} as {output!r}: they must be alike, or the condition constant"
            )
        sizes, (steps,) = walks(spec.shape, spec.shape)
        choice = Where(sizes, (0,) * len(sizes), steps, steps, spec.dtype)
        write.items.append(Kernel(choice, (condition, one, other), output))
        scope.specs[output] = spec
    return write.finished()


def _check_ends(ends: Sequence[str], node: Node) -> None:
    if len(ends) != len(node.outputs):
        raise Refused(f"a branch gives {len(ends)} tensors, and the node has {len(node.outputs)} outputs")


def _words(spec: TensorSpec) -> str:
    return f"{spec.dtype} of shape {spec.shape}"


def _loop(node: Node, write: Writing) -> Lowered:
    """Inputs: trip count, condition, what is carried from turn to turn. Outputs: what is carried at the end,
    then what each turn gives, side by side."""
    scope, body = write.scope, _attribute(node, "body")
    count, condition, *carried = (*node.inputs, "", "")[: max(2, len(node.inputs))]
    turns = int(_value(scope, count, "trip count")) if count else None
    goes_on = bool(_value(scope, condition, "condition")) if condition else True
    if turns is None and not condition:
        raise Refused("it has neither a trip count nor a condition, and never ends")
    collected: list[list[str]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    turn = 0
    while goes_on and (turns is None or turn < turns):
        number = np.array(turn, np.int64).reshape((1,) * len(body.input[0].type.tensor_type.shape.dim))
        inputs = [
            # No tensor of the body is called so: theirs have a colon behind the turn.
            write.constant(f"{write.prefix}{turn}#number", number),
            write.constant(f"{write.prefix}#goes_on", np.array(True)),
            *carried,
        ]
        ends = write.graph_of(body, inputs, str(turn))
        goes_on = bool(_value(scope, ends[0], "condition after a turn"))
        carried = ends[1 : 1 + len(carried)]
        for gathered, name in zip(collected, ends[1 + len(carried) :], strict=True):
            gathered.append(name)
        turn += 1
    _give(node, write, carried, collected, [0] * len(collected))
    return write.finished()


def _scan(node: Node, write: Writing) -> Lowered:
    """Inputs: what is carried from turn to turn, then tensors of which each turn takes one place along an
    axis. Outputs as of Loop."""
    if write.scope.opset < 9:
        raise Refused(
            "before opset 9 it takes a batch, which is not supported; convert the model to a later one"
        )
    body, scope = _attribute(node, "body"), write.scope
    scanned = int(_attribute(node, "num_scan_inputs"))
    carried, sequences = list(node.inputs[: -scanned or None]), node.inputs[len(node.inputs) - scanned :]
    output_count = len(body.output) - len(carried)
    axes = node.attributes.get("scan_input_axes") or (0,) * scanned
    backwards = node.attributes.get("scan_input_directions") or (0,) * scanned
    out_axes = node.attributes.get("scan_output_axes") or (0,) * output_count
    out_backwards = node.attributes.get("scan_output_directions") or (0,) * output_count
    lengths = {scope.shape(name)[int(axis)] for name, axis in zip(sequences, axes, strict=True)}
    if len(lengths) != 1:
        raise Refused(f"the tensors that it scans have {', '.join(map(str, sorted(lengths)))} places")
    (turns,) = lengths
    collected: list[list[str]] = [[] for _ in range(output_count)]
    for turn in range(turns):
        inputs: list[str] = []
        for name, axis, reverse in zip(sequences, axes, backwards, strict=True):
            place = write.constant(
                f"{write.prefix}{turn}#{reverse}:place", np.array(turns - 1 - turn if reverse else turn)
            )
            slice_name = f"{write.prefix}{turn}#{len(inputs)}"
            write.add(Node(slice_name, "Gather", (name, place), (slice_name,), {"axis": int(axis)}))
            inputs.append(slice_name)
        ends = write.graph_of(body, [*carried, *inputs], str(turn))
        carried = ends[: len(carried)]
        for gathered, name in zip(collected, ends[len(carried) :], strict=True):
            gathered.append(name)
    ordered = [
        rows[::-1] if reverse else rows for rows, reverse in zip(collected, out_backwards, strict=True)
    ]
    _give(node, write, carried, ordered, [int(axis) for axis in out_axes])
    return write.finished()


def _give(
    node: Node, write: Writing, carried: Sequence[str], collected: Sequence[list[str]], axes: Sequence[int]
) -> None:
    outputs = node.outputs
    for name, output in zip(carried, outputs, strict=False):
        if output:
            write.same(name, output)
    for rows, axis, output in zip(collected, axes, outputs[len(carried) :], strict=False):
        if output and output in write.scope.consumed:
            if not rows:
                raise Refused(f"it takes no turn, and its output {output!r} would have no elements")
            write.gather(rows, axis, output)
