"""Which tile a convolution over NHWC chunks takes, its sum in how many parts: the least of an estimate.

As `tensor_tiles` for tiles whose patches are gathered through registers; the numbers are of an H200.
"""

from __future__ import annotations

from kernels.estimates.fitted_device import MULTIPROCESSORS
from kernels.estimates.tensor_tiles import CONV_TILES, TensorTile
from kernels.estimates.tiles import PARTS

_CLOCK = 1700.0  # cycles a microsecond
# By the tile: cycles of a full multiprocessor for a slab of a block, and how many blocks fill it.
_CYCLES = {
    (128, 128): (670, 2),
    (128, 96): (545, 2),
    (128, 64): (395, 3),
    (64, 128): (380, 3),
    (64, 64): (222, 4),
    (128, 32): (220, 4),
    (32, 128): (220, 4),
    (32, 64): (130, 6),
    (128, 16): (240, 4),
}
_WAITING_CYCLES = 200.0  # for a slab to arrive, which the blocks of a multiprocessor share
_START_US = 3.0
_SECOND_KERNEL_US = 0.8
_MOVED = 3.26e6  # bytes a microsecond that partial sums are written and read at
_MOST_PARTIAL_NBYTES = 64 << 20


def fit(
    tiles: tuple[TensorTile, ...], precision: str, rows: int, columns: int, slabs: int, batch: int
) -> tuple[TensorTile, int]:
    """The tile and the number of parts that should take least time for `batch` products of rows × columns,
    each a sum of so many slabs."""
    choices = [
        (tile, count)
        for tile in tiles
        for count in PARTS
        if count == 1 or (slabs >= 2 * count and 4 * count * batch * rows * columns <= _MOST_PARTIAL_NBYTES)
    ]

    def cost(choice: tuple[TensorTile, int]) -> tuple[float, int]:
        tile, count = choice
        return microseconds(tile, rows, columns, slabs, batch, count), tile.rows * tile.columns

    return min(choices, key=cost)


def microseconds(tile: TensorTile, rows: int, columns: int, slabs: int, batch: int, parts: int) -> float:
    """The estimate: rounds of as many blocks as a multiprocessor holds, and one of what is left."""
    blocks = batch * -(-rows // tile.rows) * -(-columns // tile.columns) * parts
    cycles, most = _CYCLES[tile.rows, tile.columns]
    full, rest = divmod(-(-blocks // MULTIPROCESSORS), most)
    slab = full * (most * cycles + _WAITING_CYCLES / most)
    slab += rest * cycles + _WAITING_CYCLES / rest if rest else 0.0
    time = _START_US + -(-slabs // parts) * slab / _CLOCK
    if parts > 1:
        time += _SECOND_KERNEL_US + 2 * 4 * parts * batch * rows * columns / _MOVED
    return time


assert set(_CYCLES) == {(tile.rows, tile.columns) for tile in CONV_TILES}
