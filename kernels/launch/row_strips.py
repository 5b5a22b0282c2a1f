"""The launch shape of convolutions that keep rows of the image by phases of the stride
(cuda/conv/35_row_strips.cu)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernels.errors import KernelError, UnsupportedError
from kernels.estimates.fitted_device import MULTIPROCESSORS
from kernels.launch.core import MAX_X, MAX_YZ, Launch, Pack, define, shape
from kernels.launch.whole_image import pack
from kernels.occupancy import ceil
from kernels.ops import code
from kernels.ops.conv import Conv
from kernels.registry import Rung

_MAPS, _ACROSS = 8, 8  # outputs of a thread: of so many maps, and side by side in a row
_MOST_THREADS, _WARP = 256, 32
_SHARED_NBYTES = 96 << 10  # of a block, on every device since compute capability 8.0
_BANKS = 32  # of four bytes
_MOST_COPIES = 12  # of a thread in a step: their places are kept in registers
_MOST_TAPS = 16  # of a row: their products are written out
_MOST_PAIRS = 16  # rows are cut into strips only where they are longer
# What a step takes beside its multiplications, in instructions of a warp: a copy, and the rest; and in cycles
# what other warps cannot hide. As seen on an NVIDIA H200.
_COPY, _STEP, _WAIT = 12, 60, 600
_SCHEDULERS = 4


@dataclass(frozen=True)
class _Tile:
    """A block's threads: `pairs` across, `band` rows of outputs, `groups` one above the other."""

    pairs: int
    band: int
    groups: int

    @property
    def threads(self) -> int:
        return self.pairs * self.band * self.groups


@shape
def conv_row_strips(params: Conv, rung: Rung) -> Launch:
    """A block BAND rows × 8 · PAIRS columns of outputs of one image in 8 · GROUPS maps, 8 × 8 outputs a
    thread: grid = (images × bands × strips of columns, groups × parts of the maps). Dynamic shared memory:
    STAGES times BAND rows of LEAD elements and a row's taps in all maps."""
    p = params
    if p.kw > _MOST_TAPS:
        raise UnsupportedError(f"{rung.label} takes rows of up to {_MOST_TAPS} taps, not {p.kw}")
    if max(p.h * p.w, p.n * p.out_h * p.out_w) > MAX_X:
        raise KernelError(f"{rung.label} counts the pixels of a map in 32 bits; {p} has more")
    stages = define(rung, "STAGES")
    tiles = [tile for tile in _tiles(p) if _fits(p, tile, stages)]
    if not tiles:
        raise UnsupportedError(f"{rung.label} finds no tile for {p}: a row of its image is too long")
    tile = min(tiles, key=lambda tile: (_cost(p, tile), -tile.threads))
    outputs = p.m // p.group
    parts = ceil(outputs, _MAPS * tile.groups)
    if p.group * parts > MAX_YZ:
        raise KernelError(f"{rung.label}: {p} has more groups than CUDA launches")
    return Launch(
        (p.n * _blocks_of_image(p, tile), p.group * parts, 1),
        (tile.threads, 1, 1),
        p.scalars(),
        shared_nbytes=_nbytes(p, tile, stages),
        defines={
            "PAIRS": tile.pairs,
            "BAND": tile.band,
            "GROUPS": tile.groups,
            "LEAD": _lead(p, tile),
            "KH": p.kh,
            "KW": p.kw,
            "STRIDE": p.stride_w,
            "AFTER": code("ACTIVATION", p.activation),
            "AT_ONCE": 1 if p.out_w % 4 else 4,
        },
        packed={1: Pack(pack, (p.group, _MAPS * tile.groups))},
    )


def _tiles(p: Conv) -> Iterator[_Tile]:
    """Every division of the outputs for which a block has enough threads."""
    across = ceil(p.out_w, _ACROSS)
    groups = ceil(p.m // p.group, _MAPS)
    pairs = ceil(across, ceil(across, _MOST_PAIRS))
    for rows in range(1, min(p.out_h, _MOST_THREADS // pairs) + 1):
        most = min(groups, _MOST_THREADS // (pairs * rows))
        yield from (_Tile(pairs, rows, ceil(groups, parts)) for parts in _parts(groups, most))


def _parts(groups: int, most: int) -> list[int]:
    """Numbers of parts that divide `groups` into different sizes of at most `most`."""
    by_size = {ceil(groups, parts): parts for parts in range(groups, 0, -1) if ceil(groups, parts) <= most}
    return list(by_size.values())


def _span(p: Conv, tile: _Tile) -> int:
    """Columns of the image under a block's outputs."""
    return (_ACROSS * tile.pairs - 1) * p.stride_w + p.kw


def _lead(p: Conv, tile: _Tile) -> int:
    """Elements from one row in shared memory to the next. Lanes that read the next row continue in the banks
    where those of their neighbours end."""
    taps = ceil(p.kw, p.stride_w)
    phase = _ACROSS * tile.pairs + 4 * (ceil(taps + 3, 4) - 1)
    lead = p.stride_w * phase
    return lead + (4 * tile.pairs - lead) % _BANKS


def _nbytes(p: Conv, tile: _Tile, stages: int) -> int:
    return 4 * stages * (tile.band * _lead(p, tile) + p.kw * _MAPS * tile.groups)


def _copies(p: Conv, tile: _Tile) -> int:
    return ceil(tile.band * _span(p, tile), tile.threads)


def _fits(p: Conv, tile: _Tile, stages: int) -> bool:
    return _nbytes(p, tile, stages) <= _SHARED_NBYTES and _copies(p, tile) <= _MOST_COPIES


def _blocks_of_image(p: Conv, tile: _Tile) -> int:
    return ceil(p.out_h, tile.band) * ceil(p.out_w, _ACROSS * tile.pairs)


def _cost(p: Conv, tile: _Tile) -> int:
    """About the cycles of a multiprocessor of a large device."""
    warps = ceil(tile.threads, _WARP)
    blocks = p.n * _blocks_of_image(p, tile) * p.group * ceil(p.m // p.group, _MAPS * tile.groups)
    copied = _copies(p, tile) + ceil(p.kw * _MAPS * tile.groups, 4 * tile.threads)
    step = p.kw * _MAPS * _ACROSS + _COPY * copied + _STEP
    return ceil(ceil(blocks, MULTIPROCESSORS) * warps, _SCHEDULERS) * step + _WAIT
