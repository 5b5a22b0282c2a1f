"""How a convolution of small images on tensor cores is cut among blocks that each have a slice of its sum
(cuda/conv_slices.cuh).

Constants follow from the machine code and from what is known of an H200; none but those of `microseconds` is
fitted to timed launches.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

from kernels.estimates import image_slices
from kernels.estimates.fitted_device import MULTIPROCESSORS, SCHEDULERS
from kernels.estimates.image_slices import SHARED_NBYTES, Sums, fetching, queue, rounds, trips
from kernels.occupancy import REGISTERS, WARP, ceil

STRIP, ACROSS = 16, 8  # channels and pixels of an instruction
_CHUNK_NBYTES = 16
_STRIPS, _RANKS, _TILES = (1, 2, 3, 4), tuple(range(1, 9)), (1, 2, 3, 4, 6, 8)
_LEAST_WARPS, _MOST_WARPS = 8, 16  # of a block; that few are there to fetch, if not to multiply
_MOST_SUMS = 16  # strips times tiles of a warp, whose sums fill half of its registers
_NEAR = 126  # multiprocessors that clusters fill: they stand in parts of uneven size


class Cut(NamedTuple):
    """strips: of a block; ranks: blocks of a cluster; band: rows of y of a block; warps: of it, each of which
    has so many tiles."""

    strips: int
    ranks: int
    band: int
    warps: int
    tiles: int

    @property
    def maps(self) -> int:
        return STRIP * self.strips


@functools.lru_cache(maxsize=4096)
def fit(of: Sums, most_strips: int, most_ranks: int) -> Cut | None:
    """What should take least time; None where nothing fits into shared memory."""
    return min(cuts(of, most_strips, most_ranks), key=lambda cut: clocks(of, cut), default=None)


def cuts(of: Sums, most_strips: int, most_ranks: int) -> Iterator[Cut]:
    """Those that are looked at."""
    strips = [count for count in _STRIPS if count <= min(most_strips, ceil(of.m, STRIP))]
    ranks = [count for count in _RANKS if count <= min(most_ranks, of.steps)]
    for each, blocks, band in itertools.product(strips, ranks, of.bands()):
        if _CHUNK_NBYTES * sum(_chunks(of, Cut(each, blocks, band, _LEAST_WARPS, 1))) > SHARED_NBYTES:
            continue
        for tiles in _TILES:
            warps = max(_LEAST_WARPS, ceil(_tiles(of, band), tiles))
            even = of.operands > 1 or tiles % 2 == 0  # of two tiles the pixels are read at once
            cut = Cut(each, blocks, band, warps, tiles)
            few = warps <= _MOST_WARPS and each * tiles * of.operands <= _MOST_SUMS
            room = _registers(of, cut) <= _most_registers(warps) and nbytes(of, cut) <= SHARED_NBYTES
            if even and few and room:
                yield cut


def nbytes(of: Sums, cut: Cut) -> int:
    """Shared memory of a block."""
    strips, image = _chunks(of, cut)
    each = ceil(cut.tiles * cut.strips, cut.ranks)  # fragments of a warp that a block finishes
    exchanged = cut.ranks * ceil(_tiles(of, cut.band), cut.tiles) * each * WARP if cut.ranks > 1 else 0
    words = of.operands * STRIP * cut.strips + (cut.warps if of.operands > 1 else 0)
    return _CHUNK_NBYTES * (strips + image + exchanged) + 4 * words


def _registers(of: Sums, cut: Cut) -> int:
    """Of a thread: its sums, twice where they come in parts, and what it multiplies next."""
    sums, fed = of.operands * cut.strips * cut.tiles, of.operands * (cut.strips + cut.tiles)
    return 32 + 16 * of.operands + 4 * sums + 4 * fed


def _most_registers(warps: int) -> int:
    """Of a thread of a block of so many warps, which stand in fours."""
    return REGISTERS // (SCHEDULERS * WARP * ceil(warps, SCHEDULERS))


def _tiles(of: Sums, band: int) -> int:
    return ceil(band * of.out_w, ACROSS)


def _chunks(of: Sums, cut: Cut) -> tuple[int, int]:
    """Of a block's weights, and of its part of the image."""
    steps = ceil(of.steps, cut.ranks)
    strips = cut.strips * steps * of.taps * of.operands * WARP
    pixels = of.rows_read(cut.band) * of.columns_read
    return strips, pixels * (2 * steps * of.operands + 1)


_INSTRUCTION = 6.5  # clocks of a quarter of a multiprocessor for a product of 16 channels and 8 pixels
_READ = 128  # bytes a clock out of shared memory
_STEP = 30  # clocks of a warp by itself, at least, for a tap and step


class _Work(NamedTuple):
    """Of a multiprocessor, in clocks. blocks: that it has; turns: in which it has them; alone: what a warp's
    loop takes by itself."""

    blocks: int
    turns: int
    multiplying: float
    reading: float
    alone: float


def _work(of: Sums, cut: Cut) -> _Work:
    at_once = MULTIPROCESSORS if cut.ranks == 1 else _NEAR // cut.ranks * cut.ranks
    blocks = queue(of, cut, at_once)
    sums, busy = cut.strips * cut.tiles, ceil(_tiles(of, cut.band), cut.tiles)  # busy: warps
    steps = ceil(of.steps, cut.ranks) * of.taps
    product = sums * (3 if of.operands > 1 else 1) * _INSTRUCTION
    reading = busy * steps * of.operands * (512 * cut.strips + 256 * cut.tiles) / _READ
    return _Work(
        blocks,
        rounds(blocks, cut.warps, nbytes(of, cut), _registers(of, cut)),
        blocks * ceil(busy, SCHEDULERS) * steps * product,
        blocks * reading,
        steps * max(_STEP, product),
    )


def clocks(of: Sums, cut: Cut) -> float:
    """The estimate that cuts are chosen by: what the busiest multiprocessor multiplies, reads for that and
    fetches, and the trips that nothing hides."""
    work = _work(of, cut)
    loop = max(work.multiplying, work.reading, work.turns * work.alone)
    strips, image = (_CHUNK_NBYTES * work.blocks * count for count in _chunks(of, cut))
    return loop + fetching(image, strips) + work.turns * trips(cut)


_SPLIT = 9  # bytes a clock of an image that become sums of two float16; fitted as those of image_slices


def microseconds(of: Sums, cut: Cut) -> float:
    """The estimate of what a launch takes: blocks have so few warps that multiplying hides no reading, while
    their weights come before the image does."""
    work, image = _work(of, cut), _CHUNK_NBYTES * _chunks(of, cut)[1]
    working = work.multiplying + work.reading + work.blocks * fetching(image, 0)
    if of.operands > 1:
        working += work.blocks * image / _SPLIT
    sums = cut.strips * cut.tiles * ceil(_tiles(of, cut.band), cut.tiles) * 4 * STRIP * ACROSS
    return image_slices.microseconds(cut, work.turns, work.blocks * sums, working)
