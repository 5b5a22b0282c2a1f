"""How a convolution by warpgroups is cut into tiles, and what a block keeps in shared memory."""

from __future__ import annotations

from kernels.estimates.fitted_device import MULTIPROCESSORS
from kernels.packing import WIDE_SLAB_NBYTES

GROUP_ROWS, GROUP_THREADS = 64, 128
# By the columns of a tile of 128 rows: what a multiprocessor takes for as many such tiles as it holds, beside
# each other. Of an H200, where a block of two narrow ones waits while the other multiplies.
WAVES = {64: 50.0, 96: 54.0, 128: 61.7, 192: 45.2}
_SHARED_NBYTES = 227 << 10  # of a multiprocessor of compute capability 9.0
_RESERVED_NBYTES = 1 << 10  # of it for each block
_MOST_STAGES, _LEAST_STAGES = 4, 3


def threads(rows: int) -> int:
    """Of a block with so many rows."""
    return GROUP_THREADS * rows // GROUP_ROWS


def fit(rows: int, columns: int, batch: int, tile_rows: int) -> int:
    """How wide the tiles of `batch` products of rows × columns are: with the shortest waves of blocks."""

    def cost(wide: int) -> float:
        blocks = batch * -(-rows // tile_rows) * -(-columns // wide)
        _, held = stages(tile_rows, wide)
        return -(-blocks // (held * MULTIPROCESSORS)) * WAVES[wide]

    return min(WAVES, key=cost)


def stages(rows: int, columns: int) -> tuple[int, int]:
    """How many slabs a block keeps, and how many blocks a multiprocessor is to hold: two where these have
    room for enough slabs each."""
    slab = WIDE_SLAB_NBYTES * (rows + columns)
    for blocks in (2, 1):
        held = min(_MOST_STAGES, (_SHARED_NBYTES // blocks - _RESERVED_NBYTES) // slab)
        if held >= _LEAST_STAGES:
            return held, blocks
    raise ValueError(f"tiles of {rows} × {columns} leave no room for {_LEAST_STAGES} slabs")
