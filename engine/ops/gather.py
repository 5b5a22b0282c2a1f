"""Gather, GatherElements, GatherND and Tile: elements picked by their places.

Constant places are looked through at plan time: what lies together is cut out, and GatherElements and
GatherND become places in the tensor as one row. Computed ones are taken as they come by Gather alone.
"""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Lowered, Refused, Scope, kernel, normal_axis, view
from engine.ops._parts import along, taken
from kernels.ops.gather import INDEX_TYPES, Gather

OP_TYPES = ("Gather", "GatherElements", "GatherND", "Tile")


def lower(node: Node, scope: Scope) -> Lowered:
    """x, places → y."""
    if node.op_type == "Tile":
        return _tile(node, scope)
    if node.op_type == "Gather":
        return _gather(node, scope)
    places = scope.constant(node, 1, "indices")
    if places is None or places.dtype.kind not in "iu":
        raise Refused("its indices are not whole numbers")
    return _elements(node, scope, places) if node.op_type == "GatherElements" else _nd(node, scope, places)


def _gather(node: Node, scope: Scope) -> Lowered:
    """Along one axis, whose place in the shape that of the indices takes."""
    x, indices = node.inputs
    output = node.outputs[0]
    shape, dtype, spec = scope.shape(x), scope.spec(x).dtype, scope.spec(indices)
    axis = normal_axis(int(node.attributes.get("axis", 0)), len(shape))
    out = (*shape[:axis], *spec.shape, *shape[axis + 1 :])
    if spec.dtype not in INDEX_TYPES:
        raise Refused(f"its indices are {spec.dtype}, and {' and '.join(INDEX_TYPES)} are supported")
    if indices in scope.constants:
        made = taken(x, shape, axis, scope.constants[indices], output, dtype)
        return Lowered(made.items, {**made.specs, output: TensorSpec(out, dtype)}, made.constants)
    params = Gather(
        outer=math.prod(shape[:axis]),
        axis=shape[axis],
        inner=math.prod(shape[axis + 1 :]),
        count=math.prod(spec.shape),
        index=spec.dtype,
        dtype=dtype,
    )
    return kernel(node, params, (x, indices), out, dtype)


def _elements(node: Node, scope: Scope, places: np.ndarray) -> Lowered:
    """As large as the indices: element by element the place along the axis, the other axes as they are."""
    shape = scope.shape(node.inputs[0])
    axis = normal_axis(int(node.attributes.get("axis", 0)), len(shape))
    if places.ndim != len(shape) or any(
        p > d for a, (p, d) in enumerate(zip(places.shape, shape, strict=True)) if a != axis
    ):
        raise Refused(f"indices of shape {places.shape} do not fit a tensor of shape {shape}")
    _check(places, shape[axis])
    whole: list[np.ndarray] = list(np.indices(places.shape))
    whole[axis] = places % shape[axis]
    return _flat(node, scope, np.asarray(np.ravel_multi_index(whole, shape)), 1, places.shape)


def _nd(node: Node, scope: Scope, places: np.ndarray) -> Lowered:
    """The last axis of the indices holds a place on each of the axes behind `batch_dims`."""
    shape = scope.shape(node.inputs[0])
    batch, depth = int(node.attributes.get("batch_dims", 0)), places.shape[-1] if places.ndim else 0
    if not 0 <= batch < max(1, places.ndim) or not 1 <= depth <= len(shape) - batch:
        raise Refused(f"indices of shape {places.shape} do not fit a tensor of shape {shape}")
    if places.shape[:batch] != shape[:batch]:
        raise Refused(f"the first {batch} axes of {places.shape} and {shape} differ")
    on_axes = [places[..., i] for i in range(depth)]
    for i, place in enumerate(on_axes):
        _check(place, shape[batch + i])
        on_axes[i] = place % shape[batch + i]
    first = list(np.indices(places.shape[:-1])[:batch])
    flat = np.ravel_multi_index([*first, *on_axes], shape[: batch + depth])
    inner = shape[batch + depth :]
    return _flat(node, scope, np.asarray(flat), math.prod(inner), (*places.shape[:-1], *inner))


def _check(places: np.ndarray, size: int) -> None:
    if places.size and (places.min() < -size or places.max() >= size):
        raise Refused(f"its indices reach from {places.min()} to {places.max()} on an axis of {size}")


def _flat(node: Node, scope: Scope, places: np.ndarray, inner: int, out: tuple[int, ...]) -> Lowered:
    """Places in the tensor as rows of `inner` elements."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    made = taken(x, (math.prod(shape) // inner, inner), 0, places, output, dtype)
    return Lowered(made.items, {**made.specs, output: TensorSpec(out, dtype)}, made.constants)


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
