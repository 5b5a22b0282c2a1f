"""The launch shapes of rungs that take activations as NHWC too (kernels.layouts)."""

from __future__ import annotations

from dataclasses import replace

from kernels import layouts, packing
from kernels.errors import KernelError
from kernels.estimates import nhwc_tiles
from kernels.launch.core import MAX_X, Launch, Pack, Stage, define, in_parts, shape
from kernels.launch.tensor import tiles
from kernels.launch.windows import window
from kernels.nvrtc import Define
from kernels.occupancy import ceil
from kernels.ops import code
from kernels.ops.conv import Conv
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pool import Pool
from kernels.registry import Rung

_WEIGHT = 1  # the place of the weights among the inputs
_SHARED_NBYTES = 48 << 10  # of a block, without asking for more
_MOST_STAGES = 4
_MOST_FOLD = 8
_KEPT_NBYTES = 32 << 20  # that a large device keeps in its cache
_PIXELS = 32  # and as many chunks as the threads allow, a block that lays x out anew
_THREADS = 256
_WARP = 32
_MOST_SPAN = 64  # columns of the image under a band
_ENOUGH_BLOCKS = 264  # two a multiprocessor of a large device


@shape
def conv_nhwc_tensor(params: Conv, rung: Rung) -> Launch:
    """As conv_tensor, over NHWC chunks of EACH channels. An x that lies as NCHW float32 is laid out
    so by a stage before it, conv_lay_out, at the beginning of the scratch memory; partial sums lie behind.
    FOLD: how many rows and columns of pixels that stage makes channels of one (`folding`)."""
    p, in_chunk = params, define(rung, "EACH")
    plain = layouts.reads(rung) == layouts.PLAIN
    channels, wide = p.c // p.group, p.m // p.group
    if not plain and p.group > 1 and channels % in_chunk:
        raise KernelError(f"{rung.label} reads whole chunks of channels; {p} has groups of {channels}")
    if layouts.writes(rung) != layouts.PLAIN and p.group > 1 and wide % in_chunk:
        raise KernelError(f"{rung.label} writes whole chunks of channels; {p} has groups of {wide}")
    fold = folding(p, in_chunk) if plain else 1
    depth, kh, kw, h, w = channels, p.kh, p.kw, p.h, p.w
    if fold > 1:
        depth, kh, kw = channels * fold * fold, ceil(p.kh, fold), ceil(p.kw, fold)
        h, w = p.out_h + kh - 1, p.out_w + kw - 1
    chunks = ceil(depth, in_chunk)
    pixels, laid_out = p.n * p.out_h * p.out_w, p.n * h * w
    if max(pixels, laid_out * chunks * p.group, p.c * p.h * p.w, kh * kw * chunks) > MAX_X - 4096:
        raise KernelError(f"{rung.label} counts pixels and chunks of channels in 32 bits; {p} has more")
    slabs = ceil(kh * kw * chunks * in_chunk, packing.depth(rung.precision))
    tile, parts = nhwc_tiles.fit(tiles(rung), rung.precision, pixels, wide, slabs, p.group)
    held = _SHARED_NBYTES // (packing.SLAB_NBYTES * (tile.rows + tile.columns))
    padded = fold == 1 and any((p.pad_top, p.pad_left, p.pad_bottom, p.pad_right))
    defines: dict[str, Define] = {**tile.defines, "STAGES": min(held, _MOST_STAGES), "FOLD": fold}
    defines |= {"PADDED": int(padded), "AFTER": code("ACTIVATION", p.activation)}
    defines |= {name: rung.defines.get(name, 0) for name in ("READS", "WRITES")}
    pack = Pack(packing.nhwc_slabs, (p.group, fold, rung.precision, tile.columns))

    def blocks(images: int) -> tuple[int, int, int]:
        rows = ceil(images * p.out_h * p.out_w, tile.rows)
        return rows * ceil(wide, tile.columns), 1, p.group * parts

    def laying_out(images: int) -> tuple[int, int, int]:
        return ceil(images * h * w, _PIXELS), ceil(chunks * p.group, _THREADS // _PIXELS), 1

    how = in_parts(p, blocks(p.n), tile.threads, parts, defines, {_WEIGHT: pack})
    if parts > 1 and layouts.writes(rung) != layouts.PLAIN:  # whose partial sums lie as y does, in float32
        filled = pixels * ceil(p.m, in_chunk) * in_chunk
        adding = Stage("conv_reduce", (min(ceil(filled // 4, 128), MAX_X), 1, 1), (128, 1, 1))
        how = replace(how, workspace_nbytes=4 * parts * filled, then=(adding,))
    if not plain:
        return how
    each = packing.CHUNK_NBYTES * h * w * chunks * p.group  # bytes of an image that is laid out
    if parts > 1 or p.n * each <= _KEPT_NBYTES:
        first = Stage("conv_lay_out", laying_out(p.n), (_THREADS, 1, 1))
        return replace(how, before=(first,), workspace_nbytes=p.n * each + (how.workspace_nbytes or 0))
    # A few images at a time: what was laid out is read while it is still in the cache.
    stages: list[Stage] = []
    few = max(1, _KEPT_NBYTES // each)
    answer = layouts.nbytes(layouts.writes(rung), p.of_rows(1).output_shape) // 4
    for begin in range(0, p.n, few):
        images = min(few, p.n - begin)
        told = p.of_rows(images).scalars()
        at, to = begin * p.image, begin * answer
        stages.append(Stage("conv_lay_out", laying_out(images), (_THREADS, 1, 1), 0, told, at, to))
        stages.append(Stage("conv", blocks(images), (tile.threads, 1, 1), 0, told, at, to))
    return replace(how, grid=(0, 1, 1), before=tuple(stages), workspace_nbytes=few * each)


def folding(p: Conv, each: int) -> int:
    """How many rows and columns of pixels become channels of one: the stride, where chunks are then filled
    better."""
    fold = p.stride_h
    alike = p.stride_w == fold and p.dilation_h == p.dilation_w == p.group == 1
    if not alike or not 1 < fold <= _MOST_FOLD:
        return 1
    folded = ceil(p.kh, fold) * ceil(p.kw, fold) * ceil(p.c * fold * fold, each)
    return fold if folded < p.kh * p.kw * ceil(p.c, each) else 1


@shape
def nhwc_bands(params: Pool | LrnPool, rung: Rung) -> Launch:
    """A block a band: OUTS rows of TILE outputs, CHUNKS_AT_ONCE chunks of EACH channels, a thread each chunk
    of a column of the image; fewer rows where blocks would be few. All shapes but the number of images are
    compiled in under their names in capitals."""
    p = params
    pool, size = (p, 0) if isinstance(p, Pool) else (p.pool, p.size)
    chunks = ceil(p.c, define(rung, "EACH"))
    tile = max(1, min(p.out_w, (_MOST_SPAN - p.kw) // p.stride_w + 1))
    span = (tile - 1) * p.stride_w + p.kw
    at_once = max(1, min(chunks, _THREADS // span, define(rung, "CHUNKS_AT_ONCE")))

    def blocks(outs: int) -> int:
        return p.n * ceil(p.out_h, outs) * ceil(p.out_w, tile) * ceil(chunks, at_once)

    outs = min(define(rung, "OUTS"), p.out_h)
    if blocks(outs) < _ENOUGH_BLOCKS:
        outs = 1
    if max(p.h * p.w, blocks(outs)) > MAX_X - _THREADS:
        raise KernelError(f"{rung.label} counts bands and pixels in 32 bits; {p} has more")
    defines = window(pool) | {"C": p.c, "SIZE": size, "AFTER": code("ACTIVATION", pool.activation)}
    defines |= {"OUTS": outs, "TILE": tile, "CHUNKS_AT_ONCE": at_once}
    defines |= {name: rung.defines.get(name, 0) for name in ("READS", "WRITES")}
    block = min(_THREADS, _WARP * ceil(span * at_once, _WARP))
    return Launch((blocks(outs), 1, 1), (block, 1, 1), p.scalars(), defines=defines)


@shape
def nhwc_chunks(params: Lrn, rung: Rung) -> Launch:
    """A thread a chunk of EACH channels of a pixel. The channels C and the SIZE of the window are compiled
    in."""
    p, each = params, define(rung, "EACH")
    units = p.n * p.inner * ceil(p.c, each)
    if max(units, p.c * p.inner) > MAX_X - _THREADS:
        raise KernelError(f"{rung.label} counts pixels and chunks of channels in 32 bits; {p} has more")
    defines: dict[str, Define] = {"C": p.c, "SIZE": p.size}
    defines |= {name: rung.defines.get(name, 0) for name in ("READS", "WRITES")}
    return Launch((ceil(units, _THREADS), 1, 1), (_THREADS, 1, 1), p.scalars(), defines=defines)
