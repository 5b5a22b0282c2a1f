"""Launch shapes of rungs in languages that work on tiles: a block is WARPS warps of one program, and the
sides of the tile are constants."""

from __future__ import annotations

from collections.abc import Mapping

from kernels.errors import UnsupportedError
from kernels.launch.core import MAX_YZ, Launch, define, shape
from kernels.occupancy import ceil
from kernels.ops import Params
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.softmax import Softmax
from kernels.registry import Rung

_LEAST = 16  # a tile's side, for products
_VALUES = 256  # elements that a program of short rows takes, and a warp of a long one
_MOST_WARPS = 16


@shape
def softmax_programs(params: Softmax, rung: Rung) -> Launch:
    """A program ROWS whole rows, each in WIDTH places: the least power of two that is not below the axis;
    WARPS as the two ask for."""
    width = 1 << (max(1, params.axis) - 1).bit_length()
    rows = max(1, _VALUES // width)
    warps = min(_MOST_WARPS, rows * width // _VALUES)
    defines = {"ROWS": rows, "WIDTH": width, "WARPS": warps}
    return _launch(params, (ceil(max(1, params.outer * params.inner), rows), 1, 1), warps, defines)


@shape
def gemm_programs(params: Gemm, rung: Rung) -> Launch:
    """A program a tile of TILE_M × TILE_N outputs, smaller where y is: tiles in grid.x, column first;
    matrices of a batch in grid.z. N, K, TRANS_A, TRANS_B, STRIDE_A, STRIDE_B: constants, from which the
    compiler knows what lies side by side, and reads it at once."""
    m, n = (_fitting(define(rung, name), size) for name, size in (("TILE_M", params.m), ("TILE_N", params.n)))
    if params.batch > MAX_YZ:
        raise UnsupportedError(f"{rung.label} takes batches up to {MAX_YZ:,}, not {params.batch:,}")
    grid = (ceil(params.m, m) * ceil(params.n, n), 1, params.batch)
    lies = {"N": params.n, "K": params.k, "TRANS_A": int(params.trans_a), "TRANS_B": int(params.trans_b)}
    lies |= {"STRIDE_A": params.stride_a, "STRIDE_B": params.stride_b}
    return _launch(params, grid, define(rung, "WARPS"), {"TILE_M": m, "TILE_N": n, **lies})


@shape
def conv_programs(params: Conv, rung: Rung) -> Launch:
    """The convolution as a product of TILE_M maps × TILE_N pixels of the whole batch a program: grid =
    (tiles of pixels, tiles of maps, groups). KH, KW: the window."""
    m = _fitting(define(rung, "TILE_M"), params.m // params.group)
    n = _fitting(define(rung, "TILE_N"), params.n * params.out_h * params.out_w)
    grid = (ceil(params.n * params.out_h * params.out_w, n), ceil(params.m // params.group, m), params.group)
    defines = {"TILE_M": m, "TILE_N": n, "KH": params.kh, "KW": params.kw}
    return _launch(params, grid, define(rung, "WARPS"), defines)


def _launch(params: Params, grid: tuple[int, int, int], warps: int, defines: Mapping[str, int]) -> Launch:
    return Launch(grid, (32 * warps, 1, 1), params.scalars(), defines=defines)


def _fitting(tile: int, size: int) -> int:
    """A tile's side for so many elements."""
    return min(tile, max(_LEAST, 1 << (max(1, size) - 1).bit_length()))
