"""The launch shape of convolutions of images with few channels, which read the image as it is
(cuda/conv_band.cuh)."""

from __future__ import annotations

import math

from kernels import packing
from kernels.errors import KernelError, UnsupportedError
from kernels.estimates import nhwc_tiles
from kernels.estimates.tensor_tiles import CONV_TILES, TensorTile
from kernels.header import Define
from kernels.launch.core import MAX_X, Launch, Pack, define, shape
from kernels.occupancy import ceil
from kernels.ops import code
from kernels.ops.conv import Conv
from kernels.registry import Rung

_WEIGHT = 1  # the place of the weights among the inputs
_MOST_CHANNELS = 8  # more fill chunks of NHWC well
_STAGES = 3
_SHARED_NBYTES = 99 << 10  # of a block, on every device since compute capability 8.0
_ALL_SHARED_NBYTES = 228 << 10  # of a large device's multiprocessor
_RESERVED_NBYTES = 1 << 10  # that the system keeps of it, a block
_BANKS_NBYTES = 128


@shape
def conv_band(params: Conv, rung: Rung) -> Launch:
    """A block computes TILE_ROWS pixels of one image × TILE_COLUMNS channels. Tiles are in grid.x; those of
    the same pixels follow each other. Dynamic shared memory: STAGES slabs of weights, C · BAND_ROWS rows of
    LEAD values, and the place of each piece in them."""
    p = params
    if p.c > _MOST_CHANNELS:
        raise UnsupportedError(f"{rung.label} is for images of up to {_MOST_CHANNELS} channels, not {p.c}")
    # A read of several neighbours begins on a boundary of as many: columns are not dilated.
    if p.dilation_w > 1:
        raise UnsupportedError(f"{rung.label} takes columns that are neighbours, not {p.dilation_w} apart")
    if max(p.h, p.w, p.c * p.h * p.w, p.n * p.out_h * p.out_w) > MAX_X - 4096:
        raise KernelError(f"{rung.label} counts pixels in 32 bits; {p} has more")
    lead = _lead(p, rung.precision)
    slabs = ceil(p.c * p.kh * ceil(p.kw, packing.PIECE) * packing.PIECE, packing.depth(rung.precision))
    area = p.out_h * p.out_w
    fitting = [tile for tile in CONV_TILES if _nbytes(p, rung, tile, lead, slabs) <= _SHARED_NBYTES]
    if not fitting:
        least = min(_nbytes(p, rung, tile, lead, slabs) for tile in CONV_TILES)
        raise UnsupportedError(
            f"{rung.label} keeps the rows under a few pixels' windows in {_SHARED_NBYTES >> 10} KB of shared "
            f"memory, and here they take {ceil(least, 1 << 10)} KB"
        )

    def cost(tile: TensorTile) -> tuple[float, int]:
        resident = _ALL_SHARED_NBYTES // (_nbytes(p, rung, tile, lead, slabs) + _RESERVED_NBYTES)
        pixels = p.n * ceil(area, tile.rows) * tile.rows
        return nhwc_tiles.microseconds(tile, pixels, p.m, slabs, 1, 1, resident), tile.rows * tile.columns

    tile = min(fitting, key=cost)
    grid = (p.n * ceil(area, tile.rows) * ceil(p.m, tile.columns), 1, 1)
    defines: dict[str, Define] = {**tile.defines, "STAGES": _STAGES, "C": p.c, "KH": p.kh, "KW": p.kw}
    defines |= {"BAND_ROWS": _band_rows(p, tile), "LEAD": lead, "UNIT": math.gcd(packing.PIECE, p.stride_w)}
    defines |= {"AFTER": code("ACTIVATION", p.activation), "WRITES": rung.defines.get("WRITES", 0)}
    return Launch(
        grid,
        (tile.threads, 1, 1),
        p.scalars(),
        shared_nbytes=_nbytes(p, rung, tile, lead, slabs),
        defines=defines,
        packed={_WEIGHT: Pack(packing.band_slabs, (rung.precision, tile.columns))},
    )


def _band_rows(p: Conv, tile: TensorTile) -> int:
    """Rows of the image under the windows of a tile's pixels, at any place of a row where the tile may
    begin."""
    spanned = tile.rows // p.out_w if tile.rows % p.out_w == 0 else (tile.rows + p.out_w - 2) // p.out_w + 1
    return (min(spanned, p.out_h) - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1


def _lead(p: Conv, precision: str) -> int:
    """Values from one row of the band to the next. Neighbouring lanes read pieces of one row of the window
    and of the next: these lie half the banks apart, so that they do not wait for each other."""
    each = packing.SLAB_NBYTES // packing.depth(precision)
    reach = (p.out_w - 1) * p.stride_w + ceil(p.kw, packing.PIECE) * packing.PIECE
    lead = ceil(reach, packing.PIECE) * packing.PIECE
    # Four pixels' pieces (float16: of eight bytes) are of six neighbours, two pixels' (of sixteen) of four.
    free = (48, 80) if each == 2 else (64, 64)
    while not free[0] <= lead * each % _BANKS_NBYTES <= free[1]:
        lead += packing.PIECE
    return lead


def _nbytes(p: Conv, rung: Rung, tile: TensorTile, lead: int, slabs: int) -> int:
    """Shared memory of a block: while it sums, or while it writes y."""
    per_slab = packing.depth(rung.precision)
    each = packing.SLAB_NBYTES // per_slab
    summing = _STAGES * packing.SLAB_NBYTES * tile.columns + each * p.c * _band_rows(p, tile) * lead
    summing += 4 * slabs * per_slab // packing.PIECE
    at_once = packing.CHUNK_NBYTES // each
    piece = tile.warp_columns if at_once == 8 else 16
    chunks = tile.warp_rows * (piece + at_once) // at_once  # of a warp, as LAID_OUT in cuda/conv_out.cuh
    planes = 8 * (tile.warp_rows + 8) // 4
    writing = packing.CHUNK_NBYTES * tile.threads // 32 * max(chunks, planes)
    assert define(rung, "EACH") == at_once
    return max(summing, writing)
