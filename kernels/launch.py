"""Launch shapes by name: how a rung's parameters become a grid, a block and the kernel's scalar arguments.

The convention every CUDA rung keeps to: the file defines `extern "C" __global__ void <op>(…)`; its arguments
are one pointer an input in the order of the params' docstring (null for an optional input that is absent), the
pointer of the output, then the scalars that `SCALARS[op]` lists, the same for every rung of the op. So a new
rung on a known launch shape touches no Python.

A launch may carry defines of its own (a tile size fitted to the problem); they win over the header's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernels.errors import KernelError
from kernels.nvrtc import Define, code
from kernels.params import (
    OPS,
    Binary,
    Cast,
    Conv,
    Gemm,
    Lrn,
    Pad,
    Params,
    Pool,
    Softmax,
    Transpose,
    Unary,
)
from kernels.registry import Rung

Scalar = np.int32 | np.int64 | np.float32
POINTERS = {op: 3 if op in ("conv", "gemm") else 2 if op == "binary" else 1 for op in OPS}
MAX_RANK = 6
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


# --- the scalars of each operator -------------------------------------------------------------------------


def _conv(p: Conv) -> tuple[Scalar, ...]:
    words: tuple[int, ...] = (p.n, p.c, p.h, p.w, p.m, p.kh, p.kw, p.out_h, p.out_w, p.stride_h, p.stride_w)
    words += (p.pad_top, p.pad_left, p.dilation_h, p.dilation_w, p.group)
    return (*_int32(*words), np.int32(code("ACTIVATION", p.activation)))


def _gemm(p: Gemm) -> tuple[Scalar, ...]:
    strides = (p.bias_stride_m, p.bias_stride_n, p.stride_a, p.stride_b)
    return (
        *_int32(p.m, p.n, p.k, p.trans_a, p.trans_b),
        np.float32(p.alpha),
        np.float32(p.beta),
        *(np.int64(s) for s in strides),
        *_int32(p.batch, code("ACTIVATION", p.activation)),
    )


def _pool(p: Pool) -> tuple[Scalar, ...]:
    words: tuple[int, ...] = (
        code("POOL", p.kind),
        p.n,
        p.c,
        p.h,
        p.w,
        p.kh,
        p.kw,
        p.out_h,
        p.out_w,
        p.stride_h,
        p.stride_w,
    )
    words += (p.pad_top, p.pad_left, p.pad_bottom, p.pad_right, p.dilation_h, p.dilation_w)
    return _int32(*words, p.count_include_pad)


def _lrn(p: Lrn) -> tuple[Scalar, ...]:
    floats = (np.float32(p.alpha / p.size), np.float32(p.beta), np.float32(p.bias))
    return (*_int32(p.n, p.c), np.int64(p.inner), *_int32(p.size), *floats)


def _softmax(p: Softmax) -> tuple[Scalar, ...]:
    return (np.int64(p.outer), *_int32(p.axis), np.int64(p.inner), *_int32(p.log))


def _unary(p: Unary) -> tuple[Scalar, ...]:
    return (np.int64(p.size), np.int32(code("UNARY", p.kind)))


def _binary(p: Binary) -> tuple[Scalar, ...]:
    dims, (a, b) = merge_axes(p.shape, (p.strides_a, p.strides_b))
    tail = _int32(code("BINARY", p.kind), code("ACTIVATION", p.activation))
    return (np.int64(p.size), *_axes(p, dims, a, b), *tail)


def _transpose(p: Transpose) -> tuple[Scalar, ...]:
    strides = _contiguous(p.shape)
    dims, (source,) = merge_axes([p.shape[a] for a in p.perm], ([strides[a] for a in p.perm],))
    return (np.int64(math.prod(p.shape)), *_axes(p, dims, source))


def _pad(p: Pad) -> tuple[Scalar, ...]:
    sizes, begin, out = _merge_unpadded(p)
    strides = _contiguous(sizes)
    if any(d < 0 for d in out):
        raise KernelError(f"{p} would cut away more than there is")
    axes = (_lead(out, 1), _lead(sizes, 1), _lead(begin, 0), _lead(strides, 0))
    if len(out) > MAX_RANK:
        raise KernelError(f"{p} has {len(out)} axes after merging, and pad takes up to {MAX_RANK}")
    flat = (np.int64(v) for axis in axes for v in axis)
    return (np.int64(math.prod(out)), *flat, np.int32(code("PAD", p.mode)), np.float32(p.value))


def _cast(p: Cast) -> tuple[Scalar, ...]:
    return (np.int64(p.size), *_int32(code("DTYPE", p.dtype), code("DTYPE", p.to)))


SCALARS: dict[str, Callable[..., tuple[Scalar, ...]]] = {
    "conv": _conv,
    "gemm": _gemm,
    "pool": _pool,
    "lrn": _lrn,
    "softmax": _softmax,
    "unary": _unary,
    "binary": _binary,
    "transpose": _transpose,
    "pad": _pad,
    "cast": _cast,
}


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
    """As gemm_tiles, the tile chosen out of GEMM_TILES, THREAD_M × THREAD_N outputs a thread; how a and b lie is compiled in too (TRANS_A, TRANS_B)."""
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


def merge_axes(dims: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Drop axes of one element and merge neighbours that every operand walks as one: the same elements in the
    same order with the fewest axes. Strides are elements a step."""
    out: list[int] = []
    walks: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(dims):
        if size == 1:
            continue
        steps = [s[axis] for s in strides]
        if out and all(walk[-1] == step * size for walk, step in zip(walks, steps, strict=True)):
            out[-1] *= size
            for walk, step in zip(walks, steps, strict=True):
                walk[-1] = step
        else:
            out.append(size)
            for walk, step in zip(walks, steps, strict=True):
                walk.append(step)
    return out, walks


