"""Launch shapes by name: how a rung's parameters become a grid, a block and the kernel's scalar arguments.

The convention every CUDA rung keeps to: the file defines `extern "C" __global__ void <op>(…)`; its arguments
are one pointer an input in the order of the params' docstring (null for an optional input that is absent),
the pointer of the output, then the scalars that `kernels.scalars.SCALARS[op]` lists, the same for every rung
of the op. So a new rung on a known launch shape touches no Python.

A launch may carry defines of its own (a tile size fitted to the problem); they win over the header's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kernels.errors import KernelError
from kernels.nvrtc import Define
from kernels.params import OPS, Conv, Gemm, Lrn, Pad, Params, Pool, Softmax, Transpose
from kernels.registry import Rung
from kernels.scalars import SCALARS, Scalar

POINTERS = {op: 3 if op in ("conv", "gemm") else 2 if op == "binary" else 1 for op in OPS}
_MAX_X, _MAX_YZ = 2**31 - 1, 65535


@dataclass(frozen=True)
class Launch:
    """One kernel launch but for its pointers: grid and block in (x, y, z), dynamic shared memory in bytes,
    the scalars in the kernel's order, and the defines that the rung is compiled with for it."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    scalars: tuple[Scalar, ...]
    shared_nbytes: int = 0
    defines: Mapping[str, Define] = field(default_factory=dict)


Shape = Callable[..., Launch]
SHAPES: dict[str, Shape] = {}


def shape(function: Shape) -> Shape:
    """Makes a function (params, rung) → Launch a launch shape, under its own name."""
    SHAPES[function.__name__] = function
    return function


def launch(params: Params, rung: Rung) -> Launch:
    """How to launch `rung` for `params`. Raises KernelError naming the rung where its header asks for a shape
    that does not exist, or the grid would pass what CUDA allows."""
    if rung.launch not in SHAPES:
        raise KernelError(
            f"{rung.path}: no launch shape {rung.launch!r}; there are: {', '.join(sorted(SHAPES))}"
        )
    result = SHAPES[rung.launch](params, rung)
    if any(g < 1 for g in result.grid) or result.grid[0] > _MAX_X or max(result.grid[1:]) > _MAX_YZ:
        raise KernelError(f"{rung.label}: {params} needs the grid {result.grid}, more than CUDA launches")
    if math.prod(result.block) > 1024:
        raise KernelError(f"{rung.path}: a block of {result.block} threads is more than the 1024 of CUDA")
    return result


# --- the shapes -------------------------------------------------------------------------------------------


