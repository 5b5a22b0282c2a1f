"""The launch shape of convolutions that multiply rows of the image themselves (cuda/conv_rows.cuh)."""

from __future__ import annotations

from dataclasses import dataclass

from kernels import packing
from kernels.errors import KernelError, UnsupportedError
from kernels.estimates.fitted_device import MULTIPROCESSORS
from kernels.estimates.wgmma_tiles import GROUP_ROWS, threads
from kernels.header import Define
from kernels.launch.core import MAX_X, MAX_YZ, Launch, Pack, Stage, define, shape
from kernels.launch.nhwc import LOOKING, SHARES
from kernels.occupancy import ceil
from kernels.ops import code
from kernels.ops.conv import Conv
from kernels.registry import Rung

_WEIGHT = 1  # the place of the weights among the inputs
_SHARED_NBYTES = 227 << 10  # of a block of compute capability 9.0
_COLUMNS = (64, 96, 128, 192)
# With sums that come in parts a thread has both in registers.
_SPLIT_COLUMNS = (64, 96)
_MOST_SUMS = 384  # channels of a block, times warpgroups: what threads have the registers for
_WARP = 32
_MOST_LOADS = 32  # of a lane, for a row of the image
# Clocks beside a turn's products; how many warpgroups multiply as fast as tensor cores can; and bytes that a
# multiprocessor fetches a clock. Of the groups tried on an H200 (AlexNet's first convolution, batches of 1 to
# 1,024) these take the fastest.
_TURN, _ENOUGH_GROUPS, _FETCHED = 2000, 2, 24


@dataclass(frozen=True)
class Tile:
    """A block's warpgroups and channels."""

    groups: int
    columns: int

    @property
    def pixels(self) -> int:
        """That it has the windows of at once."""
        return GROUP_ROWS * self.groups


@shape
def conv_image_rows(params: Conv, rung: Rung) -> Launch:
    """A block lives as long as the kernel: grid = (as many as the device runs at once, tiles of TILE_COLUMNS
    channels), GROUPS warpgroups each, the shape of the image and of the window compiled in. Dynamic shared
    memory: all weights of a tile, and the rows of the image under the windows of 64 · GROUPS pixels. Where a
    number is the sum of two (OPERANDS), the stage conv_largest before it finds what each image is scaled by.
    The rungs need one group, and no dilation. Raises UnsupportedError where what is kept does not fit."""
    p, operands = params, define(rung, "OPERANDS", 1)
    if ceil(min(p.w, _span(p)), _WARP) > _MOST_LOADS or p.pad_left >= _span(p):
        raise UnsupportedError(
            f"{rung.label} takes rows of up to {_MOST_LOADS * _WARP} columns; {p} has more"
        )
    if max(p.n * p.out_h * p.out_w, p.c * p.h * p.w) > MAX_X - 4096:
        raise KernelError(f"{rung.label} counts pixels in 32 bits; {p} has more")
    most = define(rung, "GROUPS")
    tiles = [
        Tile(groups, columns)
        for groups in range(most, 0, -1)
        for columns in (_SPLIT_COLUMNS if operands > 1 else _COLUMNS)
        if columns <= _MOST_SUMS // groups
    ]
    fitting = [
        tile
        for tile in tiles
        if _nbytes(p, rung, tile) <= _SHARED_NBYTES and ceil(p.m, tile.columns) <= MAX_YZ
    ]
    if not fitting:
        raise UnsupportedError(
            f"{rung.label} keeps all weights and {p.kh} rows of the image in shared memory; {p} needs "
            f"{min(_nbytes(p, rung, tile) for tile in tiles)} bytes of {_SHARED_NBYTES}"
        )
    tile = min(fitting, key=lambda tile: _clocks(p, rung, tile))
    defines: dict[str, Define] = {
        name.upper(): getattr(p, name)
        for name in [
            "c",
            "h",
            "w",
            "kh",
            "kw",
            "out_h",
            "out_w",
            "stride_h",
            "stride_w",
            "pad_top",
            "pad_left",
        ]
    }
    nbytes = _nbytes(p, rung, tile)
    defines |= {"GROUPS": tile.groups, "TILE_COLUMNS": tile.columns, "KEPT_NBYTES": nbytes}
    defines |= {"AFTER": code("ACTIVATION", p.activation), "WRITES": rung.defines.get("WRITES", 0)}
    looking = Stage("conv_largest", (SHARES * p.n, 1, 1), (LOOKING, 1, 1))
    return Launch(
        (_blocks(p, tile), ceil(p.m, tile.columns), 1),
        (threads(tile.pixels), 1, 1),
        p.scalars(),
        shared_nbytes=nbytes,
        defines=defines,
        workspace_nbytes=4 * SHARES * p.n if operands > 1 else 0,
        before=(looking,) if operands > 1 else (),
        packed={_WEIGHT: Pack(packing.row_slabs, (p.stride_w, rung.precision, tile.columns))},
    )


def _span(p: Conv) -> int:
    """Columns under windows, those of padding among them."""
    return (p.out_w - 1) * p.stride_w + p.kw


def _steps(p: Conv, rung: Rung) -> int:
    """Instructions of two quartets."""
    deep, values = packing.row_depth(p.c, p.stride_w, rung.precision)
    run = ceil(p.kw * deep, values)
    fours = packing.FOURS
    return ceil(p.kh * (run // fours) + run % fours * ceil(p.kh, fours), 2)


def _nbytes(p: Conv, rung: Rung, tile: Tile) -> int:
    """Shared memory of a block."""
    operands = define(rung, "OPERANDS", 1)
    deep, values = packing.row_depth(p.c, p.stride_w, rung.precision)
    lead = ceil(_span(p) * deep, values) | 1
    pixels, wide = tile.pixels, p.out_w
    spanned = (pixels + wide - 2) // wide + 1 if pixels % wide else pixels // wide
    rows = (min(spanned, p.out_h) - 1) * p.stride_h + p.kh
    slabs = ceil(_steps(p, rung), 4 // operands)
    return packing.WIDE_SLAB_NBYTES * slabs * tile.columns + 4 * operands * (rows * lead + tile.columns)


def _turns(p: Conv, tile: Tile) -> int:
    return p.n * ceil(p.out_h * p.out_w, tile.pixels)


def _blocks(p: Conv, tile: Tile) -> int:
    """That share the turns of a tile of channels."""
    return min(_turns(p, tile), max(1, MULTIPROCESSORS // ceil(p.m, tile.columns)))


def _clocks(p: Conv, rung: Rung, tile: Tile) -> float:
    operands = define(rung, "OPERANDS", 1)
    across, products = ceil(p.m, tile.columns), 1 if operands == 1 else 3
    turn = max(tile.groups, _ENOUGH_GROUPS) * tile.columns / 2 * products * _steps(p, rung) + _TURN
    waves = ceil(_blocks(p, tile) * across, MULTIPROCESSORS)
    each = ceil(_turns(p, tile), _blocks(p, tile)) * turn + _nbytes(p, rung, tile) / _FETCHED
    return waves * each
