"""The same bytes under another shape: Reshape (0 copies a size, −1 is worked out, allowzero takes 0 as it
is), Flatten, Squeeze, Unsqueeze; Identity, and what is one outside training."""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Lowered, Refused, Scope, normal_axis, operator, view


@operator("Reshape")
def _reshape(node: Node, scope: Scope) -> Lowered:
    """x, constant shape → the same bytes under that shape."""
    wanted = scope.integers(node, 1, "shape")
    if wanted is None:
        raise Refused("it has no shape")
    shape = scope.shape(node.inputs[0])
    return view(node, scope, resolve(shape, wanted, bool(node.attributes.get("allowzero", 0))))


def resolve(shape: tuple[int, ...], wanted: list[int], allow_zero: bool) -> tuple[int, ...]:
    """`wanted` with its 0 and −1 replaced for a tensor of `shape`. Raises Refused."""
    sizes = list(wanted)
    for i, size in enumerate(sizes):
        if size == 0 and not allow_zero:
            if i >= len(shape):
                raise Refused(f"its shape {wanted} copies axis {i} of a tensor of shape {shape}")
            sizes[i] = shape[i]
    if min(sizes, default=0) < -1 or sizes.count(-1) > 1:
        raise Refused(f"its shape {wanted} is not a shape")
    if -1 in sizes:
        known = -math.prod(sizes)
        if known == 0 or math.prod(shape) % known:
            raise Refused(f"a tensor of shape {shape} does not fit shape {wanted}")
        sizes[sizes.index(-1)] = math.prod(shape) // known
    return tuple(sizes)


@operator("Flatten")
def _flatten(node: Node, scope: Scope) -> Lowered:
    """x → the same bytes as (product before axis, product from axis on)."""
    shape = scope.shape(node.inputs[0])
    axis = normal_axis(int(node.attributes.get("axis", 1)), len(shape), inclusive=True)
    return view(node, scope, (math.prod(shape[:axis]), math.prod(shape[axis:])))


@operator("Squeeze", "Unsqueeze")
def _squeeze(node: Node, scope: Scope) -> Lowered:
    """x → the same bytes. The axes are an attribute before opset 13, a constant input from then on."""
    shape = scope.shape(node.inputs[0])
    axes_given = node.attributes.get("axes") if scope.opset < 13 else scope.integers(node, 1, "axes")
    axes_given = None if axes_given is None else list(axes_given)
    if node.op_type == "Squeeze":
        if axes_given is None:
            return view(node, scope, tuple(size for size in shape if size != 1))
        axes = {normal_axis(axis, len(shape)) for axis in axes_given}
        if any(shape[axis] != 1 for axis in axes):
            raise Refused(f"axes {axes_given} of a tensor of shape {shape} are not all of size 1")
        return view(node, scope, tuple(size for axis, size in enumerate(shape) if axis not in axes))
    if axes_given is None:
        raise Refused("it has no axes")
    rank = len(shape) + len(axes_given)
    axes = {normal_axis(axis, rank) for axis in axes_given}
    if len(axes) != len(axes_given):
        raise Refused(f"its axes {axes_given} name one axis twice")
    sizes = iter(shape)
    return view(node, scope, tuple(1 if axis in axes else next(sizes) for axis in range(rank)))


@operator("Dropout", "Identity", "OptionalGetElement")
def _identity(node: Node, scope: Scope) -> Lowered:
    """x → the same bytes."""
    if node.op_type == "Dropout":
        training = scope.constant(node, 2, "training_mode")
        if training is not None and training.any():
            raise Refused("it is in training mode (training_mode is true), and only inference is supported")
    lowered = view(node, scope, scope.shape(node.inputs[0]))
    mask = node.outputs[1] if len(node.outputs) > 1 else ""
    if not mask or mask not in scope.consumed:
        return lowered
    # Nothing is dropped.
    source = scope.spec(node.inputs[0])
    keep_all = np.ones(source.shape, np.bool_ if scope.opset >= 10 else source.dtype)
    specs = {**lowered.specs, mask: TensorSpec(keep_all.shape, keep_all.dtype.name)}
    return Lowered(lowered.items, specs, {mask: keep_all})
