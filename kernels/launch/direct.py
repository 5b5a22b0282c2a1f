"""The launch shapes of convolutions whose threads go through the window of each output, and of convolutions
in which each map reads one channel (depthwise)."""

from __future__ import annotations

import math
from dataclasses import replace

from kernels.errors import KernelError, UnsupportedError
from kernels.estimates.fitted_device import MULTIPROCESSORS, SCHEDULERS
from kernels.header import Define
from kernels.launch.core import MAX_X, Launch, define, shape
from kernels.occupancy import SHARED_NBYTES, WARP, ceil
from kernels.ops.conv import Conv
from kernels.registry import Rung

_THREADS = 1024
_TEXTURE_ELEMENTS = 2**27
_SHARED_FLOATS = SHARED_NBYTES // 4


@shape
def conv_image_a_block(params: Conv, rung: Rung) -> Launch:
    """A block of BLOCK_X × BLOCK_Y threads for each image."""
    return _blocks(params, rung, (params.n, 1, 1))


@shape
def conv_map_a_block(params: Conv, rung: Rung) -> Launch:
    """A block of BLOCK_X × BLOCK_Y threads for each image and map: grid = (images, maps)."""
    return _blocks(params, rung, (params.n, params.m, 1))


@shape
def conv_texture(params: Conv, rung: Rung) -> Launch:
    """As conv_map_a_block; x is bound as a linear texture, which has room for 2²⁷ elements."""
    elements = params.n * params.image
    if elements > _TEXTURE_ELEMENTS:
        raise UnsupportedError(f"{rung.label} takes x up to {_TEXTURE_ELEMENTS:,} elements, not {elements:,}")
    return replace(_blocks(params, rung, (params.n, params.m, 1)), texture=(0, 4 * elements))


@shape
def conv_tile_a_block(params: Conv, rung: Rung) -> Launch:
    """A block computes a tile of TILE_H × TILE_W outputs of one image and map, one output for each of its
    THREADS threads: grid = (images, maps, tiles). A tile reads ROWS × COLUMNS of a channel. It is as large as
    1,024 threads and 48 KB of shared memory allow."""
    tiles, defines = _tiled(params, rung, 0)
    return _tile_launch(params, (params.n, params.m, tiles), defines)


@shape
def conv_constant_weights(params: Conv, rung: Rung) -> Launch:
    """As conv_tile_a_block; the weights are copied into the constant array `filters` (WEIGHTS floats)."""
    tiles, defines = _tiled(params, rung, 0)
    launch = _tile_launch(params, (params.n, params.m, tiles), defines | {"WEIGHTS": params.weights})
    return replace(launch, constant=("filters", 1, 4 * params.weights))


@shape
def conv_unrolled(params: Conv, rung: Rung) -> Launch:
    """As conv_tile_a_block, KH and KW compiled in."""
    tiles, defines = _tiled(params, rung, 0)
    defines |= {"KH": params.kh, "KW": params.kw}
    return _tile_launch(params, (params.n, params.m, tiles), defines)


@shape
def conv_compiled(params: Conv, rung: Rung) -> Launch:
    """As conv_tile_a_block, all shapes but the number of images compiled in under their names in capitals."""
    tiles, defines = _tiled(params, rung, 0)
    return _tile_launch(params, (params.n, params.m, tiles), defines | shapes(params))


