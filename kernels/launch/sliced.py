"""The launch shape of products whose blocks share their sums between groups of threads."""

from __future__ import annotations

from kernels import packing
from kernels.estimates.sliced import SLICED_TILES, SlicedTile, fit
from kernels.launch.core import Launch, Pack, in_parts, shape
from kernels.occupancy import ceil
from kernels.ops.gemm import Gemm
from kernels.registry import Rung

_WEIGHT = 1  # the place of the weights among the inputs
_ADDED = 32  # outputs of a block that adds parts


def tiles(rung: Rung) -> tuple[SlicedTile, ...]:
    """The tiles that a rung on this launch shape may be given."""
    return SLICED_TILES if rung.launch == "gemm_sliced" else ()


@shape
def gemm_sliced(params: Gemm, rung: Rung) -> Launch:
    """A block a tile of y, the tile chosen out of SLICED_TILES, tiles in grid.x, column first; the sum in
    PARTS parts, a block each (grid.y): part p writes its (m, n) sums to element p · m · n of the scratch
    memory, and the stage `gemm_reduce` adds them in order, 32 outputs a block of four warps. With PARTS = 1
    the first stage writes y itself. b is packed: a row a column of y, whole tiles of weights and zeros."""
    tile, parts = fit(params.m, params.n, params.k)
    grid = (ceil(params.m, tile.m) * ceil(params.n, tile.n), parts, 1)
    packed = {_WEIGHT: Pack(packing.tiled_rows, (params.trans_b, tile.n, tile.k))}
    return in_parts(params, grid, tile.threads, parts, tile.defines, packed, _ADDED)
