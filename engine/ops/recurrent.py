"""RNN, GRU and LSTM: one product for what all inputs add to the gates, then a kernel that goes step after
step."""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Refused, optional_input
from engine.ops._nodes import Nodes, written
from kernels.ops.gemm import Gemm
from kernels.ops.recurrent import DIRECTIONS, GATE_ACTIVATIONS, Recurrent

_USUAL = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}
_HARD = (0.2, 0.5)  # HardSigmoid's alpha and beta


@written("GRU", "LSTM", "RNN")
def _recurrent(node: Node, nodes: Nodes) -> None:
    """x (steps, n, inputs), weights, recurrence, bias, lengths, first states → y (steps, directions, n,
    hidden), the last hidden state and (LSTM) the last cell; with layout 1 the batch comes first in all of
    them."""
    kind = node.op_type.lower()
    scope, (x, w, r) = nodes.around, node.inputs[:3]
    batch_first = bool(node.attributes.get("layout", 0))
    if batch_first:
        x = nodes("Transpose", x, perm=(1, 0, 2))
    if len(nodes.shape(x)) != 3 or len(scope.shape(r)) != 3:
        raise Refused(
            f"its input {scope.shape(node.inputs[0])} and recurrence {scope.shape(r)} have no 3 axes"
        )
    steps, n, inputs = nodes.shape(x)
    directions, wide, hidden = scope.shape(r)
    params = _params(node, kind, steps, n, hidden, nodes.dtype(x))
    if directions != params.directions or wide != params.gates * hidden:
        raise Refused(
            f"its recurrence of shape {scope.shape(r)} does not fit {params.direction} {node.op_type}"
        )
    if scope.shape(w) != (directions, wide, inputs):
        raise Refused(f"its weights of shape {scope.shape(w)} do not fit inputs of {inputs}")
    product = Gemm(
        m=steps * n,
        n=wide,
        k=inputs,
        trans_b=True,
        batch=directions,
        stride_b=wide * inputs if directions > 1 else 0,
        dtype=params.dtype,
    )
    sums = nodes.kernel(product, (x, w), (directions, steps, n, wide))
    step_inputs = [sums, r]
    names = ("bias", "sequence_lens", "initial_h", "initial_c", "P")
    for place, shape in enumerate(params.input_shapes[2:], start=3):
        step_inputs.append(_given(nodes, node, place, names[place - 3], shape, params, batch_first))
    y = nodes.kernel(params, step_inputs, params.output_shape, nodes.name("states"))
    _give(nodes, node, params, y, batch_first)


def _given(
    nodes: Nodes, node: Node, place: int, what: str, shape: tuple[int, ...], p: Recurrent, batch_first: bool
) -> str:
    """An optional input of the node, or what stands for it."""
    name = optional_input(node, place)
    if not name:
        whole = np.full(shape, p.steps, np.int32) if what == "sequence_lens" else np.zeros(shape, p.dtype)
        return nodes.constant(whole)
    if batch_first and what.startswith("initial"):
        name = nodes("Transpose", name, perm=(1, 0, 2))
    if nodes.shape(name) != shape:
        raise Refused(f"its {what} has the shape {nodes.shape(name)}, and {shape} is wanted")
    return name


def _give(nodes: Nodes, node: Node, p: Recurrent, y: str, batch_first: bool) -> None:
    """The outputs that somebody reads, out of all states."""
    d, n, h = p.directions, p.n, p.hidden
    for index, output in enumerate(node.outputs):
        if not output or output not in nodes.around.consumed:
            continue
        rows = np.arange(p.steps) if index == 0 else np.array([p.steps + index - 1])
        shape = (p.steps, d, n, h) if index == 0 else (d, n, h)
        last = "" if batch_first else output
        part = nodes("Gather", y, nodes.constant(rows), axis=0)
        part = nodes.shaped(part, shape, output=last)
        if batch_first:
            nodes("Transpose", part, output=output, perm=(2, 0, 1, 3) if index == 0 else (1, 0, 2))


def _params(node: Node, kind: str, steps: int, n: int, hidden: int, dtype: str) -> Recurrent:
    """Raises Refused."""
    attributes = node.attributes
    direction = str(attributes.get("direction", "forward"))
    if direction not in DIRECTIONS:
        raise Refused(f"its direction is {direction!r}, and {', '.join(DIRECTIONS)} are supported")
    usual, count = _USUAL[kind], 2 if direction == "bidirectional" else 1
    chosen = [
        str(name).lower().replace("hardsigmoid", "hard_sigmoid") for name in attributes.get("activations", ())
    ]
    chosen = chosen or list(usual) * count
    functions = tuple(chosen[: len(usual)])
    if len(chosen) != count * len(usual) or tuple(chosen[-len(usual) :]) != functions:
        raise Refused(
            f"its activations are {chosen}, and {len(usual)}, the same for each direction, are supported"
        )
    if unknown := set(functions) - set(GATE_ACTIVATIONS):
        raise Refused(f"its activation {sorted(unknown)[0]!r} is not among {', '.join(GATE_ACTIVATIONS)}")
    for what, number in zip(("alpha", "beta"), _HARD, strict=True):
        values = attributes.get(f"activation_{what}", ())
        if "hard_sigmoid" in functions and any(not math.isclose(v, number, rel_tol=1e-6) for v in values):
            raise Refused(f"its activation_{what} is {list(values)}, and {number} is supported")
    if int(attributes.get("hidden_size", hidden)) != hidden:
        raise Refused(f"its hidden_size is {attributes['hidden_size']}, and its recurrence has {hidden}")
    names = ("candidate",) if kind == "rnn" else ("gate", "candidate", "last")
    return Recurrent(
        kind=kind,
        steps=steps,
        n=n,
        hidden=hidden,
        direction=direction,
        linear_before_reset=kind == "gru" and bool(attributes.get("linear_before_reset", 0)),
        coupled=kind == "lstm" and bool(attributes.get("input_forget", 0)),
        clip=float(attributes.get("clip", 0.0)),
        dtype=dtype,
        **dict(zip(names, functions, strict=False)),
    )