@shape
def conv_several_maps(params: Conv, rung: Rung) -> Launch:
    """As conv_compiled, with MAPS maps of one group for each thread. The weights of a channel lie in shared
    memory, too: grid = (images, groups of MAPS maps, tiles)."""
    maps = min(define(rung, "MAPS"), params.m // params.group)
    tiles, defines = _tiled(params, rung, maps * params.kh * params.kw)
    blocks = params.group * ceil(params.m // params.group, maps)
    return _tile_launch(params, (params.n, blocks, tiles), defines | shapes(params) | {"MAPS": maps})


# --- helpers ----------------------------------------------------------------------------------------------


def _blocks(p: Conv, rung: Rung, grid: tuple[int, int, int]) -> Launch:
    _check(p, rung)
    return Launch(grid, (define(rung, "BLOCK_X"), define(rung, "BLOCK_Y"), 1), p.scalars())


def _tile_launch(p: Conv, grid: tuple[int, int, int], defines: dict[str, Define]) -> Launch:
    return Launch(grid, (int(defines["THREADS"]), 1, 1), p.scalars(), defines=defines)


def _tiled(p: Conv, rung: Rung, beside: int) -> tuple[int, dict[str, Define]]:
    """How many tiles cover a map, and the defines of a tile. beside: floats of shared memory that are used
    otherwise."""
    _check(p, rung)
    width = min(p.out_w, _THREADS)
    height = min(p.out_h, _THREADS // width)

    def reads() -> tuple[int, int]:
        return (
            (height - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1,
            (width - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1,
        )

    while math.prod(reads()) + beside > _SHARED_FLOATS and height * width > 1:
        if height >= width:
            height = ceil(height, 2)
        else:
            width = ceil(width, 2)
    rows, columns = reads()
    if rows * columns + beside > _SHARED_FLOATS:
        raise KernelError(f"{rung.label} keeps a window in 48 KB of shared memory; {p} has a larger one")
    defines: dict[str, Define] = {"TILE_H": height, "TILE_W": width, "ROWS": rows, "COLUMNS": columns}
    defines["THREADS"] = ceil(height * width, 32) * 32
    return ceil(p.out_h, height) * ceil(p.out_w, width), defines


def shapes(p: Conv) -> dict[str, Define]:
    """All sizes of a convolution except the number of images, as defines with their names in capitals."""
    names = "c h w m kh kw out_h out_w stride_h stride_w pad_top pad_left dilation_h dilation_w group"
    return {name.upper(): getattr(p, name) for name in names.split()}


def _check(p: Conv, rung: Rung) -> None:
    """Raise KernelError where an image, its maps or its weights have more elements than 32 bits count."""
    if max(p.c * p.h * p.w, p.m * p.out_h * p.out_w, p.m * (p.c // p.group) * p.kh * p.kw) > MAX_X:
        raise KernelError(f"{rung.label} counts the elements of an image in 32 bits; {p} has more")


_DEPTHWISE_THREADS = 256
_TILE_FLOATS = 4096  # of shared memory a block, so that many blocks fit beside each other
_ENOUGH_WARPS = 4 * SCHEDULERS * MULTIPROCESSORS  # to keep reads in flight everywhere
_ENOUGH_BLOCKS = 2 * MULTIPROCESSORS
_FEWEST_THREADS = 64


@shape
def conv_depthwise(params: Conv, rung: Rung) -> Launch:
    """A block computes PLANES whole planes of x, or a tile of TILE_H × TILE_W outputs of one plane; a thread
    computes DOWN outputs of a column, in each map of its channel. ROWS × COLUMNS of a padded plane are what a
    tile reads. In grid.x the tiles of a plane follow each other, then comes the next plane. Where threads
    would be few, each computes fewer outputs; where blocks would be few, each has fewer planes."""
    p = params
    planes, counted = p.n * p.c, max(p.c * p.h * p.w, p.m * p.out_h * p.out_w, p.m * p.kh * p.kw)
    if counted > MAX_X // 2:
        raise KernelError(f"{rung.label} counts the elements of an image in 32 bits; {p} has more")
    down = min(_most_below(p), p.out_h)
    while down > 1 and planes * p.out_w * ceil(p.out_h, down) < _ENOUGH_WARPS * WARP:
        down = ceil(down, 2)

    def rows(strips: int) -> int:
        return (strips * down - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1

    def columns(width: int) -> int:
        # In whole strides, as they lie in shared memory.
        return ceil((width - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1, p.stride_w) * p.stride_w

    width = min(p.out_w, _DEPTHWISE_THREADS)
    strips = max(1, min(ceil(p.out_h, down), _DEPTHWISE_THREADS // width))
    while rows(strips) * columns(width) > _TILE_FLOATS and strips * width > 1:
        strips, width = (ceil(strips, 2), width) if strips > 1 else (strips, ceil(width, 2))
    strips = ceil(ceil(p.out_h, down), ceil(ceil(p.out_h, down), strips))  # all tiles of about one height
    floats, threads = rows(strips) * columns(width), strips * width
    if 4 * floats > SHARED_NBYTES:
        raise KernelError(f"{rung.label} keeps a window in 48 KB of shared memory; {p} has a larger one")
    tiles = ceil(p.out_h, strips * down) * ceil(p.out_w, width)
    each = max(1, min(planes, _DEPTHWISE_THREADS // threads, _TILE_FLOATS // floats)) if tiles == 1 else 1
    while each > 1 and ceil(planes, each) < _ENOUGH_BLOCKS and each * threads > _FEWEST_THREADS:
        each = ceil(each, 2)
    fitted: dict[str, Define] = {
        "PLANES": each,
        "TILE_H": strips * down,
        "TILE_W": width,
        "ROWS": rows(strips),
        "COLUMNS": (width - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1,
        "THREADS": ceil(each * threads, WARP) * WARP,
        "DOWN": down,
    }
    block = (int(fitted["THREADS"]), 1, 1)
    grid = (ceil(planes, each) * tiles, 1, 1)
    return Launch(grid, block, p.scalars(), defines=shapes(p) | fitted)


def _most_below(p: Conv) -> int:
    """Outputs of a column for each thread. One row of a narrow plane does not fill an access to memory, so
    the same warp writes the rows below it, too: more of them, the fewer outputs each thread has."""
    return 8 if p.out_w >= WARP else 4 if p.out_w >= WARP // 2 else 2
