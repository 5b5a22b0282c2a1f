"""How a product by warpgroups is cut into tiles, and what a block keeps in shared memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kernels.estimates.fitted_device import MULTIPROCESSORS
from kernels.estimates.tiles import PARTS
from kernels.packing import WIDE_SLAB_NBYTES

GROUP_ROWS, GROUP_THREADS = 64, 128
ROWS = 128  # of the tiles that may share a sum


class Cut(NamedTuple):
    """rows, columns: of a block's tile; parts: blocks that share its sum."""

    rows: int
    columns: int
    parts: int


# By the rows and columns of a tile: microseconds of a multiprocessor of an H200 for sums of _WAVE_SLABS slabs
# in as many such tiles as it holds; and what part of that one of two takes alone.
WAVES = {(ROWS, 64): 50.0, (ROWS, 96): 54.0, (ROWS, 128): 61.7, (ROWS, 192): 45.2}
CONV_WAVES = {**WAVES, (192, 128): 54.5, (192, 192): 62.2}
GEMM_WAVES = {**WAVES, (256, 128): 54.5}
# The same of operands that are sums of two float16, of which three products are taken.
SPLIT_WAVES = {(ROWS, 64): 67.0, (ROWS, 96): 43.0, (ROWS, 128): 50.0, (ROWS, 192): 61.0}
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


def conv_waves(operands: int) -> Mapping[tuple[int, int], float]:
    """By the tile, where a number is one, or the sum of two."""
    return SPLIT_WAVES if operands > 1 else CONV_WAVES


def gemm_waves(operands: int) -> Mapping[tuple[int, int], float]:
    return SPLIT_WAVES if operands > 1 else GEMM_WAVES


def late(rows: int) -> int:
    """Slabs whose products are under way when those of the next begin: one where a block has a multiprocessor
    for itself and enough warps to multiply."""
    return int(rows > ROWS)


def fit_clusters(rows: int, columns: int, slabs: int, operands: int, batch: int) -> Cut:
    """How `batch` products of rows × columns, of so many slabs, are cut; a cluster shares a sum."""
    waves = conv_waves(operands)

    def cost(cut: Cut) -> float:
        blocks = cut.parts * batch * -(-rows // cut.rows) * -(-columns // cut.columns)
        beside = _COLUMN_US * cut.columns + _PART_US * cut.parts if cut.parts > 1 else _BLOCK_US
        each = (waves[cut[:2]] - _BLOCK_US) * -(-slabs // cut.parts) / _WAVE_SLABS + beside
        return _count(blocks, cut, operands, cut.parts) * each

    return min(_cuts(waves, slabs, CLUSTERS), key=cost)


def fit_parts(rows: int, columns: int, slabs: int, operands: int = 1) -> Cut:
    """How a product of rows × columns, of so many slabs, is cut; a second kernel adds the parts."""
    waves = gemm_waves(operands)

    def cost(cut: Cut) -> float:
        blocks = cut.parts * -(-rows // cut.rows) * -(-columns // cut.columns)
        time = _count(blocks, cut, operands) * waves[cut[:2]] * -(-slabs // cut.parts) / _WAVE_SLABS
        moved = 2 * 4 * cut.parts * rows * columns
        return time + (_SECOND_KERNEL_US + moved / _MOVED if cut.parts > 1 else 0.0)

    return min(_cuts(waves, slabs, PARTS), key=cost)


def _cuts(waves: Mapping[tuple[int, int], float], slabs: int, counts: Iterable[int]) -> Iterator[Cut]:
    for parts in counts:
        for rows, columns in waves:
            if parts == 1 or (rows == ROWS and slabs >= 2 * _LEAST_STAGES * parts):
                yield Cut(rows, columns, parts)


def _count(blocks: int, cut: Cut, operands: int, cluster: int = 1) -> float:
    """Waves of blocks, each as long as `waves` says. cluster: so many of them run at once and near by."""
    _, resident = stages(cut.rows, cut.columns, operands)
    at_once = resident * MULTIPROCESSORS if cluster <= 2 else resident * _NEAR // cluster * cluster
    full, rest = divmod(blocks, at_once)
    last = 0.0 if not rest else ALONE if resident > 1 and rest <= at_once // resident else 1.0
    return full + last


def stages(rows: int, columns: int, operands: int = 1) -> tuple[int, int]:
    """How many slabs a block keeps, and how many blocks a multiprocessor is to hold: two where these have
    room for enough slabs each, and their threads for their sums."""
    slab = WIDE_SLAB_NBYTES * (rows + columns)
    for blocks in (2, 1):
        if operands > 1 and blocks > 1 and columns > _SPLIT_COLUMNS:
            continue
        slabs = min(_MOST_STAGES * operands, (_SHARED_NBYTES // blocks - _RESERVED_NBYTES) // slab)
        if slabs >= _LEAST_STAGES:
            return slabs, blocks
    raise ValueError(f"tiles of {rows} × {columns} leave no room for {_LEAST_STAGES} slabs")