@shape
def one_thread_an_output(params: Params, rung: Rung) -> Launch:
    """Blocks of BLOCK threads, an output a thread; where the outputs are more than a grid of 2³¹ − 1 threads,
    a thread takes several (a grid-stride loop)."""
    block = _define(rung, "BLOCK", 256)
    grid = min(_ceil(max(1, _outputs(params)), block), _MAX_X // block)
    return Launch((grid, 1, 1), (block, 1, 1), SCALARS[params.op](params))


@shape
def one_warp_a_row(params: Softmax, rung: Rung) -> Launch:
    """Blocks of BLOCK threads, a warp a row (outer × inner of them), several where the grid would be too
    long."""
    block = _define(rung, "BLOCK", 256)
    grid = min(_ceil(max(1, params.outer * params.inner), block // 32), _MAX_X // block)
    return Launch((grid, 1, 1), (block, 1, 1), SCALARS[params.op](params))


@shape
def gemm_tiles(params: Gemm, rung: Rung) -> Launch:
    """A block of (TILE_M / ROWS) · TILE_N threads a TILE_M × TILE_N tile of y, ROWS rows a thread. Tiles in
    grid.x, column first; matrices of a batch in grid.z, several a block beyond 65,535."""
    m, n, rows = (_define(rung, name) for name in ("TILE_M", "TILE_N", "ROWS"))
    return Launch(_gemm_grid(params, m, n), (m // rows * n, 1, 1), SCALARS["gemm"](params))


@shape
def gemm_fitted(params: Gemm, rung: Rung) -> Launch:
    """As gemm_tiles, the tile chosen out of GEMM_TILES, THREAD_M × THREAD_N outputs a thread; how
    a and b lie is compiled in too (TRANS_A, TRANS_B)."""
    tile_m, tile_n, thread_m, thread_n = fit(GEMM_TILES, params.m, params.n, params.batch)
    threads = (tile_m // thread_m) * (tile_n // thread_n)
    defines = {"TILE_M": tile_m, "TILE_N": tile_n, "THREAD_M": thread_m, "THREAD_N": thread_n}
    defines |= {"TRANS_A": int(params.trans_a), "TRANS_B": int(params.trans_b)}
    if GEMM_TILE_MAX * max(params.m, params.n, params.k) > _MAX_X:
        raise KernelError(f"{rung.label} counts the elements of a tile's rows in 32 bits; {params} has more")
    grid = _gemm_grid(params, tile_m, tile_n)
    return Launch(grid, (threads, 1, 1), SCALARS["gemm"](params), defines=defines)


@shape
def gemm_warp_a_column(params: Gemm, rung: Rung) -> Launch:
    """Blocks of BLOCK threads, a warp a column of y, all m rows (compiled in as ROWS) at once."""
    block = _define(rung, "BLOCK", 256)
    grid = (_ceil(params.n, block // 32), 1, 1)
    return Launch(grid, (block, 1, 1), SCALARS["gemm"](params), defines={"ROWS": params.m})


@shape
def conv_tiles(params: Conv, rung: Rung) -> Launch:
    """The convolution as a matrix product, channels × pixels of the whole batch: a block of
    (TILE_M / ROWS) · TILE_N threads a tile of TILE_M channels × TILE_N pixels, ROWS channels a thread.
    grid = (pixel tiles, channel tiles of a group, groups)."""
    m, n, rows = (_define(rung, name) for name in ("TILE_M", "TILE_N", "ROWS"))
    return Launch(_conv_grid(params, rung, m, n), (m // rows * n, 1, 1), SCALARS["conv"](params))


@shape
def conv_fitted(params: Conv, rung: Rung) -> Launch:
    """As conv_tiles, the tile chosen out of CONV_TILES, THREAD_M × THREAD_N outputs a thread."""
    pixels = params.n * params.out_h * params.out_w
    tile_m, tile_n, thread_m, thread_n = fit(CONV_TILES, params.m // params.group, pixels, params.group)
    threads = (tile_m // thread_m) * (tile_n // thread_n)
    defines = {"TILE_M": tile_m, "TILE_N": tile_n, "THREAD_M": thread_m, "THREAD_N": thread_n}
    grid = _conv_grid(params, rung, tile_m, tile_n)
    return Launch(grid, (threads, 1, 1), SCALARS["conv"](params), defines=defines)


# (TILE_M, TILE_N, THREAD_M, THREAD_N) and how well such a tile keeps the multipliers fed beside the largest:
# a small tile loads more elements a multiplication. A convolution needs a multiple of TILE_N threads, so that
# each thread gathers one pixel. The figures are estimates from the loads a multiplication.
CONV_TILES: dict[tuple[int, int, int, int], float] = {
    (64, 64, 4, 4): 1.0,
    (32, 64, 4, 4): 0.85,
    (32, 32, 4, 4): 0.7,
    (16, 64, 4, 4): 0.65,
    (8, 128, 4, 2): 0.4,
}
GEMM_TILES = CONV_TILES | {(64, 16, 4, 4): 0.65, (16, 16, 2, 2): 0.3}
GEMM_TILE_MAX = max(max(tile[:2]) for tile in GEMM_TILES)
_FULL_BLOCKS = 128  # about one block a multiprocessor of a large device


def fit(tiles: Mapping[tuple[int, int, int, int], float], m: int, n: int, batch: int) -> tuple[int, ...]:
    """The tile that should take least time for `batch` matrices of m × n: padded work over the tile's own
    efficiency, and over the part of the device that so few blocks keep busy."""

    def cost(tile: tuple[int, int, int, int]) -> float:
        blocks = batch * _ceil(m, tile[0]) * _ceil(n, tile[1])
        work = blocks * tile[0] * tile[1] / tiles[tile]
        return work * max(1.0, _FULL_BLOCKS / blocks)

    return min(tiles, key=cost)


# --- helpers ----------------------------------------------------------------------------------------------


def _outputs(p: Params) -> int:
    match p:
        case Conv():
            return p.n * p.m * p.out_h * p.out_w
        case Gemm():
            return p.batch * p.m * p.n
        case Pool():
            return p.n * p.c * p.out_h * p.out_w
        case Lrn():
            return p.n * p.c * p.inner
        case Softmax():
            return p.outer * p.axis * p.inner
        case Transpose():
            return math.prod(p.shape)
        case Pad():
            return math.prod(p.out_shape)
        case _:
            return p.size


def _gemm_grid(p: Gemm, tile_m: int, tile_n: int) -> tuple[int, int, int]:
    return _ceil(p.m, tile_m) * _ceil(p.n, tile_n), 1, min(p.batch, _MAX_YZ)


def _conv_grid(p: Conv, rung: Rung, tile_m: int, tile_n: int) -> tuple[int, int, int]:
    pixels = p.n * p.out_h * p.out_w
    if max(pixels, p.c * p.h * p.w, p.c // p.group * p.kh * p.kw) > _MAX_X - 4096:
        raise KernelError(f"{rung.label} counts pixels and the elements of an image in 32 bits; {p} has more")
    return _ceil(pixels, tile_n), _ceil(p.m // p.group, tile_m), p.group


def _define(rung: Rung, name: str, default: int | None = None) -> int:
    value = rung.defines.get(name, default)
    if type(value) is not int or value < 1:
        raise KernelError(
            f"{rung.path}: the launch shape {rung.launch} needs the define {name}, a whole number above 0"
        )
    return value


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
