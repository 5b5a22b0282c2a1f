"""The launch shapes of products on tensor cores; their weights are packed for the tile that is chosen."""

from __future__ import annotations

from dataclasses import replace

from kernels import layouts, packing
from kernels.errors import KernelError
from kernels.estimates import tensor_tiles, wgmma_tiles
from kernels.estimates.tensor_tiles import TensorTile
from kernels.header import Define
from kernels.launch.core import MAX_X, Launch, Pack, Stage, define, in_parts, shape
from kernels.occupancy import ceil
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.registry import Rung

_WEIGHT = 1  # the place of the weights among the inputs
_SHARED_NBYTES = 48 << 10  # of a block, without asking for more
_HALVES = packing.CHUNK_NBYTES // 2  # of a chunk
_LEAST_COLUMNS = 16  # of a block that streams them
_ROWS_AT_ONCE = 8  # of an instruction
_FEW_BLOCKS = 100  # of them, beside the multiprocessors of a large device
_FEW_WARPS = 2048  # on a large device each multiprocessor runs a few dozen


def tiles(rung: Rung) -> tuple[TensorTile, ...]:
    """The tiles that a rung on one of these launch shapes may be given."""
    split = rung.precision == "fp32-tc"
    match rung.launch:
        case "conv_tensor" | "conv_nhwc_tensor":
            return tensor_tiles.SPLIT_CONV_TILES if split else tensor_tiles.CONV_TILES
        case "gemm_tensor":
            return tensor_tiles.SPLIT_GEMM_TILES if split else tensor_tiles.GEMM_TILES
        case _:
            return ()


@shape
def conv_tensor(params: Conv, rung: Rung) -> Launch:
    """The convolution as a matrix product, pixels of the whole batch × channels, a tile a block; the taps in
    PARTS parts, a block each (grid.z = group · PARTS + part). Tiles in grid.x, those of one stretch of pixels
    beside each other. Part p writes its sums as a whole y to element p · (size of y) of the scratch memory,
    and the stage `conv_reduce` adds them in order; with PARTS = 1 the first stage writes y itself."""
    precision = rung.precision
    channels, wide = params.c // params.group, params.m // params.group
    taps, pixels = channels * params.kh * params.kw, params.n * params.out_h * params.out_w
    if max(pixels, params.c * params.h * params.w, taps) > MAX_X - 4096:
        raise KernelError(
            f"{rung.label} counts pixels and the elements of an image in 32 bits; {params} has more"
        )
    if max((params.kh - 1) * params.dilation_h, (params.kw - 1) * params.dilation_w) >= 2**15:
        raise KernelError(f"{rung.label} counts the pixels of a window in 16 bits; {params} has more")
    slabs = ceil(taps, packing.depth(precision))
    tile, parts = tensor_tiles.fit(tiles(rung), precision, pixels, wide, slabs, params.group)
    run = packing.run(precision, channels)
    pack = Pack(packing.conv_slabs, (params.group, run, precision, tile.columns))
    grid = (ceil(pixels, tile.rows) * ceil(wide, tile.columns), 1, params.group * parts)
    padded = any((params.pad_top, params.pad_left, params.pad_bottom, params.pad_right))
    defines = tile.defines | {"RUN": run, "PADDED": int(padded), "PLANE": params.h * params.w}
    return in_parts(params, grid, tile.threads, parts, defines, {_WEIGHT: pack})


@shape
def gemm_tensor(params: Gemm, rung: Rung) -> Launch:
    """A block a tile of y, tiles in grid.x, those of one stretch of rows beside each other; the sum in PARTS
    parts, a block each (grid.y). Parts as conv_tensor, added by the stage `gemm_reduce`. a is read VECTOR
    elements at once, or in whole chunks."""
    precision = rung.precision
    _one_matrix(params, rung)
    slabs = ceil(params.k, packing.depth(precision))
    tile, parts = tensor_tiles.fit(tiles(rung), precision, params.m, params.n, slabs, 1)
    pack = Pack(packing.gemm_slabs, (params.trans_b, precision, tile.columns))
    grid = (ceil(params.m, tile.rows) * ceil(params.n, tile.columns), parts, 1)
    defines: dict[str, Define] = {**tile.defines, "VECTOR": 4 if params.k % 4 == 0 else 1}
    defines |= {name: rung.defines[name] for name in ("READS", "WRITES") if name in rung.defines}
    if rung.read_layout != layouts.PLAIN:  # whose slabs lie in shared memory as those of b do
        fitting_slabs = _SHARED_NBYTES // (packing.SLAB_NBYTES * (tile.rows + tile.columns))
        defines["STAGES"] = min(fitting_slabs, define(rung, "STAGES"))
    return in_parts(params, grid, tile.threads, parts, defines, {_WEIGHT: pack})


