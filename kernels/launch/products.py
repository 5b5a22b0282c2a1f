"""The launch shapes of matrix products, and of convolutions that are computed as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernels.errors import KernelError
from kernels.estimates.tiles import (
    CONV_TILES,
    GEMM_TILES,
    LARGE_CONV_TILES,
    LARGE_GEMM_TILES,
    PARTS,
    Tile,
    fit,
    fit_warps,
    microseconds,
)
from kernels.launch.core import MAX_X, MAX_YZ, Launch, define, in_parts, shape
from kernels.occupancy import ceil
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm
from kernels.registry import Rung

_ASYNC_STEPS = 16  # of the sum, in a tile of gemm_async
_FEW_WARPS = 2048  # on a large device each multiprocessor runs a few dozen

TILES: Mapping[str, Mapping[Tile, float]] = {
    "conv_fitted": CONV_TILES,
    "conv_im2col": LARGE_CONV_TILES,
    "conv_large": LARGE_CONV_TILES,
    "conv_split": LARGE_CONV_TILES,
    "gemm_fitted": GEMM_TILES,
    "gemm_large": LARGE_GEMM_TILES,
    "gemm_split": LARGE_GEMM_TILES,
}


@shape
def gemm_tiles(params: Gemm, rung: Rung) -> Launch:
    """A block of (TILE_M / ROWS) · TILE_N threads computes a TILE_M × TILE_N tile of y, ROWS rows for each
    thread. Tiles in grid.x, column first; matrices of a batch in grid.z, several for each block beyond
    65,535."""
    m, n, rows = (define(rung, name) for name in ("TILE_M", "TILE_N", "ROWS"))
    return Launch(_gemm_grid(params, m, n), (m // rows * n, 1, 1), params.scalars())


@shape
def qgemm_tiles(params: QGemm, rung: Rung) -> Launch:
    """A block of 256 threads a TILE × TILE tile of y, in the order of gemm_tiles."""
    tile = define(rung, "TILE")
    return Launch(_gemm_grid(params.product, tile, tile), (256, 1, 1), params.scalars())


@shape
def qgemm_warps(params: QGemm, rung: Rung) -> Launch:
    """A block of WARPS_M × WARPS_N warps a TILE_M × TILE_N tile of y, in the order of gemm_tiles."""
    grid = _gemm_grid(params.product, define(rung, "TILE_M"), define(rung, "TILE_N"))
    return Launch(grid, (_warp_threads(rung), 1, 1), params.scalars())


@shape
def qconv_tiles(params: QConv, rung: Rung) -> Launch:
    """A block of 256 threads TILE maps of a group by TILE outputs of any image: tiles in grid.x, outputs
    first; groups in grid.z. KH and KW are compiled in."""
    tile = define(rung, "TILE")
    p = params.product
    tiles = ceil(p.n * p.out_h * p.out_w, tile) * ceil(p.m // p.group, tile)
    if tiles > MAX_X or p.group > MAX_YZ:
        raise KernelError(
            f"{rung.label} takes up to {MAX_X:,} tiles in up to {MAX_YZ:,} groups; {params} has more"
        )
    return Launch((tiles, 1, p.group), (256, 1, 1), params.scalars(), defines={"KH": p.kh, "KW": p.kw})


def _warp_threads(rung: Rung) -> int:
    return 32 * define(rung, "WARPS_M") * define(rung, "WARPS_N")


@shape
def gemm_fitted(params: Gemm, rung: Rung) -> Launch:
    """As gemm_tiles, the tile chosen out of GEMM_TILES, THREAD_M × THREAD_N outputs a thread; how
    a and b lie is compiled in too (TRANS_A, TRANS_B)."""
    tile, _ = fit(GEMM_TILES, params.m, params.n, params.k, params.batch)
    if max(GEMM_TILES)[0] * max(params.m, params.n, params.k) > MAX_X:
        raise KernelError(f"{rung.label} counts the elements of a tile's rows in 32 bits; {params} has more")
    defines = tile.defines | _lies(params)
    grid = _gemm_grid(params, tile.m, tile.n)
    return Launch(grid, (tile.threads, 1, 1), params.scalars(), defines=defines)


@shape
def gemm_large(params: Gemm, rung: Rung) -> Launch:
    """As gemm_fitted with LARGE_GEMM_TILES; a and b are read VECTOR_A and VECTOR_B elements at once."""
    tile, _ = fit(LARGE_GEMM_TILES, params.m, params.n, params.k, params.batch)
    defines = tile.defines | _lies(params) | _wide_reads(params)
    grid = _gemm_grid(params, tile.m, tile.n)
    return Launch(grid, (tile.threads, 1, 1), params.scalars(), defines=defines)


@shape
def gemm_split(params: Gemm, rung: Rung) -> Launch:
    """As gemm_large, with the sum in PARTS parts, a block for each (grid.y). Part p of matrix i writes its
    (m, n) sums to element (p · batch + i) · m · n of the scratch memory; the stage `gemm_reduce`, a thread
    for each output, adds them in order. With PARTS = 1 the first stage writes y itself."""
    tile, parts = fit(LARGE_GEMM_TILES, params.m, params.n, params.k, params.batch, PARTS)
    defines = tile.defines | _lies(params) | _wide_reads(params)
    x, _, z = _gemm_grid(params, tile.m, tile.n)
    return in_parts(params, (x, parts, z), tile.threads, parts, defines)


@shape
def gemm_async(params: Gemm, rung: Rung) -> Launch:
    """A block of WARPS_M × WARPS_N warps a tile of y, 32 × 64 outputs a warp; STAGES
    tiles of 16 steps in shared memory."""
    down, across = fit_warps(params.m, params.n)
    tile_m, tile_n = 32 * down, 64 * across
    floats = tile_m * (_ASYNC_STEPS + 4) + _ASYNC_STEPS * tile_n
    return Launch(
        _gemm_grid(params, tile_m, tile_n),
        (32 * down * across, 1, 1),
        params.scalars(),
        shared_nbytes=4 * define(rung, "STAGES") * floats,
        defines={"WARPS_M": down, "WARPS_N": across},
    )


@shape
def gemm_warp_a_column(params: Gemm, rung: Rung) -> Launch:
    """Blocks of BLOCK threads; a warp computes a column of y, all m rows (compiled in as ROWS) at once. Where
    the columns alone would leave most of the device idle, WARPS warps of a block share a column."""
    return replace(_warp_a_column(params, rung), scalars=params.scalars())


@shape
def qgemm_warp_a_column(params: QGemm, rung: Rung) -> Launch:
    """As gemm_warp_a_column."""
    return replace(_warp_a_column(params.product, rung), scalars=params.scalars())


def _warp_a_column(params: Gemm, rung: Rung) -> Launch:
    block = define(rung, "BLOCK", 256)
    warps = 1
    while 2 * warps * 32 <= block and warps * params.n < _FEW_WARPS and params.k >= 512 * warps:
        warps *= 2
    grid = (ceil(params.n * warps, block // 32), 1, 1)
    defines = {"ROWS": params.m, "WARPS": warps}
    return Launch(grid, (block, 1, 1), params.scalars(), defines=defines)


@shape
def gemm_warp_a_few(params: Gemm, rung: Rung) -> Launch:
    """Blocks of BLOCK threads; a warp computes a piece of ROWS rows × COLUMNS columns of y, or one column
    where there are few: grid = (columns, rows)."""
    block, rows, columns = (define(rung, name) for name in ("BLOCK", "ROWS", "COLUMNS"))
    rows = min(rows, params.m)
    if ceil(params.m, rows) * params.n < _FEW_WARPS:
        columns = 1
    grid = (ceil(ceil(params.n, columns), block // 32), ceil(params.m, rows), 1)
    return Launch(grid, (block, 1, 1), params.scalars(), defines={"ROWS": rows, "COLUMNS": columns})


@shape
def conv_tiles(params: Conv, rung: Rung) -> Launch:
    """The convolution as a matrix product, channels × pixels of the whole batch: a block of
    (TILE_M / ROWS) · TILE_N threads a tile of TILE_M channels × TILE_N pixels, ROWS channels a thread.
    grid = (pixel tiles, channel tiles of a group, groups)."""
    m, n, rows = (define(rung, name) for name in ("TILE_M", "TILE_N", "ROWS"))
    return Launch(_conv_grid(params, rung, m, n), (m // rows * n, 1, 1), params.scalars())


@shape
def conv_fitted(params: Conv, rung: Rung) -> Launch:
    """As conv_tiles, the tile chosen out of CONV_TILES, THREAD_M × THREAD_N outputs a thread."""
    tile, _ = fit(CONV_TILES, *_conv_product(params))
    grid = _conv_grid(params, rung, tile.m, tile.n)
    return Launch(grid, (tile.threads, 1, 1), params.scalars(), defines=tile.defines)


@shape
def conv_large(params: Conv, rung: Rung) -> Launch:
    """As conv_fitted with LARGE_CONV_TILES; weights are read VECTOR_W at once."""
    tile, _ = fit(LARGE_CONV_TILES, *_conv_product(params))
    grid = _conv_grid(params, rung, tile.m, tile.n)
    defines = tile.defines | {"VECTOR_W": _wide(_conv_product(params)[2])}
    return Launch(grid, (tile.threads, 1, 1), params.scalars(), defines=defines)


@shape
def conv_split(params: Conv, rung: Rung) -> Launch:
    """As conv_large, with the taps in PARTS parts, a block for each (grid.z = group · PARTS + part). Part p
    writes its sums as a whole y to element p · (size of y) of the scratch memory; the stage `conv_reduce`, a
    thread for each output, adds them in order. With PARTS = 1 the first stage writes y itself."""
    product = _conv_product(params)
    tile, parts = fit(LARGE_CONV_TILES, *product, PARTS)
    defines = tile.defines | {"VECTOR_W": _wide(product[2])}
    x, y, z = _conv_grid(params, rung, tile.m, tile.n)
    how = in_parts(params, (x, y, z * parts), tile.threads, parts, defines)
    return replace(how, microseconds=microseconds(tile, LARGE_CONV_TILES[tile], *product, parts))


# --- helpers ---


def _conv_product(p: Conv) -> tuple[int, int, int, int]:
    """(m, n, k, batch) of the convolution as a product: channels, pixels, taps, groups."""
    return p.m // p.group, p.n * p.out_h * p.out_w, p.c // p.group * p.kh * p.kw, p.group


def _lies(p: Gemm) -> dict[str, int]:
    return {"TRANS_A": int(p.trans_a), "TRANS_B": int(p.trans_b)}


def _wide_reads(p: Gemm) -> dict[str, int]:
    """Defines: four elements are read at once where every row, and every matrix of a batch, begins on 16
    bytes."""
    return {
        "VECTOR_A": _wide(p.m if p.trans_a else p.k, p.stride_a),
        "VECTOR_B": _wide(p.k if p.trans_b else p.n, p.stride_b),
    }


def _wide(*counts: int) -> int:
    return 4 if all(count % 4 == 0 for count in counts) else 1


def _gemm_grid(p: Gemm, tile_m: int, tile_n: int) -> tuple[int, int, int]:
    return ceil(p.m, tile_m) * ceil(p.n, tile_n), 1, min(p.batch, MAX_YZ)


def _conv_grid(p: Conv, rung: Rung, tile_m: int, tile_n: int) -> tuple[int, int, int]:
    pixels = p.n * p.out_h * p.out_w
    if max(pixels, p.c * p.h * p.w, p.c // p.group * p.kh * p.kw) > MAX_X - 4096:
        raise KernelError(f"{rung.label} counts pixels and the elements of an image in 32 bits; {p} has more")
    return ceil(pixels, tile_n), ceil(p.m // p.group, tile_m), p.group
