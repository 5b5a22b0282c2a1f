"""Launch shapes by name: how a rung's parameters become a grid, a block and the kernel's scalar arguments.

The convention every CUDA rung keeps to: the file defines `extern "C" __global__ void <op>(…)`; its arguments
are one pointer an input in the order of the params' docstring (null for an optional input that is absent),
the pointer of the output, then the scalars that `kernels.scalars.SCALARS[op]` lists, the same for every rung
of the op. So a new rung on a known launch shape touches no Python.

A launch may carry defines of its own (a tile size fitted to the problem); they win over the header's.

A sum that many blocks share is finished by a second kernel: a launch shape may ask for scratch memory, whose
pointer both kernels then take after that of the output, and name a further stage, `<op>_<stage>(…)`, which
runs after the first with the same arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.errors import KernelError
from kernels.nvrtc import Define
from kernels.params import OPS, Conv, Gemm, Lrn, Pad, Params, Pool, Softmax, Transpose
from kernels.registry import Rung
from kernels.scalars import SCALARS, Scalar
from kernels.tiles import (
    CONV_TILES,
    GEMM_TILES,
    LARGE_CONV_TILES,
    LARGE_GEMM_TILES,
    PARTS,
    Tile,
    fit,
)

POINTERS = {op: 3 if op in ("conv", "gemm") else 2 if op == "binary" else 1 for op in OPS}
_MAX_X, _MAX_YZ = 2**31 - 1, 65535
_FEW_WARPS = 2048  # on a large device each multiprocessor runs a few dozen


@dataclass(frozen=True)
class Stage:
    """One kernel of a launch by the name it has in the rung's file."""

    function: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_nbytes: int = 0