@shape
def gemm_wgmma(params: Gemm, rung: Rung) -> Launch:
    """As gemm_tensor, a warpgroup for 64 of a block's TILE_ROWS rows. An a that lies as float32 is laid out
    in chunks by a stage before it, gemm_lay_out, at the beginning of the scratch memory; partial sums lie
    behind."""
    _one_matrix(params, rung)
    operands = define(rung, "OPERANDS", 1)
    scaled = operands > 1 or "SCALED" in rung.defines
    precision = "fp16" if scaled else rung.precision
    slabs = ceil(params.k, 2 * packing.depth(precision) // operands)
    rows, columns, parts = wgmma_tiles.fit_parts(params.m, params.n, slabs, operands)
    stages, at_once = wgmma_tiles.stages(rows, columns, operands)
    defines: dict[str, Define] = {"TILE_ROWS": rows, "TILE_COLUMNS": columns, "STAGES": stages}
    defines |= {"BLOCKS_AT_ONCE": at_once, "LATE_SLABS": wgmma_tiles.late(rows)}
    defines |= {name: rung.defines.get(name, 0) for name in ("READS", "WRITES")}
    pack = Pack(packing.gemm_swizzled_slabs, (params.trans_b, precision, columns))
    if scaled:
        pack = Pack(packing.gemm_split_slabs, (params.trans_b, columns, operands))
    grid = (ceil(params.m, rows) * ceil(params.n, columns), parts, 1)
    how = in_parts(params, grid, wgmma_tiles.threads(rows), parts, defines, {_WEIGHT: pack})
    how = replace(how, shared_nbytes=stages * packing.WIDE_SLAB_NBYTES * (rows + columns))
    if rung.read_layout != layouts.PLAIN:
        return how
    chunks = params.m * ceil(params.k, packing.depth(precision) // 4)
    blocks, scales = (params.m, 4 * ceil(params.m, 4) * 4) if scaled else (ceil(chunks, 256), 0)
    first = Stage("gemm_lay_out", (min(blocks, MAX_X), 1, 1), (256, 1, 1))
    nbytes = operands * packing.CHUNK_NBYTES * chunks + scales + (how.workspace_nbytes or 0)
    return replace(how, before=(first,), workspace_nbytes=nbytes)


@shape
def gemm_half_columns(params: Gemm, rung: Rung) -> Launch:
    """Blocks of BLOCK threads, a warp COLUMNS columns of y, all m rows (compiled in as ROWS) at once; WARPS
    warps of a block share the columns where these alone would leave most of the device idle. b comes in
    16 bits, each column a row of whole 16 bytes, with a scale for each (SCALED) or none, or
    with eight more bits (BITS)."""
    _one_matrix(params, rung)
    block, columns = define(rung, "BLOCK"), define(rung, "COLUMNS")
    wide = params.n if rung.written_layout == layouts.PLAIN else ceil(params.n, _HALVES) * _HALVES
    groups = ceil(wide, columns)
    warps = 1
    while 2 * warps * 32 <= block and warps * groups < _FEW_WARPS and params.k >= 512 * warps:
        warps *= 2
    grid = (ceil(groups * warps, block // 32), 1, 1)
    defines: dict[str, Define] = {"ROWS": params.m, "WARPS": warps}
    defines |= {name: rung.defines[name] for name in ("READS", "WRITES") if name in rung.defines}
    pack = Pack(packing.half_rows, (params.trans_b, rung.precision))
    if "SCALED" in rung.defines:
        pack = Pack(packing.longer_rows if "BITS" in rung.defines else packing.scaled_rows, (params.trans_b,))
    return Launch(grid, (block, 1, 1), params.scalars(), defines=defines, packed={_WEIGHT: pack})


@shape
def gemm_streamed(params: Gemm, rung: Rung) -> Launch:
    """A block for TILE_COLUMNS columns of y, all m rows (compiled in as ALL_ROWS) at once; its WARPS warps
    share the sum. b comes in slabs, as for gemm_tensor, or in float16 with a scale for each column (SCALED),
    perhaps with eight more bits (BITS).
    A block has fewer columns, and more slabs under way, where blocks would be few."""
    _one_matrix(params, rung)
    scaled, columns, ahead = "SCALED" in rung.defines, define(rung, "TILE_COLUMNS"), define(rung, "AHEAD")
    longer, vector = "BITS" in rung.defines, 4 if params.k % 4 == 0 else 1
    while columns > _LEAST_COLUMNS and ceil(params.n, columns) < _FEW_BLOCKS:
        columns, ahead = columns // 2, ahead if longer else ahead * 2
    if params.m > _ROWS_AT_ONCE and (longer or vector == 1):  # or registers would not hold all
        ahead = max(1, ahead // 2)
    slabs = ceil(params.k, packing.depth("fp16" if scaled else rung.precision))
    warps = define(rung, "WARPS")
    while warps > 1 and warps > slabs:
        warps //= 2
    defines: dict[str, Define] = {"ALL_ROWS": params.m, "WARPS": warps, "TILE_COLUMNS": columns}
    defines |= {"AHEAD": ahead, "VECTOR": vector}
    defines |= {name: rung.defines[name] for name in ("READS", "WRITES") if name in rung.defines}
    pack = Pack(packing.gemm_slabs, (params.trans_b, rung.precision, columns))
    if scaled:
        as_told = packing.gemm_longer_slabs if longer else packing.gemm_scaled_slabs
        pack = Pack(as_told, (params.trans_b, columns))
    grid, block = (ceil(params.n, columns), 1, 1), (32 * warps, 1, 1)
    return Launch(grid, block, params.scalars(), defines=defines, packed={_WEIGHT: pack})


# --- helpers ---


def _one_matrix(p: Gemm, rung: Rung) -> None:
    if max(p.m, p.n, p.k) > MAX_X - 4096:
        raise KernelError(f"{rung.label} counts rows and columns in 32 bits; {p} has more")
