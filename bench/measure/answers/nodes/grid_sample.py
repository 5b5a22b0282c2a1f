"""Images read at the places of a grid, in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, node
from kernels.ops.grid_sample import GridSample


def nodes(p: GridSample, names: Sequence[str], output: str) -> Nodes:
    """GridSample; of images of two axes without the first."""
    attributes = {"mode": p.mode, "padding_mode": p.padding, "align_corners": int(p.corners)}
    if p.dims == 3:
        return [node("GridSample", names, output, **attributes)], {}
    shapes = {
        "images": (p.n, p.c, *p.size[1:]),
        "places": (p.n, *p.out[1:], 2),
        "whole": (p.n, p.c, *p.out),
    }
    return [
        node("Reshape", [names[0], "images"], "flat_images"),
        node("Reshape", [names[1], "places"], "flat_places"),
        node("GridSample", ["flat_images", "flat_places"], "read", **attributes),
        node("Reshape", ["read", "whole"], output),
    ], {name: np.array(shape, np.int64) for name, shape in shapes.items()}


def drawn(p: GridSample, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Places within and somewhat beyond the images; none so near to where two elements are as near that one
    rounding decides."""
    if place == 0:
        return values
    places = np.clip(values, -1.6, 1.6)
    if p.mode != "nearest":
        return places
    for axis in range(p.dims):
        size = p.size[-1 - axis]
        scale, shift = ((size - 1) / 2, (size - 1) / 2) if p.corners else (size / 2, (size - 1) / 2)
        at = places[..., axis] * scale + shift
        near = np.rint(at) + np.clip(at - np.rint(at), -0.4, 0.4)
        places[..., axis] = (near - shift) / scale if scale else places[..., axis]
    return places