@dataclass(frozen=True)
class Launch:
    """One kernel launch but for its pointers: grid and block in (x, y, z), dynamic shared memory in bytes,
    the scalars in the kernel's order, and the defines that the rung is compiled with for it.

    workspace_nbytes: scratch memory, whose pointer the kernel takes after that of its output (null where 0);
    None: it takes no such pointer. second: the stage that follows, if any."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    scalars: tuple[Scalar, ...]
    shared_nbytes: int = 0
    defines: Mapping[str, Define] = field(default_factory=dict)
    workspace_nbytes: int | None = None
    second: Stage | None = None

    def stages(self, op: str) -> tuple[Stage, ...]:
        """What to start, in order, all with the same arguments."""
        first = Stage(op, self.grid, self.block, self.shared_nbytes)
        return (first,) if self.second is None else (first, self.second)

    def arguments(self, pointers: Sequence[int], output: int, workspace: int, op: str) -> tuple[Any, ...]:
        """Of every stage: addresses of the inputs (fewer where optional ones are absent), of the output and
        of the scratch memory, then the scalars."""
        given = [*pointers, *[0] * (POINTERS[op] - len(pointers)), output]
        if self.workspace_nbytes is not None:
            given.append(workspace if self.workspace_nbytes else 0)
        return (*map(np.uint64, given), *self.scalars)


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
    tile, _ = fit(GEMM_TILES, params.m, params.n, params.k, params.batch)
    if max(GEMM_TILES)[0] * max(params.m, params.n, params.k) > _MAX_X:
        raise KernelError(f"{rung.label} counts the elements of a tile's rows in 32 bits; {params} has more")
    defines = tile.defines | _lies(params)
    grid = _gemm_grid(params, tile.m, tile.n)
    return Launch(grid, (tile.threads, 1, 1), SCALARS["gemm"](params), defines=defines)


@shape
def gemm_large(params: Gemm, rung: Rung) -> Launch:
    """As gemm_fitted with LARGE_GEMM_TILES; a and b are read VECTOR_A and VECTOR_B elements at once."""
    tile, _ = fit(LARGE_GEMM_TILES, params.m, params.n, params.k, params.batch)
    defines = tile.defines | _lies(params) | _wide_reads(params)
    grid = _gemm_grid(params, tile.m, tile.n)
    return Launch(grid, (tile.threads, 1, 1), SCALARS["gemm"](params), defines=defines)


@shape
def gemm_split(params: Gemm, rung: Rung) -> Launch:
    """As gemm_large, the sum in PARTS parts, a block each (grid.y): part p of matrix i writes its (m, n) sums
    to element (p · batch + i) · m · n of the scratch memory, and the stage `gemm_reduce`, a thread an output,
    adds them in order. With PARTS = 1 the first stage writes y itself."""
    tile, parts = fit(LARGE_GEMM_TILES, params.m, params.n, params.k, params.batch, PARTS)
    defines = tile.defines | _lies(params) | _wide_reads(params)
    x, _, z = _gemm_grid(params, tile.m, tile.n)
    return _in_parts(params, rung, tile, parts, (x, parts, z), defines)


@shape
def gemm_warp_a_column(params: Gemm, rung: Rung) -> Launch:
    """Blocks of BLOCK threads, a warp a column of y, all m rows (compiled in as ROWS) at once; WARPS warps of
    a block share a column where the columns alone would leave most of the device idle."""
    block = _define(rung, "BLOCK", 256)
    warps = 1
    while 2 * warps * 32 <= block and warps * params.n < _FEW_WARPS and params.k >= 512 * warps:
        warps *= 2
    grid = (_ceil(params.n * warps, block // 32), 1, 1)
    defines = {"ROWS": params.m, "WARPS": warps}
    return Launch(grid, (block, 1, 1), SCALARS["gemm"](params), defines=defines)


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
    tile, _ = fit(CONV_TILES, *_conv_product(params))
    grid = _conv_grid(params, rung, tile.m, tile.n)
    return Launch(grid, (tile.threads, 1, 1), SCALARS["conv"](params), defines=tile.defines)


@shape
def conv_large(params: Conv, rung: Rung) -> Launch:
    """As conv_fitted with LARGE_CONV_TILES; weights are read VECTOR_W at once."""
    tile, _ = fit(LARGE_CONV_TILES, *_conv_product(params))
    grid = _conv_grid(params, rung, tile.m, tile.n)
    defines = tile.defines | {"VECTOR_W": _wide(_conv_product(params)[2])}
    return Launch(grid, (tile.threads, 1, 1), SCALARS["conv"](params), defines=defines)


@shape
def conv_split(params: Conv, rung: Rung) -> Launch:
    """As conv_large, the taps in PARTS parts, a block each (grid.z = group · PARTS + part): part p writes its
    sums as a whole y to element p · (size of y) of the scratch memory, and the stage `conv_reduce`, a thread
    an output, adds them in order. With PARTS = 1 the first stage writes y itself."""
    tile, parts = fit(LARGE_CONV_TILES, *_conv_product(params), PARTS)
    defines = tile.defines | {"VECTOR_W": _wide(_conv_product(params)[2])}
    x, y, z = _conv_grid(params, rung, tile.m, tile.n)
    return _in_parts(params, rung, tile, parts, (x, y, z * parts), defines)


TILES: Mapping[str, Mapping[Tile, float]] = {
    "conv_fitted": CONV_TILES,
    "conv_large": LARGE_CONV_TILES,
    "conv_split": LARGE_CONV_TILES,
    "gemm_fitted": GEMM_TILES,
    "gemm_large": LARGE_GEMM_TILES,
    "gemm_split": LARGE_GEMM_TILES,
}


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


def _in_parts(
    p: Params, rung: Rung, tile: Tile, parts: int, grid: tuple[int, int, int], defines: Mapping[str, Define]
) -> Launch:
    """A launch whose blocks each sum one of `parts` parts, and the stage that adds the parts."""
    total, block = _outputs(p), 128
    return Launch(
        grid,
        (tile.threads, 1, 1),
        SCALARS[p.op](p),
        defines={**defines, "PARTS": parts},
        workspace_nbytes=4 * parts * total if parts > 1 else 0,
        second=Stage(f"{p.op}_reduce", (min(_ceil(total, block), _MAX_X), 1, 1), (block, 1, 1))
        if parts > 1
        else None,
    )


def _conv_product(p: Conv) -> tuple[int, int, int, int]:
    """(m, n, k, batch) of the convolution as a product: channels, pixels, taps, groups."""
    return p.m // p.group, p.n * p.out_h * p.out_w, p.c // p.group * p.kh * p.kw, p.group


def _lies(p: Gemm) -> dict[str, int]:
    return {"TRANS_A": int(p.trans_a), "TRANS_B": int(p.trans_b)}


def _wide_reads(p: Gemm) -> dict[str, int]:
    """Four elements at once where every row, and every matrix of a batch, begins on 16 bytes."""
    return {
        "VECTOR_A": _wide(p.m if p.trans_a else p.k, p.stride_a),
        "VECTOR_B": _wide(p.k if p.trans_b else p.n, p.stride_b),
    }


def _wide(*counts: int) -> int:
    return 4 if all(count % 4 == 0 for count in counts) else 1


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
