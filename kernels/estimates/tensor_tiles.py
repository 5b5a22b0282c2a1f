"""Which tile a product on tensor cores takes, its sum in how many parts: the least of an estimate.

As `tiles` for ordinary cores: the estimate knows the shape alone, and a device about as large as
today's largest. Rows of a product are pixels of a convolution or rows of a, columns are channels or columns
of b.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kernels.estimates.fitted_device import MULTIPROCESSORS
from kernels.estimates.tiles import PARTS
from kernels.occupancy import REGISTERS
from kernels.packing import SLAB_NBYTES
from kernels.precision import narrow


class TensorTile(NamedTuple):
    """A block's rows × columns of the product, and those of each of its warps."""

    rows: int
    columns: int
    warp_rows: int
    warp_columns: int

    @property
    def threads(self) -> int:
        return 32 * (self.rows // self.warp_rows) * (self.columns // self.warp_columns)

    @property
    def defines(self) -> dict[str, int]:
        """As the rungs are compiled for it."""
        return {
            "TILE_ROWS": self.rows,
            "TILE_COLUMNS": self.columns,
            "WARP_ROWS": self.warp_rows,
            "WARP_COLUMNS": self.warp_columns,
        }


CONV_TILES: tuple[TensorTile, ...] = (
    TensorTile(128, 128, 64, 64),
    TensorTile(128, 96, 64, 48),
    TensorTile(128, 64, 64, 32),
    TensorTile(64, 128, 32, 64),
    TensorTile(64, 64, 32, 32),
    TensorTile(128, 32, 32, 32),
    TensorTile(32, 128, 16, 64),
    TensorTile(32, 64, 16, 32),
    TensorTile(128, 16, 32, 16),
)
# Three products instead of one, and what they take of registers: more warps, each with less.
SPLIT_CONV_TILES: tuple[TensorTile, ...] = (
    TensorTile(128, 128, 32, 64),
    TensorTile(128, 96, 32, 48),
    TensorTile(128, 64, 32, 64),
    *(tile for tile in CONV_TILES if tile.warp_rows * tile.warp_columns <= 1024),
)
GEMM_TILES: tuple[TensorTile, ...] = (
    TensorTile(128, 128, 64, 64),
    TensorTile(128, 64, 64, 32),
    TensorTile(64, 128, 32, 64),
    TensorTile(64, 64, 32, 32),
    TensorTile(32, 128, 32, 32),
    TensorTile(32, 64, 16, 32),
    TensorTile(16, 128, 16, 32),
    TensorTile(16, 64, 16, 16),
)
SPLIT_GEMM_TILES: tuple[TensorTile, ...] = (
    TensorTile(128, 128, 32, 64),
    TensorTile(128, 64, 32, 64),
    *(tile for tile in GEMM_TILES if tile.warp_rows * tile.warp_columns <= 1024),
)

_CLOCK = 1700.0  # cycles a microsecond
_MMA_CYCLES = 6.3 / 4  # of a multiprocessor, from a rate of 312 (tf32) and 625 (fp16) TFLOP/s
_SPLIT = 3.0  # times as many of them for float32 out of TF32
_SHARED_NBYTES = 128.0  # that move between shared memory and registers in a cycle
_GATHERED = 2.0  # times what a convolution's patches take of them, for each of their bytes in memory
_SLAB_CYCLES = 20.0  # of a slab beside that
_WARPS = 10.0  # of a multiprocessor that hide all waiting
_STEP_US = 0.65  # at least, for a slab to come from memory and through shared memory
_START_US = 3.4
_SECOND_KERNEL_US = 0.44
_MOVED = 3.26e6  # bytes a microsecond that partial sums are written and read at
_MOST_PARTIAL_NBYTES = 64 << 20
_OTHER_REGISTERS, _MOST_THREADS = 64, 1536


def fit(
    tiles: Iterable[TensorTile],
    precision: str,
    rows: int,
    columns: int,
    slabs: int,
    batch: int,
    parts: tuple[int, ...] = PARTS,
) -> tuple[TensorTile, int]:
    """The tile and the number of parts (out of `parts`) that should take least time for `batch` products of
    rows × columns, each a sum of so many slabs."""
    choices = [
        (tile, count)
        for tile in tiles
        for count in parts
        if count == 1 or (slabs >= 2 * count and 4 * count * batch * rows * columns <= _MOST_PARTIAL_NBYTES)
    ]

    def cost(choice: tuple[TensorTile, int]) -> tuple[float, int]:
        tile, count = choice
        return microseconds(tile, precision, rows, columns, slabs, batch, count), tile.rows * tile.columns

    return min(choices, key=cost)


def microseconds(
    tile: TensorTile, precision: str, rows: int, columns: int, slabs: int, batch: int, parts: int
) -> float:
    """The estimate. A multiprocessor takes its blocks' slabs in turn, each as long as its tensor cores or the
    way through shared memory need for it; and no slab of a block takes less than one trip to memory."""
    blocks = batch * -(-rows // tile.rows) * -(-columns // tile.columns) * parts
    steps = -(-slabs // parts)
    queue = -(-blocks // MULTIPROCESSORS)
    registers = tile.warp_rows * tile.warp_columns // 32 + _OTHER_REGISTERS
    resident = min(queue, max(1, min(_MOST_THREADS, REGISTERS // registers) // tile.threads))
    multiplying = 2 * (tile.rows // 16) * (tile.columns // 8) * _MMA_CYCLES
    if precision == "fp32-tc":
        multiplying *= _SPLIT
    warps = tile.threads // 32
    gathered = tile.rows * (2 if narrow(precision) else 1) * _GATHERED  # out of memory in float32
    moved = warps * (tile.warp_rows + tile.warp_columns) + tile.rows + tile.columns + gathered
    busy = min(1.0, resident * warps / _WARPS)
    slab_us = (max(multiplying, SLAB_NBYTES * moved / _SHARED_NBYTES) + _SLAB_CYCLES) / busy / _CLOCK
    time = _START_US + max(queue * steps * slab_us, -(-queue // resident) * steps * _STEP_US)
    if parts > 1:
        time += _SECOND_KERNEL_US + 2 * 4 * parts * batch * rows * columns / _MOVED
    return time
