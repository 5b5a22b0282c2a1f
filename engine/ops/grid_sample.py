"""GridSample of two and three spatial axes."""

from __future__ import annotations

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator
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
