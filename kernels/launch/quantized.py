"""The launch shapes of products of eight-bit numbers over chunks of channels (cuda/quantized_chunks.cuh)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from kernels import layouts, packing
from kernels.errors import KernelError
from kernels.estimates import nhwc_tiles, tensor_tiles, wgmma_tiles
from kernels.header import Define
from kernels.launch.core import MAX_X, Launch, Pack, Stage, shape
from kernels.launch.nhwc import ProductView, laying_out, product_view, with_layout_stage
from kernels.launch.products import qgemm_warp_a_column
from kernels.occupancy import ceil
from kernels.ops import code
from kernels.ops._quantized import EIGHT_BITS, Quantized
from kernels.ops.conv import Conv
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm
from kernels.registry import Rung

_WEIGHT = 1  # the place of the weights among the inputs
_SHARED_NBYTES = 48 << 10  # of a block, without asking for more
_MOST_STAGES = 4
_ADDED_AT_ONCE = 128  # sums in parts by a block


@shape
def qconv_nhwc_tensor(params: QConv, rung: Rung) -> Launch:
    """As conv_nhwc_tensor, of bytes in chunks of EACH = 16 channels; X_TYPE, W_TYPE and TO are the numbers of
    the types of x, of the weights and of y."""
    of = _view(params, rung)
    pack = partial(Pack, packing.byte_slabs)
    return _tensor(params, of, rung, lambda tile: pack((of.params.group, of.fold, tile, False)))


@shape
def qgemm_nhwc_tensor(params: QGemm, rung: Rung) -> Launch:
    """As qconv_nhwc_tensor, of the rows of a as images of one pixel; where these are no whole chunks they are
    laid out so first."""
    p, (rung, of) = params.product, _of_rows(params, rung)
    return _tensor(params, of, rung, lambda tile: Pack(packing.gemm_byte_slabs, (p.trans_b, tile, False)))


@shape
def qconv_nhwc_wgmma(params: QConv, rung: Rung) -> Launch:
    """As qconv_nhwc_tensor, with a warpgroup for each 64 of a block's TILE_ROWS pixels; the parts of a sum
    are blocks of a cluster."""
    of = _view(params, rung)
    pack = partial(Pack, packing.byte_slabs)
    return _wgmma(params, of, rung, lambda tile: pack((of.params.group, of.fold, tile, True)))


@shape
def qgemm_nhwc_wgmma(params: QGemm, rung: Rung) -> Launch:
    """As qgemm_nhwc_tensor and qconv_nhwc_wgmma."""
    p, (rung, of) = params.product, _of_rows(params, rung)
    return _wgmma(params, of, rung, lambda tile: Pack(packing.gemm_byte_slabs, (p.trans_b, tile, True)))


@shape
def qgemm_early_columns(params: QGemm, rung: Rung) -> Launch:
    """As qgemm_warp_a_column; b comes as rows of whole chunks, each a column of the product."""
    pack = Pack(packing.byte_rows, (params.trans_b,))
    return replace(qgemm_warp_a_column(params, rung), packed={_WEIGHT: pack})


# --- helpers ----------------------------------------------------------------------------------------------


def _tensor(params: Quantized, of: ProductView, rung: Rung, pack: Callable[[int], Pack]) -> Launch:
    """pack: of the weights, in tiles of so many columns."""
    p, wide = of.params, of.params.m // of.params.group
    slabs = ceil(of.taps, packing.SLAB_NBYTES // packing.CHUNK_NBYTES)
    tile, parts = nhwc_tiles.fit(tensor_tiles.CONV_TILES, rung.precision, of.pixels, wide, slabs, p.group)
    fitting_slabs = _SHARED_NBYTES // (packing.SLAB_NBYTES * (tile.rows + tile.columns))
    defines: dict[str, Define] = {**tile.defines, "STAGES": min(fitting_slabs, _MOST_STAGES), "PARTS": parts}

    def blocks(images: int) -> tuple[int, int, int]:
        rows = ceil(images * p.out_h * p.out_w, tile.rows)
        return rows * ceil(wide, tile.columns), 1, p.group * parts

    how = Launch(
        blocks(p.n),
        (tile.threads, 1, 1),
        params.scalars(),
        defines=_defines(params, of, rung) | defines,
        workspace_nbytes=0,
        packed={_WEIGHT: pack(tile.columns)},
    )
    if parts > 1:
        sums = of.pixels * ceil(p.m, packing.CHUNK_NBYTES) * packing.CHUNK_NBYTES
        block = (_ADDED_AT_ONCE, 1, 1)
        adding = Stage(f"{params.op}_reduce", (min(ceil(sums, _ADDED_AT_ONCE), MAX_X), 1, 1), block)
        how = replace(how, workspace_nbytes=4 * parts * sums, then=(adding,))
    return _laid_out(how, of, rung, params, blocks, parts > 1)


def _wgmma(params: Quantized, of: ProductView, rung: Rung, pack: Callable[[int], Pack]) -> Launch:
    """As _tensor."""
    p, wide = of.params, of.params.m // of.params.group
    slabs = ceil(of.taps, packing.WIDE_SLAB_NBYTES // packing.CHUNK_NBYTES)
    rows, columns, parts = wgmma_tiles.fit_clusters(of.pixels, wide, slabs, 1, p.group)
    stages, at_once = wgmma_tiles.stages(rows, columns)
    defines: dict[str, Define] = {"TILE_ROWS": rows, "TILE_COLUMNS": columns, "STAGES": stages}
    defines |= {"BLOCKS_AT_ONCE": at_once, "LATE_SLABS": wgmma_tiles.late(rows), "PARTS": parts}

    def blocks(images: int) -> tuple[int, int, int]:
        return ceil(images * p.out_h * p.out_w, rows) * ceil(wide, columns), 1, p.group * parts

    how = Launch(
        blocks(p.n),
        (wgmma_tiles.threads(rows), 1, 1),
        params.scalars(),
        shared_nbytes=stages * packing.WIDE_SLAB_NBYTES * (rows + columns),
        defines=_defines(params, of, rung) | defines,
        workspace_nbytes=0,
        packed={_WEIGHT: pack(columns)},
    )
    return _laid_out(how, of, rung, params, blocks)


def _of_rows(params: QGemm, rung: Rung) -> tuple[Rung, ProductView]:
    """The product as one over the pixels of images, and the rung with what then holds of its chunks: rows
    that are whole ones lie as pixels do."""
    p = params.product
    each = packing.CHUNK_NBYTES
    whole = {"READS": int(p.k % each == 0), "WRITES": int(p.n % each == 0 and params.to in EIGHT_BITS)}
    as_images = Conv(p.m, p.k, 1, 1, p.n, 1, 1, 1, 1)
    chunks = ceil(p.k, each)
    if max(p.m * max(chunks, p.n), p.n * chunks) > MAX_X - 4096:
        raise KernelError(f"{rung.label} counts chunks and numbers of y in 32 bits; {params} has more")
    rung = replace(rung, defines=MappingProxyType({**rung.defines, **whole}))
    return rung, ProductView(as_images, not whole["READS"], 1, 1, 1, 1, 1, chunks)


def _view(params: QConv, rung: Rung) -> ProductView:
    """Raises KernelError as `product_view`, and where a layout is none of its types."""
    if rung.written_layout != layouts.PLAIN and params.to not in EIGHT_BITS:
        raise KernelError(f"{rung.label} writes {rung.written_layout}; {params} gives {params.to}")
    return product_view(params.product, rung)


def _defines(params: Quantized, of: ProductView, rung: Rung) -> dict[str, Define]:
    types = {"X_TYPE": params.dtype, "W_TYPE": params.weight_dtype, "TO": params.to}
    defines: dict[str, Define] = {name: code("DTYPE", of_type) for name, of_type in types.items()}
    defines |= {"FOLD": of.fold, "PADDED": int(of.padded)}
    return defines | {name: rung.defines.get(name, 0) for name in ("READS", "WRITES")}


def _laid_out(
    how: Launch,
    of: ProductView,
    rung: Rung,
    params: Quantized,
    blocks: Callable[[int], tuple[int, int, int]],
    at_once: bool = False,
) -> Launch:
    """As with_layout_stage; rows of a matrix are laid out at once."""
    if isinstance(params, QConv):
        return with_layout_stage(how, of, rung, blocks, at_once, params)
    if not of.plain:
        return how
    nbytes = packing.CHUNK_NBYTES * of.params.n * of.chunks
    before = Stage(f"{params.op}_lay_out", *laying_out(of, of.params.n))
    return replace(how, before=(before,), workspace_nbytes=nbytes + (how.workspace_nbytes or 0))
