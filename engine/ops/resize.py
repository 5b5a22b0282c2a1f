"""Resize and Upsample: each pair of neighbouring axes that change is one kernel, one behind the other.

What an output is, is a sum along each axis, so that the order of the axes does not matter.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, normal_axis, operator, optional_input, view
from kernels.ops.resize import COORDINATES, RESIZE_MODES, ROUNDINGS, Resize, fits

_OUTSIDE = ("stretch", "not_larger", "not_smaller")


class _Axis(NamedTuple):
    """What becomes of one axis. start, end: of the region that is cropped."""

    size: int
    out: int
    scale: float
    start: float = 0.0
    end: float = 1.0

    @property
    def as_it_is(self) -> bool:
        """Whether every output is the element at its place."""
        return self.size == self.out and math.isclose(self.scale, 1) and (self.start, self.end) == (0, 1)


@operator("Resize", "Upsample")
def lower(node: Node, scope: Scope) -> Lowered:
    """x, and constant scales or sizes → y. Before opset 11 places are counted from the first pixel's edge and
    rounded down, as Upsample has them."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    old = node.op_type == "Upsample" or scope.opset < 11
    attribute = node.attributes.get
    mode = _one_of("mode", attribute("mode", "nearest"), RESIZE_MODES[: 2 if old else 3])
    rules = {
        "mode": mode,
        "coordinates": _one_of(
            "coordinate_transformation_mode",
            "asymmetric" if old else attribute("coordinate_transformation_mode", "half_pixel"),
            COORDINATES,
        ),
        "rounding": _one_of(
            "nearest_mode", "floor" if old else attribute("nearest_mode", "round_prefer_floor"), ROUNDINGS
        ),
        "cubic_a": float(attribute("cubic_coeff_a", -0.75)),
        "exclude_outside": bool(attribute("exclude_outside", 0)) and mode == "cubic",
        "value": float(attribute("extrapolation_value", 0.0)),
        "dtype": dtype,
    }
    axes = _axes_of(node, scope, shape, old, rules["coordinates"] == "tf_crop_and_resize")
    if attribute("antialias", 0) and mode != "nearest" and any(axis.scale < 1 for axis in axes):
        raise Refused("antialias is not supported where an axis becomes shorter")
    items: list[Kernel] = []
    specs = {output: TensorSpec(tuple(axis.out for axis in axes), dtype)}
    sizes, resized = list(shape), [i for i, axis in enumerate(axes) if not axis.as_it_is]
    if not resized:
        return view(node, scope, shape)
    while resized:
        first = resized.pop(0)
        here = [first, resized.pop(0)] if resized and resized[0] == first + 1 else [first]
        rows, columns = axes[first], axes[here[-1]] if len(here) == 2 else _Axis(1, 1, 1.0)
        resize = Resize(
            outer=math.prod(sizes[:first]),
            h=rows.size,
            w=columns.size,
            inner=math.prod(sizes[here[-1] + 1 :]),
            out_h=rows.out,
            out_w=columns.out,
            scale_h=rows.scale,
            scale_w=columns.scale,
            start_h=rows.start,
            end_h=rows.end,
            start_w=columns.start,
            end_w=columns.end,
            **rules,  # type: ignore[arg-type]
        )
        for i in here:
            sizes[i] = axes[i].out
        into = f"{output}:axis{first}" if resized else output
        specs[into] = TensorSpec(tuple(sizes), dtype)
        items.append(Kernel(resize, (x,), into))
        x = into
    return Lowered(tuple(items), specs)


def _axes_of(node: Node, scope: Scope, shape: tuple[int, ...], old: bool, crops: bool) -> list[_Axis]:
    """What becomes of each axis. Raises Refused."""
    rank = len(shape)
    attribute = node.attributes.get("axes")
    axes = list(range(rank)) if attribute is None else [normal_axis(int(axis), rank) for axis in attribute]
    sizes = None if old else scope.integers(node, 3, "sizes")
    if sizes is None or not sizes:
        scales = _numbers(node, scope, 1 if old else 2, "scales")
        if len(scales) != len(axes) or not all(0 < scale < math.inf for scale in scales):
            raise Refused(f"its scales {scales} do not fit an input of shape {shape}")
        outs = [fits(shape[axis], scale) for axis, scale in zip(axes, scales, strict=True)]
    else:
        if len(sizes) != len(axes):
            raise Refused(f"its sizes {sizes} do not fit an input of shape {shape}")
        outs, scales = _of_sizes(node, [shape[axis] for axis in axes], sizes)
    region = [0.0] * len(axes) + [1.0] * len(axes)
    if crops:
        region = _numbers(node, scope, 1, "roi")
        if len(region) != 2 * len(axes):
            raise Refused(f"its roi {region} does not fit {len(axes)} axes")
    resized_axes = [_Axis(size, size, 1.0) for size in shape]
    for i, axis in enumerate(axes):
        resized_axes[axis] = _Axis(shape[axis], outs[i], scales[i], region[i], region[len(axes) + i])
    return resized_axes


def _of_sizes(node: Node, shape: list[int], sizes: list[int]) -> tuple[list[int], list[float]]:
    """Sizes and scales by the policy that keeps the aspect ratio, or does not."""
    policy = _one_of(
        "keep_aspect_ratio_policy", node.attributes.get("keep_aspect_ratio_policy", "stretch"), _OUTSIDE
    )
    scales = [out / size for out, size in zip(sizes, shape, strict=True)]
    if policy == "stretch" or not scales:
        return sizes, scales
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [math.floor(scale * size + 0.5) for size in shape], [scale] * len(shape)


def _numbers(node: Node, scope: Scope, index: int, what: str) -> list[float]:
    """Constant numbers along one axis, of an input or (Upsample 7) an attribute. Raises Refused."""
    if what in node.attributes:
        return [float(value) for value in node.attributes[what]]
    value = scope.constant(node, index, what) if optional_input(node, index) else None
    if value is None or value.ndim != 1 or value.dtype.kind != "f":
        raise Refused(f"it has no {what}, numbers along one axis")
    return [float(number) for number in np.asarray(value, np.float64)]


def _one_of(what: str, given: object, known: tuple[str, ...]) -> str:
    if given not in known:
        raise Refused(f"its {what} is {given!r}, and {', '.join(known)} are supported")
    return str(given)
