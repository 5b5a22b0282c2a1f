"""How a product by warpgroups is cut into tiles, and what a block keeps in shared memory."""

from __future__ import annotations

from kernels.estimates.fitted_device import MULTIPROCESSORS
from kernels.estimates.tiles import PARTS
from kernels.packing import WIDE_SLAB_NBYTES

GROUP_ROWS, GROUP_THREADS = 64, 128
# By the columns of a tile of 128 rows: microseconds of a multiprocessor of an H200 for sums of _WAVE_SLABS
# slabs in as many such tiles as it holds; and what part of that one of two takes alone.
WAVES = {64: 50.0, 96: 54.0, 128: 61.7, 192: 45.2}
# The same of operands that are sums of two float16, of which three products are taken.
SPLIT_WAVES = {64: 67.0, 96: 43.0, 128: 50.0, 192: 61.0}
ALONE = 0.62
_WAVE_SLABS = 72
_SECOND_KERNEL_US = 0.8
CLUSTERS = (1, 2, 3, 4, 6, 8)  # blocks that share a sum
_BLOCK_US = 4.0  # of them beside its products
_COLUMN_US, _PART_US = 0.045, 1.2  # instead, where blocks share a sum: for each of its columns, and of them
# Multiprocessors that clusters of three and more fill: they stand in parts of uneven size.
_NEAR = 126
_MOVED = 3.26e6  # bytes a microsecond that partial sums are written and read at
_SHARED_NBYTES = 227 << 10  # of a multiprocessor of compute capability 9.0
_RESERVED_NBYTES = 1 << 10  # of it for each block
_MOST_STAGES, _LEAST_STAGES = 4, 3
_SPLIT_COLUMNS = 64  # of two blocks each, whose sums and parts of sums fill a multiprocessor's registers


def threads(rows: int) -> int:
    """Of a block with so many rows."""
    return GROUP_THREADS * rows // GROUP_ROWS


def waves(operands: int) -> dict[int, float]:
    """By the columns of a tile, where a number is one, or the sum of two."""
    return SPLIT_WAVES if operands > 1 else WAVES


def fit_clusters(
    rows: int, columns: int, slabs: int, tile_rows: int, operands: int, batch: int
) -> tuple[int, int]:
    """How wide the tiles of `batch` products of rows × columns are, and how many blocks of a cluster share
    the sum of each."""

    def cost(choice: tuple[int, int]) -> float:
        wide, parts = choice
        blocks = parts * batch * -(-rows // tile_rows) * -(-columns // wide)
        beside = _COLUMN_US * wide + _PART_US * parts if parts > 1 else _BLOCK_US
        each = (waves(operands)[wide] - _BLOCK_US) * -(-slabs // parts) / _WAVE_SLABS + beside
        return _count(blocks, tile_rows, wide, operands, parts) * each

    counts = [parts for parts in CLUSTERS if parts == 1 or slabs >= 2 * _LEAST_STAGES * parts]
    return min(((wide, parts) for wide in waves(operands) for parts in counts), key=cost)


def fit_parts(rows: int, columns: int, slabs: int, tile_rows: int, operands: int = 1) -> tuple[int, int]:
    """How wide the tiles of a product of rows × columns are, and in how many parts its sum of so many slabs
    is taken."""

    def cost(choice: tuple[int, int]) -> float:
        wide, parts = choice
        blocks = parts * -(-rows // tile_rows) * -(-columns // wide)
        each = waves(operands)[wide] * -(-slabs // parts) / _WAVE_SLABS
        time = _count(blocks, tile_rows, wide, operands) * each
        moved = 2 * 4 * parts * rows * columns
        return time + (_SECOND_KERNEL_US + moved / _MOVED if parts > 1 else 0.0)

    counts = [parts for parts in PARTS if parts == 1 or slabs >= 2 * _LEAST_STAGES * parts]
    return min(((wide, parts) for wide in waves(operands) for parts in counts), key=cost)


def _count(blocks: int, tile_rows: int, wide: int, operands: int, cluster: int = 1) -> float:
    """Waves of blocks, each as long as `waves` says. cluster: so many of them run at once and near by."""
    _, held = stages(tile_rows, wide, operands)
    at_once = held * MULTIPROCESSORS if cluster <= 2 else held * _NEAR // cluster * cluster
    full, rest = divmod(blocks, at_once)
    last = 0.0 if not rest else ALONE if held > 1 and rest <= at_once // held else 1.0
    return full + last


def stages(rows: int, columns: int, operands: int = 1) -> tuple[int, int]:
    """How many slabs a block keeps, and how many blocks a multiprocessor is to hold: two where these have
    room for enough slabs each, and their threads for their sums."""
    slab = WIDE_SLAB_NBYTES * (rows + columns)
    for blocks in (2, 1):
        if operands > 1 and blocks > 1 and columns > _SPLIT_COLUMNS:
            continue
        held = min(_MOST_STAGES * operands, (_SHARED_NBYTES // blocks - _RESERVED_NBYTES) // slab)
        if held >= _LEAST_STAGES:
            return held, blocks
    raise ValueError(f"tiles of {rows} × {columns} leave no room for {_LEAST_STAGES} slabs")