def _merge_unpadded(p: Pad) -> tuple[list[int], list[int], list[int]]:
    """Input sizes, begins and output sizes; neighbours that are both left as they are become one axis."""
    sizes: list[int] = []
    begins: list[int] = []
    outs: list[int] = []
    for size, begin, out, end in zip(p.shape, p.begin, p.out_shape, p.end, strict=True):
        whole = begin == 0 and end == 0
        if whole and sizes and begins[-1] == 0 and sizes[-1] == outs[-1]:
            sizes[-1] *= size
            outs[-1] *= size
        else:
            sizes.append(size)
            begins.append(begin)
            outs.append(out)
    return sizes, begins, outs


def _axes(p: Params, dims: Sequence[int], *walks: Sequence[int]) -> tuple[np.int64, ...]:
    """Sizes and strides filled up in front to MAX_RANK axes, for kernels that take a fixed number of them."""
    if len(dims) > MAX_RANK:
        raise KernelError(f"{p} has {len(dims)} axes after merging, and {p.op} takes up to {MAX_RANK}")
    rows = [_lead(dims, 1)] + [_lead(walk, 0) for walk in walks]
    return tuple(np.int64(v) for row in rows for v in row)


def _lead(values: Sequence[int], fill: int) -> list[int]:
    return [fill] * (MAX_RANK - len(values)) + list(values)


def _contiguous(dims: Sequence[int]) -> list[int]:
    return [math.prod(dims[i + 1 :]) for i in range(len(dims))]


def _int32(*values: int) -> tuple[np.int32, ...]:
    for value in values:
        if not -(2**31) <= value < 2**31:
            raise KernelError(f"a kernel takes sizes below 2³¹, and {value} is not")
    return tuple(np.int32(v) for v in values)


def _define(rung: Rung, name: str, default: int | None = None) -> int:
    value = rung.defines.get(name, default)
    if type(value) is not int or value < 1:
        raise KernelError(
            f"{rung.path}: the launch shape {rung.launch} needs the define {name}, a whole number above 0"
        )
    return value


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
