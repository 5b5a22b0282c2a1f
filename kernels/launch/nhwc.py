"""The launch shapes of rungs that also take activations as NHWC (kernels.layouts)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kernels import layouts, packing
from kernels.errors import KernelError
from kernels.estimates import nhwc_tiles, wgmma_tiles
from kernels.header import Define
from kernels.launch.core import MAX_X, Launch, Pack, Stage, define, in_parts, shape
from kernels.launch.tensor import tiles
from kernels.launch.windows import lrn_defines, pool_defines
from kernels.occupancy import ceil
from kernels.ops import ITEMSIZE, code
from kernels.ops.conv import Conv
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pool import Pool
from kernels.ops.qconv import QConv
from kernels.registry import Rung

_WEIGHT = 1  # the place of the weights among the inputs
_SHARED_NBYTES = 48 << 10  # of a block, without asking for more
_MOST_STAGES = 4
_MOST_FOLD = 8
_KEPT_NBYTES = 32 << 20  # that a large device keeps in its cache
_KEPT_OF_TWO = (
    8  # times as much where numbers are sums of two: what they are multiplied in takes longer to fill
)
_PIXELS = 32  # and as many chunks as the threads allow, a block that lays x out anew
_FOLDED_PIXELS = 64  # or folds it, four chunks of each at once
_THREADS = 256
_WARP = 32
_MOST_SPAN = 64  # columns of the image under a band
SHARES = 16  # of an image whose largest number is looked for
LOOKING = 512  # threads that do
_ENOUGH_BLOCKS = 264  # two a multiprocessor of a large device


@dataclass(frozen=True)
class ProductView:
    """A convolution as a matrix product over chunks of channels. fold: see `folding`; kh, kw: of the window,
    h, w: of an image, both after folding; chunks: of a pixel and group."""

    params: Conv
    plain: bool
    fold: int
    kh: int
    kw: int
    h: int
    w: int
    chunks: int

    @property
    def pixels(self) -> int:
        """Rows of the product."""
        return self.params.n * self.params.out_h * self.params.out_w

    @property
    def taps(self) -> int:
        """Chunks of a sum."""
        return self.kh * self.kw * self.chunks

    @property
    def padded(self) -> bool:
        p = self.params
        return self.fold == 1 and any((p.pad_top, p.pad_left, p.pad_bottom, p.pad_right))

    @property
    def defines(self) -> dict[str, Define]:
        """The defines that follow from it."""
        after = code("ACTIVATION", self.params.activation)
        return {"FOLD": self.fold, "PADDED": int(self.padded), "AFTER": after}


def product_view(p: Conv, rung: Rung) -> ProductView:
    """The convolution as such a product. Raises KernelError where the rung cannot read or write these
    channels, or count them in 32 bits."""
    each = define(rung, "EACH")
    plain = rung.read_layout == layouts.PLAIN
    channels, wide = p.c // p.group, p.m // p.group
    if not plain and p.group > 1 and channels % each:
        raise KernelError(f"{rung.label} reads whole chunks of channels; {p} has groups of {channels}")
    if rung.written_layout != layouts.PLAIN and p.group > 1 and wide % each:
        raise KernelError(f"{rung.label} writes whole chunks of channels; {p} has groups of {wide}")
    fold = folding(p, each) if plain else 1
    depth, kh, kw, h, w = channels, p.kh, p.kw, p.h, p.w
    if fold > 1:
        depth, kh, kw = channels * fold * fold, ceil(p.kh, fold), ceil(p.kw, fold)
        h, w = p.out_h + kh - 1, p.out_w + kw - 1
    view = ProductView(p, plain, fold, kh, kw, h, w, ceil(depth, each))
    if max(view.pixels, p.n * h * w * view.chunks * p.group, p.c * p.h * p.w, view.taps) > MAX_X - 4096:
        raise KernelError(f"{rung.label} counts pixels and chunks of channels in 32 bits; {p} has more")
    return view


def laying_out(of: ProductView, images: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Grid and block of the stage that lays out so many images."""
    block = (_THREADS, 1, 1)
    if of.fold > 1:
        return (ceil(images * of.h * of.w, _FOLDED_PIXELS), 1, 1), block
    chunks = of.chunks * of.params.group
    return (ceil(images * of.h * of.w, _PIXELS), ceil(chunks, _THREADS // _PIXELS), 1), block


def with_layout_stage(
    how: Launch,
    of: ProductView,
    rung: Rung,
    blocks: Callable[[int], tuple[int, int, int]],
    at_once: bool = False,
    params: Conv | QConv | None = None,
) -> Launch:
    """The launch with the stage conv_lay_out before it (<op>_lay_out), which writes x as chunks to the
    beginning of the scratch memory, where x is NCHW or its numbers must be scaled. It does this for all
    images, or for a few at a time, so that they are still in the cache when they are read. blocks: the grid
    for so many images; at_once: images cannot be done separately; params: what the kernels are told, where
    that is more than the convolution. Where numbers are scaled, a stage conv_largest before that finds the
    scale of each image."""
    if not of.plain and not _scaled(rung):
        return how
    params = of.params if params is None else params
    p, op, operands = of.params, params.op, define(rung, "OPERANDS", 1)
    # Bytes of an image that is laid out, and the largest number of each of its shares.
    each = operands * packing.CHUNK_NBYTES * of.h * of.w * of.chunks * p.group
    each += 4 * SHARES if _scaled(rung) else 0

    def looking(images: int) -> tuple[int, int, int]:
        return SHARES * images, 1, 1

    cache_nbytes = _KEPT_NBYTES * (_KEPT_OF_TWO if operands > 1 else 1)
    if at_once or p.n * each <= cache_nbytes:
        stages = [Stage(f"{op}_lay_out", *laying_out(of, p.n))]
        if _scaled(rung):
            stages.insert(0, Stage("conv_largest", looking(p.n), (LOOKING, 1, 1)))
        return replace(how, before=tuple(stages), workspace_nbytes=p.n * each + (how.workspace_nbytes or 0))
    turns: list[Stage] = []
    few = max(1, cache_nbytes // each)
    one = params.of_rows(1)
    sizes = ITEMSIZE[params.dtype], ITEMSIZE[params.out_dtype]
    read_nbytes = layouts.nbytes(rung.read_layout, one.input_shapes[0], sizes[0])
    written_nbytes = layouts.nbytes(rung.written_layout, one.output_shape, sizes[1])
    if read_nbytes % 4 or written_nbytes % 4:  # a stage's tensors begin whole words further on
        few = ceil(few, 4) * 4
    for begin in range(0, p.n, few):
        images = min(few, p.n - begin)
        scalars = params.of_rows(images).scalars()
        at, to = begin * read_nbytes // 4, begin * written_nbytes // 4
        if _scaled(rung):
            turns.append(Stage("conv_largest", looking(images), (LOOKING, 1, 1), 0, scalars, at, to))
        turns.append(Stage(f"{op}_lay_out", *laying_out(of, images), 0, scalars, at, to))
        turns.append(Stage(op, blocks(images), how.block, how.shared_nbytes, scalars, at, to))
    few = min(few, p.n)
    return replace(how, grid=(0, 1, 1), before=tuple(turns), workspace_nbytes=few * each)


@shape
def conv_nhwc_tensor(params: Conv, rung: Rung) -> Launch:
    """As conv_tensor, over NHWC chunks of EACH channels. If x is NCHW float32, a stage before it,
    conv_lay_out, writes it as chunks to the beginning of the scratch memory; partial sums follow. FOLD: how
    many rows and columns of pixels that stage turns into channels of one (`folding`)."""
    p, in_chunk = params, define(rung, "EACH")
    of, wide = product_view(p, rung), p.m // p.group
    slabs = ceil(of.taps * in_chunk, packing.depth(rung.precision))
    tile, parts = nhwc_tiles.fit(tiles(rung), rung.precision, of.pixels, wide, slabs, p.group)
    fitting_slabs = _SHARED_NBYTES // (packing.SLAB_NBYTES * (tile.rows + tile.columns))
    defines: dict[str, Define] = {**tile.defines, **of.defines, "STAGES": min(fitting_slabs, _MOST_STAGES)}
    defines |= {name: rung.defines.get(name, 0) for name in ("READS", "WRITES")}
    pack = Pack(packing.nhwc_slabs, (p.group, of.fold, rung.precision, tile.columns))

    def blocks(images: int) -> tuple[int, int, int]:
        rows = ceil(images * p.out_h * p.out_w, tile.rows)
        return rows * ceil(wide, tile.columns), 1, p.group * parts

    how = in_parts(p, blocks(p.n), tile.threads, parts, defines, {_WEIGHT: pack})
    if parts > 1 and rung.written_layout != layouts.PLAIN:  # whose partial sums lie as y does, in float32
        filled = of.pixels * ceil(p.m, in_chunk) * in_chunk
        adding = Stage("conv_reduce", (min(ceil(filled // 4, 128), MAX_X), 1, 1), (128, 1, 1))
        how = replace(how, workspace_nbytes=4 * parts * filled, then=(adding,))
    return with_layout_stage(how, of, rung, blocks, parts > 1)


@shape
def conv_nhwc_wgmma(params: Conv, rung: Rung) -> Launch:
    """As conv_nhwc_tensor, with a warpgroup for each 64 of a block's TILE_ROWS pixels; the parts of a sum are
    blocks of a cluster."""
    p, of, wide = params, product_view(params, rung), params.m // params.group
    operands = define(rung, "OPERANDS", 1)
    slabs = ceil(of.taps, packing.WIDE_SLAB_NBYTES // packing.CHUNK_NBYTES // operands)
    rows, columns, parts = wgmma_tiles.fit_clusters(of.pixels, wide, slabs, operands, p.group)
    stages, at_once = wgmma_tiles.stages(rows, columns, operands)
    pack = Pack(packing.swizzled_slabs, (p.group, of.fold, rung.precision, columns))
    if _scaled(rung):
        pack = Pack(packing.split_slabs, (p.group, of.fold, columns, operands))
    defines: dict[str, Define] = {**of.defines, "TILE_ROWS": rows, "TILE_COLUMNS": columns, "STAGES": stages}
    defines |= {"BLOCKS_AT_ONCE": at_once, "LATE_SLABS": wgmma_tiles.late(rows)}
    defines |= {name: rung.defines.get(name, 0) for name in ("READS", "WRITES")}

    def blocks(images: int) -> tuple[int, int, int]:
        return ceil(images * p.out_h * p.out_w, rows) * ceil(wide, columns), 1, p.group * parts

    how = Launch(
        blocks(p.n),
        (wgmma_tiles.threads(rows), 1, 1),
        p.scalars(),
        shared_nbytes=stages * packing.WIDE_SLAB_NBYTES * (rows + columns),
        defines=defines | {"PARTS": parts},
        workspace_nbytes=0,
        packed={_WEIGHT: pack},
    )
    return with_layout_stage(how, of, rung, blocks)


def _scaled(rung: Rung) -> bool:
    """Whether numbers are float16, or sums of two, scaled by a power of two for each image."""
    return define(rung, "OPERANDS", 1) > 1 or "SCALED" in rung.defines


def folding(p: Conv, each: int) -> int:
    """How many rows and columns of pixels become channels of one pixel: the stride, if that fills chunks
    better; else 1."""
    fold = p.stride_h
    alike = p.stride_w == fold and p.dilation_h == p.dilation_w == p.group == 1
    if not alike or not 1 < fold <= _MOST_FOLD:
        return 1
    folded = ceil(p.kh, fold) * ceil(p.kw, fold) * ceil(p.c * fold * fold, each)
    return fold if folded < p.kh * p.kw * ceil(p.c, each) else 1


@shape
def nhwc_bands(params: Pool | LrnPool, rung: Rung) -> Launch:
    """A block for each band: OUTS rows of TILE outputs, CHUNKS_AT_ONCE chunks of EACH channels; a thread for
    each chunk of a column of the image. Fewer rows where blocks would be few. All sizes except the number of
    images are compiled in under their names in capitals."""
    p = params
    pool, before = (p, {"SIZE": 0}) if isinstance(p, Pool) else (p.pool, lrn_defines(p))
    chunks = ceil(p.c, define(rung, "EACH"))
    tile = max(1, min(p.out_w, (_MOST_SPAN - p.kw) // p.stride_w + 1))
    span = (tile - 1) * p.stride_w + p.kw
    at_once = max(1, min(chunks, _THREADS // span, define(rung, "CHUNKS_AT_ONCE")))
    at_once = ceil(chunks, ceil(chunks, at_once))  # no more than what blocks share evenly

    def blocks(outs: int) -> int:
        return p.n * ceil(p.out_h, outs) * ceil(p.out_w, tile) * ceil(chunks, at_once)

    outs = min(define(rung, "OUTS"), p.out_h)
    if blocks(outs) < _ENOUGH_BLOCKS:
        outs = 1
    if max(p.h * p.w, blocks(outs)) > MAX_X - _THREADS:
        raise KernelError(f"{rung.label} counts bands and pixels in 32 bits; {p} has more")
    defines = pool_defines(pool) | before | {"C": p.c, "AFTER": code("ACTIVATION", pool.activation)}
    defines |= {"OUTS": outs, "TILE": tile, "CHUNKS_AT_ONCE": at_once}
    if "X_TYPE" in rung.defines:  # of eight bits
        defines |= {"X_TYPE": code("DTYPE", p.dtype), "TO": code("DTYPE", p.out_dtype)}
    defines |= {name: rung.defines.get(name, 0) for name in ("READS", "WRITES")}
    block = min(_THREADS, _WARP * ceil(span * at_once, _WARP))
    return Launch((blocks(outs), 1, 1), (block, 1, 1), p.scalars(), defines=defines)


@shape
def nhwc_chunks(params: Lrn, rung: Rung) -> Launch:
    """A thread for each chunk of EACH channels of a pixel. The channels C and the SIZE of the window are
    compiled in."""
    p, each = params, define(rung, "EACH")
    units = p.n * p.inner * ceil(p.c, each)
    if max(units, p.c * p.inner) > MAX_X - _THREADS:
        raise KernelError(f"{rung.label} counts pixels and chunks of channels in 32 bits; {p} has more")
    defines = lrn_defines(p) | {"C": p.c}
    defines |= {name: rung.defines.get(name, 0) for name in ("READS", "WRITES")}
    return Launch((ceil(units, _THREADS), 1, 1), (_THREADS, 1, 1), p.scalars(), defines=defines)
