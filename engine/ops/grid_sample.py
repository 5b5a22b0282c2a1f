"""GridSample of two and three spatial axes, and AffineGrid."""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator
from engine.ops._nodes import Nodes, written
from kernels.ops.grid_sample import GRID_MODES, GRID_PADDINGS, GridSample

_OLD_NAMES = {"bilinear": "linear", "bicubic": "cubic"}  # of opset 16


@operator("GridSample")
def lower(node: Node, scope: Scope) -> Lowered:
    """x (n, c, [d,] h, w), grid (n, [d,] h, w, axes) → y (n, c, [d,] h, w)."""
    x, grid = node.inputs
    shape, of_grid = scope.shape(x), scope.shape(grid)
    dims = len(shape) - 2
    if dims not in (2, 3) or len(of_grid) != len(shape) or (of_grid[0], of_grid[-1]) != (shape[0], dims):
        raise Refused(f"a grid of shape {of_grid} does not fit images of shape {shape}")
    mode = str(node.attributes.get("mode", "linear"))
    mode = _OLD_NAMES.get(mode, mode)
    padding = str(node.attributes.get("padding_mode", "zeros"))
    if mode not in GRID_MODES or padding not in GRID_PADDINGS:
        raise Refused(
            f"its mode is {mode!r} and its padding_mode {padding!r}; {', '.join(GRID_MODES)} and "
            f"{', '.join(GRID_PADDINGS)} are supported"
        )
    if scope.spec(grid).dtype != scope.spec(x).dtype:
        raise Refused(f"its grid is of {scope.spec(grid).dtype}, and its images of {scope.spec(x).dtype}")
    ones = (1,) * (3 - dims)
    params = GridSample(
        n=shape[0],
        c=shape[1],
        size=(*ones, *shape[2:]),  # type: ignore[arg-type]
        out=(*ones, *of_grid[1:-1]),  # type: ignore[arg-type]
        dims=dims,
        mode=mode,
        padding=padding,
        corners=bool(node.attributes.get("align_corners", 0)),
        dtype=scope.spec(x).dtype,
    )
    return kernel(node, params, (x, grid), (*shape[:2], *of_grid[1:-1]), params.dtype)


# ---------------------------------------------------------------------------------------------- affine grid

# AffineGrid: the places of an image, a constant, turned by a matrix an image.


@written("AffineGrid")
def _affine_grid(node: Node, nodes: Nodes) -> None:
    """theta (n, axes, axes + 1), size (n, c, [d,] h, w) → grid (n, [d,] h, w, axes), x before y before z."""
    scope, theta = nodes.around, node.inputs[0]
    size, shape = scope.integers(node, 1, "size"), scope.shape(theta)
    if size is None or len(size) not in (4, 5) or shape != (size[0], len(size) - 2, len(size) - 1):
        raise Refused(f"matrices of shape {shape} do not fit a size of {size}")
    corners = bool(node.attributes.get("align_corners", 0))
    spatial = size[2:]
    along = [_places(count, corners) for count in spatial]
    # x runs along the last axis; the last coordinate, 1, takes the shift.
    grid = np.meshgrid(*along, indexing="ij")[::-1]
    base = np.stack([*grid, np.ones(spatial)], -1).reshape(math.prod(spatial), len(size) - 1)
    turned = nodes("Transpose", theta, perm=(0, 2, 1))
    transformed = nodes("MatMul", nodes.constant(base, scope.spec(theta).dtype), turned)
    nodes.shaped(transformed, (size[0], *spatial, len(spatial)), output=node.outputs[0])


def _places(count: int, corners: bool) -> np.ndarray:
    """From −1 to 1: the first and the last element's middle (corners), or their outer edges."""
    if corners:
        return np.linspace(-1.0, 1.0, count) if count > 1 else np.zeros(1)
    return (2 * np.arange(count) + 1) / count - 1
