"""ScatterElements, Scatter (its old name) and ScatterND: a copy, in some places of which something else
stands, or is added.

Constant places that only replace are looked through at plan time: the answer is then gathered out of the
tensor and the updates side by side. TensorScatter and MaxUnpool write so, too.
"""

from __future__ import annotations

import math

import numpy as np
import onnx

from engine.graph.graph import Node
from engine.ops._base import Refused, normal_axis, optional_input
from engine.ops._nodes import Nodes, written
from engine.ops.gather import flat_elements, flat_nd
from kernels.ops.scatter import SCATTER_KINDS, Scatter


@written("Scatter", "ScatterElements", "ScatterND")
def _scatter(node: Node, nodes: Nodes) -> None:
    """x, places, updates → y of the shape of x."""
    x, indices, updates = node.inputs
    kind = node.attributes.get("reduction", "none").replace("none", "put")
    if kind not in SCATTER_KINDS:
        raise Refused(f"its reduction is {kind!r}, and none, {', '.join(SCATTER_KINDS[1:])} are supported")
    shape, of = nodes.shape(x), nodes.shape(indices)
    if node.op_type == "ScatterND":
        flat, inner = flat_nd(nodes, indices, shape)
        wanted = (*of[:-1], *inner)
    else:
        axis = normal_axis(int(node.attributes.get("axis", 0)), len(shape))
        flat, inner = flat_elements(nodes, indices, shape, axis), ()
        wanted = of
    if nodes.shape(updates) != wanted:
        raise Refused(f"updates of shape {nodes.shape(updates)} do not fit its indices")
    _scattered(nodes, x, flat, updates, math.prod(inner), kind, node.outputs[0])


def _scattered(nodes: Nodes, x: str, flat: str, updates: str, inner: int, kind: str, output: str) -> None:
    """Rows of `inner` elements of x replaced by those of the updates, or joined with them."""
    shape = nodes.shape(x)
    rows, count = math.prod(shape) // inner, nodes.shape(flat)[0]
    if kind == "put" and flat in nodes.scope.constants:
        source = np.arange(rows)
        source[nodes.scope.constants[flat]] = rows + np.arange(count)
        parts = [nodes.shaped(x, (rows, inner)), nodes.shaped(updates, (count, inner))]
        both = nodes("Concat", *parts, axis=0)
        chosen = nodes("Gather", both, nodes.constant(source, np.int64), axis=0)
        nodes.shaped(chosen, shape, output=output)
        return
    params = Scatter(kind, rows, inner, count, nodes.dtype(x))
    nodes.kernel(params, (x, flat, updates), shape, output)


@written("MaxUnpool")
def _unpooled(node: Node, nodes: Nodes) -> None:
    """MaxUnpool: zeros, in which each value stands where the pool found it, its place in the whole tensor."""
    x, places = node.inputs[:2]
    shape, dtype = nodes.shape(x), nodes.dtype(x)
    kernel = tuple(node.attributes["kernel_shape"])
    strides = tuple(node.attributes.get("strides", (1,) * len(kernel)))
    pads = tuple(node.attributes.get("pads", (0,) * (2 * len(kernel))))
    rank = len(kernel)
    smallest = tuple(
        (size - 1) * strides[i] + kernel[i] - pads[i] - pads[rank + i] for i, size in enumerate(shape[2:])
    )
    whole: tuple[int, ...] = (*shape[:2], *smallest)
    output_shape = nodes.around.integers(node, 2, "output_shape") if optional_input(node, 2) else None
    out: tuple[int, ...] = whole if output_shape is None else tuple(output_shape)
    if len(out) != len(shape) or any(o < size for o, size in zip(out, whole, strict=True)):
        raise Refused(f"its output_shape {out} does not fit what it enlarges, {whole}")
    if nodes.dtype(places) != "int64":
        places = nodes("Cast", places, to=onnx.TensorProto.INT64)
    flat = nodes.shaped(places, (math.prod(shape),))
    last = node.outputs[0] if out == whole else nodes.name("unpooled")
    _scattered(nodes, nodes.constant(np.zeros(whole), dtype), flat, x, 1, "put", last)
    if out != whole:
        ends = [0] * len(out) + [o - size for o, size in zip(out, whole, strict=True)]
        nodes("Pad", last, nodes.constant(ends, np.int64), output=node.outputs[0])


@written("TensorScatter")
def _sequences(node: Node, nodes: Nodes) -> None:
    """TensorScatter: a cache (n, …, places, …) in which the sequences of an update stand from a place on that
    each of the batch says (0 where it says nothing), or that goes round at the end (circular)."""
    x, update, first = node.inputs[0], node.inputs[1], optional_input(node, 2)
    shape, of = nodes.shape(x), nodes.shape(update)
    axis = normal_axis(int(node.attributes.get("axis", -2)), len(shape))
    mode = node.attributes.get("mode", "linear")
    if axis == 0 or len(of) != len(shape) or of[:axis] != shape[:axis] or of[axis + 1 :] != shape[axis + 1 :]:
        raise Refused(f"an update of shape {of} does not fit a cache of shape {shape}")
    length, inner = shape[axis], math.prod(shape[axis + 1 :])
    sequences = math.prod(shape[1:axis])
    # The number of a row: (batch, sequence, place) of the cache.
    lead = np.arange(shape[0] * sequences).reshape(shape[0], sequences, 1) * length
    places = nodes.constant(np.arange(of[axis]), np.int64)
    if first:
        places = nodes("Add", nodes.shaped(first, (shape[0], 1, 1)), places)
    else:
        places = nodes.shaped(places, (1, 1, of[axis]))
    if mode == "circular":
        places = nodes("Mod", places, nodes.constant(length, np.int64))
    rows = nodes("Add", places, nodes.constant(lead, np.int64))
    flat = nodes.shaped(rows, (math.prod(of) // inner,))
    _scattered(nodes, x, flat, update, inner, "put", node.outputs[0])
