"""GridSample and DeformConv for the oracle. `onnx.reference` computes the outputs one by one in Python, and
rounds the coordinates of GridSample to float32. Here they are computed all at once, in float64."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from bench.measure.answers.operators.mended import Mended

Array = np.ndarray
_OLD_NAMES = {"bilinear": "linear", "bicubic": "cubic"}  # of opset 16


class GridSample(Mended):
    """ "the output Y is computed by reading X at the pixel locations of grid": a place g along an axis of d
    elements is (g + 1) / 2 · (d − 1) with align_corners, else ((g + 1) · d − 1) / 2. Of a cubic convolution
    each tap is held within X by itself (border), as PyTorch and ONNX Runtime do; `onnx.reference` holds the
    place."""

    def _run(self, x: Array, grid: Array, **_: Any) -> tuple[Array, ...]:
        mode = self._get("mode", "linear")
        self.mode = _OLD_NAMES.get(mode, mode)
        self.padding, self.corners = self._get("padding_mode", "zeros"), self._get("align_corners", 0)
        n, c, *sizes = x.shape
        axes = [self._taps(grid[..., -1 - i].reshape(n, -1), size) for i, size in enumerate(sizes)]
        flat = x.reshape(n, c, -1)
        y = np.zeros((n, c, axes[0][0][0].shape[1]), x.dtype)
        for chosen in product(*(range(len(places)) for places, _ in axes)):
            place = np.zeros((n, y.shape[2]), np.int64)
            weight, inside = np.ones((n, y.shape[2])), np.ones((n, y.shape[2]), np.bool_)
            for (places, weights), which, size in zip(axes, chosen, sizes, strict=True):
                inside = inside & (places[which] >= 0)
                place = place * size + np.maximum(places[which], 0)
                weight = weight * weights[which]
            read = np.take_along_axis(flat, place[:, None], 2)
            y += np.where(inside[:, None], weight[:, None] * read, 0)
        return (y.reshape(n, c, *grid.shape[1:-1]),)

    def _taps(self, g: Array, size: int) -> tuple[list[Array], list[Array]]:
        """Which elements of an axis are read, −1 for a zero, and their weights."""
        low = 0.0 if self.corners else -0.5
        high = size - 1 - low
        v = (g + 1) / 2 * (size - 1) if self.corners else ((g + 1) * size - 1) / 2
        v = np.rint(v) if self.mode == "nearest" else v
        outside = (v < low) | (v > high)
        if self.padding == "border" and self.mode != "cubic":
            v = np.where(outside, np.clip(v, 0, size - 1), v)
        elif self.padding == "reflection":
            v = np.where(outside, _reflected(v, low, high), v)
        v = np.where(v > -4, np.minimum(v, size + 4), -4.0)
        first = np.trunc(v) if self.mode == "nearest" else np.floor(v)
        t = v - first
        if self.mode == "nearest":
            offsets, weights = [0], [np.ones_like(t)]
        elif self.mode == "linear":
            offsets, weights = [0, 1], [1 - t, t]
        else:
            offsets, weights = [-1, 0, 1, 2], [_keys(np.abs(t - i)) for i in (-1, 0, 1, 2)]
        return [self._element(first.astype(np.int64) + i, size, low, high) for i in offsets], weights

    def _element(self, place: Array, size: int, low: float, high: float) -> Array:
        inside = (place >= 0) & (place < size)
        if self.padding == "zeros":
            return np.where(inside, place, -1)
        if self.padding == "reflection":
            place = np.where(inside, place, np.trunc(_reflected(place.astype(np.float64), low, high)))
        return np.clip(place, 0, size - 1).astype(np.int64)


class DeformConv(Mended):
    """ "Performs deformable convolution as described in https://arxiv.org/abs/1703.06211 and
    https://arxiv.org/abs/1811.11168": each tap of the kernel reads X between its elements, at its own place
    moved by `offset` (rows, then columns), times `mask`; beyond X are zeros."""

    def _run(self, x: Array, w: Array, offset: Array, b: Any = None, mask: Any = None, **_: Any) -> Any:
        groups, shared = self._get("group", 1), self._get("offset_group", 1)
        (n, c, *sizes), kernel, out = x.shape, w.shape[2:], offset.shape[2:]
        strides, dilations = (self._get(name, [1, 1]) for name in ("strides", "dilations"))
        pads = self._get("pads", [0] * 4)
        moved: Any = offset.reshape(n, shared, *kernel, 2, *out)
        kept: Any = np.ones((n, shared, *kernel, *out)) if mask is None else mask
        kept = kept.reshape(n, shared, *kernel, *out)
        parts = x.reshape(n, shared, c // shared, -1)
        columns: Any = np.empty((n, c, *kernel, *out))
        for tap in product(*map(range, kernel)):
            places = []
            for i in range(2):
                first = np.arange(out[i]) * strides[i] - pads[i] + tap[i] * dilations[i]
                places.append(first.reshape((-1, 1) if i == 0 else (1, -1)) + moved[:, :, *tap, i])
            read = np.zeros((n, shared, c // shared, *out))
            for corner in product((0, 1), repeat=2):
                at = [np.floor(place) + step for place, step in zip(places, corner, strict=True)]
                near = [1 - np.abs(place - end) for place, end in zip(places, at, strict=True)]
                inside = np.logical_and.reduce(
                    [(end >= 0) & (end < size) for end, size in zip(at, sizes, strict=True)]
                )
                rows, cols = (np.where(inside, end, 0).astype(np.int64) for end in at)
                flat = (rows * sizes[1] + cols).reshape(n, shared, 1, -1)
                found = np.take_along_axis(parts, flat, 3).reshape(read.shape)
                read += found * np.where(inside, near[0] * near[1], 0)[:, :, None]
            columns[:, :, *tap] = (read * kept[:, :, *tap][:, :, None]).reshape(n, c, *out)
        grouped = columns.reshape(n, groups, -1, int(np.prod(out)))
        weights = w.reshape(groups, w.shape[0] // groups, -1)
        y = np.matmul(weights, grouped).reshape(n, w.shape[0], *out)
        return (y if b is None else y + b.reshape(-1, 1, 1),)


def _reflected(v: Array, low: float, high: float) -> Array:
    """Reflected at both ends as often as it takes: a zigzag of twice their distance."""
    if high <= low:
        return np.full_like(v, low)
    turn = np.mod(v - low, 2 * (high - low))
    return low + np.minimum(turn, 2 * (high - low) - turn)


def _keys(s: Array) -> Array:
    """Weights of a cubic convolution (Keys, 1981) with a = −0.75 at a distance s."""
    a = -0.75
    far = ((a * s - 5 * a) * s + 8 * a) * s - 4 * a
    return np.where(s <= 1, ((a + 2) * s - (a + 3)) * s * s + 1, far)


OPERATORS = (GridSample, DeformConv)
