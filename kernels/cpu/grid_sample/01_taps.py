# op = "grid_sample"
# rung = 1
# name = "taps"
# idea = "Along each axis what all outputs read and its weights, then one gathering product a tap."
"""y = Σ weight · x over the taps round each place of the grid."""

from itertools import product

import numpy as np


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.n, p.c, -1)
    outs = p.out[0] * p.out[1] * p.out[2]
    grid, y = inputs[1].reshape(p.n, outs, p.dims), output.reshape(p.n, p.c, outs)
    axes = range(3 - p.dims, 3)

    def run():
        taps = [_along(p, p.size[axis], grid[..., 2 - axis]) for axis in axes]
        y.fill(0)
        for chosen in product(*(range(len(places)) for places, _ in taps)):
            index = np.zeros((p.n, outs), np.int64)
            weight, inside = np.ones((p.n, outs), np.float32), np.ones((p.n, outs), np.bool_)
            for axis, (places, weights), which in zip(axes, taps, chosen, strict=True):
                index = index * p.size[axis] + np.maximum(places[which], 0)
                inside = inside & (places[which] >= 0)
                weight = weight * weights[which]
            read = np.take_along_axis(x, index[:, None], 2)
            # What lies beyond x is 0, whatever stands in the place that was read for it.
            y[...] += np.where(inside, weight, np.float32(0))[:, None] * np.where(
                inside[:, None], read, np.float32(0)
            )

    return run


def _along(p, size, grid):
    """The elements of one axis that each tap reads, −1 for a zero, and their weights."""
    one, edge = np.float32(1), np.float32(0 if p.corners else 0.5)
    low, high = -edge, np.float32(size - 1) + edge
    v = (grid + one) / 2 * np.float32(size - 1) if p.corners else ((grid + one) * np.float32(size) - one) / 2
    if p.mode == "nearest":
        v = np.rint(v)
    if p.padding == "border" and p.mode != "cubic":  # whose taps are held within x each by itself
        v = np.where((v < low) | (v > high), np.clip(v, 0, size - 1), v)
    elif p.padding == "reflection":
        v = _reflected(v, low, high)
    # Far beyond x, and NaN, are as good as just beyond it.
    v = np.where(v > -4, np.minimum(v, np.float32(size + 4)), np.float32(-4))
    whole = np.trunc(v) if p.mode == "nearest" else np.floor(v)
    first, t = whole.astype(np.int64), v - whole
    if p.mode == "nearest":
        weights = [np.ones_like(t)]
    elif p.mode == "linear":
        weights = [one - t, t]
    else:
        first, weights = first - 1, [_cubic(np.abs(t - np.float32(i))) for i in (-1, 0, 1, 2)]
    return [_read(p, first + i, size, low, high) for i in range(len(weights))], weights


def _cubic(s):
    """Keys' weights with a = −0.75 at a distance s."""
    a = np.float32(-0.75)
    near = ((a + 2) * s - (a + 3)) * s * s + 1
    far = ((a * s - 5 * a) * s + 8 * a) * s - 4 * a
    return np.where(s <= 1, near, far)


def _read(p, places, size, low, high):
    if p.padding == "zeros":
        return np.where((places >= 0) & (places < size), places, -1)
    if p.padding == "reflection":
        within = (places >= 0) & (places < size)
        mirrored = np.trunc(_reflected(places.astype(np.float32), low, high)).astype(np.int64)
        places = np.where(within, places, mirrored)
    return np.clip(places, 0, size - 1)


def _reflected(v, low, high):
    """Reflected at `low` and `high` as often as it takes."""
    extent = high - low
    if extent <= 0:
        return np.full_like(v, low)
    off = np.where(v < low, low - v, v - high)
    times = np.floor(off / extent)
    rest = off - times * extent
    even = np.mod(times, 2) == 0
    return np.where((v >= low) & (v <= high), v, np.where((v < low) == even, low + rest, high - rest))
