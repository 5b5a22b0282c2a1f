"""Gather, GatherElements, GatherND, Compress, ReverseSequence and Tile: elements picked by their places.

Constant places are looked through at plan time: what lies together is cut out, and GatherElements and
GatherND become places in the tensor as one row. Computed ones become such places in each pass.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Lowered, Refused, Scope, contiguous_strides, kernel, normal_axis, operator, view
from engine.ops._nodes import Nodes, written
from engine.ops._parts import along, taken
from kernels.ops.gather import INDEX_TYPES, Gather

HINTS = dict.fromkeys(
    ("NonMaxSuppression", "NonZero", "Unique"),
    "how much it finds depends on values, which no plan knows beforehand; only the reference runs it",
)


@operator("Gather")
def gather(node: Node, scope: Scope) -> Lowered:
    """Along one axis, whose place in the shape that of the indices takes."""
    x, indices = node.inputs
    output = node.outputs[0]
    shape, dtype, spec = scope.shape(x), scope.spec(x).dtype, scope.spec(indices)
    axis = normal_axis(int(node.attributes.get("axis", 0)), len(shape))
    out = (*shape[:axis], *spec.shape, *shape[axis + 1 :])
    if spec.dtype not in INDEX_TYPES:
        raise Refused(f"its indices are {spec.dtype}, and {' and '.join(INDEX_TYPES)} are supported")
    if indices in scope.constants:
        lowered = taken(x, shape, axis, scope.constants[indices], output, dtype)
        return Lowered(lowered.items, {**lowered.specs, output: TensorSpec(out, dtype)}, lowered.constants)
    params = Gather(
        outer=math.prod(shape[:axis]),
        axis=shape[axis],
        inner=math.prod(shape[axis + 1 :]),
        count=math.prod(spec.shape),
        index=spec.dtype,
        dtype=dtype,
    )
    return kernel(node, params, (x, indices), out, dtype)


@written("GatherElements")
def _elements(node: Node, nodes: Nodes) -> None:
    """As large as the indices: element by element the place along the axis, the other axes as they are."""
    x, indices = node.inputs
    shape, of = nodes.shape(x), nodes.shape(indices)
    axis = normal_axis(int(node.attributes.get("axis", 0)), len(shape))
    flat = flat_elements(nodes, indices, shape, axis)
    source = nodes.shaped(x, (math.prod(shape),))
    nodes.shaped(nodes("Gather", source, flat, axis=0), of, output=node.outputs[0])


def flat_elements(nodes: Nodes, indices: str, shape: tuple[int, ...], axis: int) -> str:
    """The places in a tensor of `shape` as one row that GatherElements and ScatterElements mean by their
    indices. Raises Refused."""
    of = nodes.shape(indices)
    _check_whole(nodes, indices)
    if len(of) != len(shape) or any(
        p > d for a, (p, d) in enumerate(zip(of, shape, strict=True)) if a != axis
    ):
        raise Refused(f"indices of shape {of} do not fit a tensor of shape {shape}")
    steps = contiguous_strides(shape)
    others = sum((grid * steps[a] for a, grid in enumerate(np.indices(of)) if a != axis), np.zeros(of, int))
    if indices in nodes.scope.constants:
        places = nodes.scope.constants[indices]
        _check(places, shape[axis])
        return nodes.constant((others + places % shape[axis] * steps[axis]).reshape(-1), np.int64)
    place = _from_the_front(nodes, indices, np.array(shape[axis]))
    if steps[axis] != 1:
        place = nodes("Mul", place, nodes.constant(steps[axis], np.int64))
    return nodes.shaped(nodes("Add", place, nodes.constant(others, np.int64)), (math.prod(of),))


def _check_whole(nodes: Nodes, indices: str) -> None:
    if np.dtype(nodes.dtype(indices)).kind not in "iu":
        raise Refused("its indices are not whole numbers")


def _from_the_front(nodes: Nodes, indices: str, sizes: np.ndarray) -> str:
    """Computed places as int64, those below 0 counted from the end."""
    if nodes.dtype(indices) != "int64":
        indices = nodes("Cast", indices, to=onnx.TensorProto.INT64)
    below = nodes("Less", indices, nodes.constant(0, np.int64))
    return nodes("Where", below, nodes("Add", indices, nodes.constant(sizes, np.int64)), indices)


@written("GatherND")
def _nd(node: Node, nodes: Nodes) -> None:
    x, indices = node.inputs
    shape, batch = nodes.shape(x), int(node.attributes.get("batch_dims", 0))
    flat, inner = flat_nd(nodes, indices, shape, batch)
    rows = nodes.shaped(x, (math.prod(shape) // math.prod(inner), math.prod(inner)))
    out = (*nodes.shape(indices)[:-1], *inner)
    nodes.shaped(nodes("Gather", rows, flat, axis=0), out, output=node.outputs[0])


def flat_nd(
    nodes: Nodes, indices: str, shape: tuple[int, ...], batch: int = 0
) -> tuple[str, tuple[int, ...]]:
    """The places, along the first axes of a tensor of `shape` as one row, that GatherND and ScatterND mean by
    their indices, whose last axis holds a place on each of the axes behind `batch`; and the axes left over.
    Raises Refused."""
    of = nodes.shape(indices)
    _check_whole(nodes, indices)
    depth = of[-1] if of else 0
    if not 0 <= batch < max(1, len(of)) or not 1 <= depth <= len(shape) - batch:
        raise Refused(f"indices of shape {of} do not fit a tensor of shape {shape}")
    if of[:batch] != shape[:batch]:
        raise Refused(f"the first {batch} axes of {of} and {shape} differ")
    inner, sizes = shape[batch + depth :], np.array(shape[batch : batch + depth])
    steps = np.array(contiguous_strides(shape[: batch + depth]))
    lead = np.indices(of[:-1])[:batch]
    first = sum((grid * step for grid, step in zip(lead, steps, strict=False)), np.zeros(of[:-1], int))
    if indices in nodes.scope.constants:
        places = nodes.scope.constants[indices]
        for i, size in enumerate(sizes):
            _check(places[..., i], int(size))
        flat = first + (places % sizes * steps[batch:]).sum(axis=-1)
        return nodes.constant(flat.reshape(-1), np.int64), inner
    place = nodes("Mul", _from_the_front(nodes, indices, sizes), nodes.constant(steps[batch:], np.int64))
    row = nodes("Gather", place, nodes.constant(0, np.int64), axis=-1)
    for i in range(1, depth):
        row = nodes("Add", row, nodes("Gather", place, nodes.constant(i, np.int64), axis=-1))
    if batch:
        row = nodes("Add", row, nodes.constant(first, np.int64))
    return nodes.shaped(row, (math.prod(of[:-1]),)), inner


@written("Compress")
def _compressed(node: Node, nodes: Nodes) -> None:
    """The places at which a constant condition is true, along an axis or in the tensor as one row."""
    scope, x = nodes.around, node.inputs[0]
    if node.inputs[1] not in scope.constants:
        raise Refused("its condition is computed, and how much it leaves would change from pass to pass")
    positions = np.flatnonzero(scope.constants[node.inputs[1]])
    axis = node.attributes.get("axis")
    if axis is None:
        x = nodes.shaped(x, (math.prod(scope.shape(x)),))
    nodes("Gather", x, nodes.constant(positions, np.int64), output=node.outputs[0], axis=int(axis or 0))


@written("ReverseSequence")
def _reversed(node: Node, nodes: Nodes) -> None:
    """The first places along the time axis in reverse order, as many as each of the batch says."""
    x, lengths = node.inputs
    shape = nodes.shape(x)
    axes = [int(node.attributes.get(name, usual)) for name, usual in (("batch_axis", 1), ("time_axis", 0))]
    if len(shape) < 2 or sorted(axes) != [0, 1]:
        raise Refused(f"its batch and time axis are {axes} of a tensor of shape {shape}")
    batch, time = axes
    places = np.arange(shape[time]).reshape((-1, 1) if time == 0 else (1, -1))
    each = nodes.shaped(lengths, (1, -1) if batch else (-1, 1))
    turned = nodes("Sub", each, nodes.constant(places + 1, np.int64))
    straight = nodes.constant(np.broadcast_to(places, shape[:2]), np.int64)
    within = nodes("Less", straight, each)
    chosen = nodes("Where", within, turned, straight)
    index = nodes.constant(np.indices(shape[:2])[batch], np.int64)
    pairs = [
        nodes.shaped(each, (*shape[:2], 1)) for each in ((index, chosen) if batch == 0 else (chosen, index))
    ]
    both = nodes("Concat", *pairs, axis=-1)
    flat, inner = flat_nd(nodes, both, shape)
    rows = nodes.shaped(x, (shape[0] * shape[1], math.prod(inner)))
    nodes.shaped(nodes("Gather", rows, flat, axis=0), shape, output=node.outputs[0])


def _check(places: np.ndarray, size: int) -> None:
    if places.size and (places.min() < -size or places.max() >= size):
        raise Refused(f"its indices reach from {places.min()} to {places.max()} on an axis of {size}")


@operator("Tile")
def _tile(node: Node, scope: Scope) -> Lowered:
    """Along each axis that is repeated its places again and again, the last axis first."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    repeats = scope.integers(node, 1, "repeats")
    if repeats is None or len(repeats) != len(shape) or min(repeats, default=1) < 1:
        raise Refused(f"its repeats {repeats} are not one number above 0 for each axis of shape {shape}")
    several = [axis for axis in range(len(shape)) if repeats[axis] > 1]
    if not several:
        return view(node, scope, shape)
    return along(
        x, shape, {axis: np.tile(np.arange(shape[axis]), repeats[axis]) for axis in several}, output, dtype
    )


# ---------------------------------------------------------------------------------- array feature extractor

# ArrayFeatureExtractor: places along the last axis, which classifiers of scikit-learn name their classes by.
#
# Of the domain ai.onnx.ml. It is a Gather whose output has the places as one axis, in whatever shape they
# came.


@operator("ArrayFeatureExtractor", domain="ai.onnx.ml")
def _features(node: Node, scope: Scope) -> Lowered:
    """x, places → y (…, places); of a vector one row."""
    x, places = node.inputs
    lowered = gather(replace(node, op_type="Gather", domain="", attributes={"axis": -1}), scope)
    shape = (*(scope.shape(x)[:-1] or (1,)), math.prod(scope.shape(places)))
    return replace(lowered, specs={**lowered.specs, node.outputs[0]: TensorSpec(shape, scope.spec(x).dtype)})
