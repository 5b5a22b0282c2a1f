"""The launch shapes of pools, of normalisations across channels, and of both together."""

from __future__ import annotations

from kernels.errors import KernelError
from kernels.header import Define
from kernels.launch.core import MAX_X, Launch, define, shape
from kernels.occupancy import ceil
from kernels.ops import code
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pool import Pool
from kernels.registry import Rung

_ENOUGH_WARPS = 2048  # on a large device each multiprocessor runs a few dozen at once
_WARP = 32
_BAND_THREADS = 256
_THREE_QUARTERS = 0.75  # an exponent that takes two roots
_LEAST_NORMAL = 2.0**-126  # float32
_BAND_NBYTES = 32 << 10  # of shared memory, so that several blocks fit beside each other


@shape
def lrn_runs(params: Lrn, rung: Rung) -> Launch:
    """A thread PIXELS pixels (1 where the header says nothing) and RUN channels, SIZE (the window) compiled
    in, and THREE_QUARTERS (`lrn_defines`): blocks of BLOCK threads along the pixels of the batch,
    grid.x = (block of pixels, run of channels), the runs side by side."""
    block, run, pixels = define(rung, "BLOCK", 128), define(rung, "RUN"), define(rung, "PIXELS", 1)
    units = params.n * ceil(params.inner, pixels)
    grid = ceil(max(1, units), block) * ceil(params.c, run)
    return Launch((grid, 1, 1), (block, 1, 1), params.scalars(), defines=lrn_defines(params))


@shape
def pool_compiled(params: Pool, rung: Rung) -> Launch:
    """An output a thread in blocks of BLOCK; kind, activation (AFTER), sizes, strides, padding and dilation
    are compiled in under their names in capitals. WIDE: there are more outputs than 32 bits count."""
    return _pool_launch(params, rung, params.outputs, {})


@shape
def pool_runs(params: Pool, rung: Rung) -> Launch:
    """As pool_compiled, but RUN outputs below each other a thread, fewer where threads would be few."""
    p = params
    run = min(define(rung, "RUN"), p.out_h)
    while run > 1 and p.outputs < _ENOUGH_WARPS * _WARP * run:
        run //= 2
    return _pool_launch(p, rung, p.n * p.c * ceil(p.out_h, run) * p.out_w, {"RUN": run})


@shape
def lrn_pool_bands(params: LrnPool, rung: Rung) -> Launch:
    """A block UNITS bands; a band is OUTS rows of TILE outputs over RUN channels, a thread each of its
    columns of the image. RUN and OUTS are halved where threads would be few; all shapes but the number of
    images are compiled in under their names in capitals."""
    p = params
    tile = max(1, min(p.out_w, (_BAND_THREADS - p.kw) // p.stride_w + 1))
    span = (tile - 1) * p.stride_w + p.kw

    def bands(run: int, outs: int) -> int:
        return p.n * ceil(p.c, run) * ceil(p.out_w, tile) * ceil(p.out_h, outs)

    run, outs = min(define(rung, "RUN"), p.c), min(define(rung, "OUTS"), p.out_h)
    while bands(run, outs) * span < _ENOUGH_WARPS * _WARP and (outs > 1 or run > 4):
        if outs > 1:
            outs //= 2
        else:
            run = ceil(run, 2)
    total = bands(run, outs)
    if max(p.c * p.h * p.w, total + _BAND_THREADS) > MAX_X:
        raise KernelError(f"{rung.label} counts bands and the elements of an image in 32 bits; {p} has more")
    band_nbytes = 4 * outs * run * span
    fitting = range(1, max(1, min(_BAND_THREADS // span, _BAND_NBYTES // band_nbytes)) + 1)
    # As many as leave the fewest threads of the last warp without a column.
    units = max(fitting, key=lambda count: (count * span / (_WARP * ceil(count * span, _WARP)), count))
    defines = pool_defines(p.pool) | lrn_defines(p) | {"C": p.c, "RUN": run, "OUTS": outs}
    defines |= {"UNITS": units, "TILE": tile}
    block = min(_BAND_THREADS, _WARP * ceil(units * span, _WARP))
    return Launch((ceil(total, units), 1, 1), (block, 1, 1), p.scalars(), defines=defines)


# --- helpers ----------------------------------------------------------------------------------------------


def _pool_launch(p: Pool, rung: Rung, units: int, defines: dict[str, Define]) -> Launch:
    if p.h * p.w > MAX_X:
        raise KernelError(f"{rung.label} counts the pixels of an image in 32 bits; {p} has more")
    block = define(rung, "BLOCK", 256)
    defines = pool_defines(p) | defines
    defines |= {"DILATION_H": p.dilation_h, "DILATION_W": p.dilation_w}
    defines |= {"AFTER": code("ACTIVATION", p.activation), "WIDE": int(p.outputs > MAX_X - 1024)}
    grid = ceil(max(1, units), block)
    return Launch((grid, 1, 1), (block, 1, 1), p.scalars(), defines=defines)


def lrn_defines(p: Lrn | LrnPool) -> dict[str, Define]:
    """SIZE, of the window, and THREE_QUARTERS: whether that is the exponent, of sums that begin with a normal
    number and grow."""
    grows = p.bias >= _LEAST_NORMAL and p.alpha >= 0
    return {"SIZE": p.size, "THREE_QUARTERS": int(p.beta == _THREE_QUARTERS and grows)}


def pool_defines(p: Pool) -> dict[str, Define]:
    names = "h w out_h out_w kh kw stride_h stride_w pad_top pad_left pad_bottom pad_right"
    defines: dict[str, Define] = {name.upper(): getattr(p, name) for name in names.split()}
    return defines | {"KIND": code("POOL", p.kind), "COUNT_PAD": int(p.count_include_pad)}
