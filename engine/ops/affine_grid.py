"""AffineGrid: the places of an image, a constant, turned by a matrix an image."""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Refused
from engine.ops._nodes import Nodes, written


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
    made = nodes("MatMul", nodes.constant(base, scope.spec(theta).dtype), turned)
    nodes.shaped(made, (size[0], *spatial, len(spatial)), output=node.outputs[0])


def _places(count: int, corners: bool) -> np.ndarray:
    """From −1 to 1: the first and the last element's middle (corners), or their outer edges."""
    if corners:
        return np.linspace(-1.0, 1.0, count) if count > 1 else np.zeros(1)
    return (2 * np.arange(count) + 1) / count - 1
