"""Parts of a tensor: a contiguous part is cut out, other places along an axis are gathered."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, View
from engine.ops.pad import merge_axes
from kernels.ops.gather import Gather
from kernels.ops.pad import Pad


def cut(
    source: str, shape: tuple[int, ...], begin: Sequence[int], size: Sequence[int], output: str, dtype: str
) -> Kernel | View:
    """`size` elements from `begin` on along each axis."""
    end = [b + s - d for b, s, d in zip(begin, size, shape, strict=True)]
    if not any(begin) and not any(end):
        return View(source, output)
    sizes, begins, ends = merge_axes(shape, [-b for b in begin], end)
    return Kernel(Pad(shape=sizes, begin=begins, end=ends, dtype=dtype), (source,), output)


def taken(
    source: str, shape: tuple[int, ...], axis: int, places: np.ndarray, output: str, dtype: str
) -> Lowered:
    """The tensor with only these places along an axis. Raises Refused where a place does not exist."""
    places = np.asarray(places, np.int64).reshape(-1)
    size = shape[axis]
    if places.size == 0:
        raise Refused("it takes nothing, and tensors without elements are not supported")
    if places.min() < -size or places.max() >= size:
        worst = places.min() if places.min() < -size else places.max()
        raise Refused(f"its index {worst} is outside an axis of {size}")
    places = places % size
    spec = TensorSpec((*shape[:axis], places.size, *shape[axis + 1 :]), dtype)
    if (np.diff(places) == 1).all():
        begin, sizes = [0] * len(shape), list(spec.shape)
        begin[axis] = int(places[0])
        return Lowered((cut(source, shape, begin, sizes, output, dtype),), {output: spec})
    params = Gather(
        outer=math.prod(shape[:axis]),
        axis=size,
        inner=math.prod(shape[axis + 1 :]),
        count=places.size,
        dtype=dtype,
    )
    name = f"{output}:places"
    specs = {output: spec, name: TensorSpec(places.shape, "int64")}
    return Lowered((Kernel(params, (source, name), output),), specs, {name: places})


def along(x: str, shape: tuple[int, ...], places: dict[int, np.ndarray], output: str, dtype: str) -> Lowered:
    """The tensor with these places along each of several axes; the axis that shrinks it most comes first."""
    items: list[Kernel | View] = []
    specs: dict[str, TensorSpec] = {}
    constants: dict[str, np.ndarray] = {}
    order = sorted(places, key=lambda axis: places[axis].size / shape[axis])
    for axis in order:
        target = output if axis == order[-1] else f"{output}:along{axis}"
        step = taken(x, shape, axis, places[axis], target, dtype)
        items += step.items
        specs |= step.specs
        constants |= step.constants
        x, shape = target, step.specs[target].shape
    return Lowered(tuple(items), specs, constants)
