"""The launch shape of convolutions, with or without a pool, whose image and weights both fit into the shared
memory of a block."""

from __future__ import annotations

import numpy as np

from kernels.errors import UnsupportedError
from kernels.estimates.fitted_device import MULTIPROCESSORS
from kernels.estimates.whole_image import (
    FOUR,
    MOST_SUMS,
    BlockShare,
    Cell,
    Curves,
    columns,
    fit,
    nbytes,
    rows,
)
from kernels.header import Define
from kernels.launch.core import MAX_X, Launch, Pack, shape
from kernels.launch.direct import shapes
from kernels.occupancy import ceil
from kernels.ops import Scalar, code
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.registry import Rung

_MOST_BLOCKS = 8 * MULTIPROCESSORS  # beyond which a block takes several images
_CURVED = ("tanh", "sigmoid")


@shape
def conv_whole_image(params: Conv, rung: Rung) -> Launch:
    """Blocks of THREADS threads an image, MAPS maps of a group and BAND rows of y; a thread computes DOWN
    outputs, one below the other, in four maps. Few images are shared among more blocks, a few maps and rows
    each, and SHARES threads share the channels of a sum. grid = (images, groups · parts of the maps, bands);
    the weights are packed as (group, part, taps, MAPS)."""
    curves = Curves(params.activation in _CURVED, False)
    return _launch(rung, params, Cell(1, 1), curves, params.scalars(), {})


@shape
def conv_pool_whole_image(params: ConvPool, rung: Rung) -> Launch:
    """As conv_whole_image, an output being CELL_H × CELL_W of the convolution's. Pools whose windows lie side
    by side alone."""
    conv, pool = params.conv, params.pool
    apart = (pool.kh, pool.kw) != (pool.stride_h, pool.stride_w)
    beyond = pool.out_h * pool.kh > pool.h or pool.out_w * pool.kw > pool.w
    padded = pool.pad_top or pool.pad_left
    dilated = (pool.dilation_h, pool.dilation_w) != (1, 1)
    if apart or beyond or padded or dilated:
        raise UnsupportedError(
            f"{rung.label} pools windows that lie side by side within the image, and here they overlap, "
            "leave gaps or reach beyond it"
        )
    cell = Cell(pool.kh, pool.kw)
    if FOUR * cell.h * cell.w > MOST_SUMS:
        raise UnsupportedError(
            f"{rung.label} has a thread compute a window in {FOUR} maps, at most {MOST_SUMS} sums, and a "
            f"window of {cell.h}×{cell.w} takes {FOUR * cell.h * cell.w}"
        )
    defines: dict[str, Define] = {
        "KIND": code("POOL", pool.kind),
        "BETWEEN": code("ACTIVATION", conv.activation),
        "AFTER": code("ACTIVATION", pool.activation),
        "OUT_H": pool.out_h,
        "OUT_W": pool.out_w,
    }
    curves = Curves(conv.activation in _CURVED and pool.kind != "max", pool.activation in _CURVED)
    return _launch(rung, conv, cell, curves, params.scalars(), defines)


def _launch(
    rung: Rung, p: Conv, cell: Cell, curves: Curves, scalars: tuple[Scalar, ...], defines: dict[str, Define]
) -> Launch:
    out_h, outputs = p.out_h // cell.h, p.m // p.group
    share = fit(p, cell, curves)
    if share is None:
        least = nbytes(p, cell, BlockShare(FOUR, 1, 1, 1, 0))
        raise UnsupportedError(
            f"{rung.label} keeps an image and the weights of {FOUR} maps in 48 KB of shared memory, and "
            f"here a row of outputs alone takes {ceil(least, 1 << 10)} KB"
        )
    fitted: dict[str, Define] = {
        "BAND": share.band,
        "ROWS": rows(p, cell, share),
        "COLUMNS": columns(p, cell),
        "THREADS": share.threads,
        "DOWN": share.down,
        "CELL_H": cell.h,
        "CELL_W": cell.w,
        "MAPS": share.maps,
        "SHARES": share.shares,
    }
    return Launch(
        (min(p.n, _MOST_BLOCKS, MAX_X), p.group * ceil(outputs, share.maps), ceil(out_h, share.band)),
        (share.threads, 1, 1),
        scalars,
        defines=shapes(p) | fitted | defines,
        packed={1: Pack(pack, (p.group, share.maps))},
    )


def pack(weight: np.ndarray, group: int, maps: int) -> np.ndarray:
    """Weights (m, taps…) as (group, part, taps, maps): zeros stand for maps beyond a group's last."""
    per_group = weight.reshape(group, weight.shape[0] // group, -1)
    parts = ceil(per_group.shape[1], maps)
    padded = np.zeros((group, parts * maps, per_group.shape[2]), weight.dtype)
    padded[:, : per_group.shape[1]] = per_group
    return padded.reshape(group, parts, maps, -1).transpose(0, 1, 3, 2)
