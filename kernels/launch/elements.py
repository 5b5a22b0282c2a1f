"""The launch shapes of operators that compute each output on its own."""

from __future__ import annotations

from kernels.errors import KernelError
from kernels.launch.core import MAX_X, Launch, ceil, define, outputs, shape
from kernels.nvrtc import Define, code
from kernels.params import Lrn, Params, Pool, Softmax
from kernels.registry import Rung
from kernels.scalars import SCALARS


@shape
def one_thread_an_output(params: Params, rung: Rung) -> Launch:
    """Blocks of BLOCK threads, an output a thread; where the outputs are more than a grid of 2³¹ − 1 threads,
    a thread takes several (a grid-stride loop)."""
    block = define(rung, "BLOCK", 256)
    grid = min(ceil(max(1, outputs(params)), block), MAX_X // block)
    return Launch((grid, 1, 1), (block, 1, 1), SCALARS[params.op](params))


@shape
def one_warp_a_row(params: Softmax, rung: Rung) -> Launch:
    """Blocks of BLOCK threads, a warp a row (outer × inner of them), several where the grid would be too
    long."""
    block = define(rung, "BLOCK", 256)
    grid = min(ceil(max(1, params.outer * params.inner), block // 32), MAX_X // block)
    return Launch((grid, 1, 1), (block, 1, 1), SCALARS[params.op](params))


@shape
def lrn_runs(params: Lrn, rung: Rung) -> Launch:
    """A thread a pixel and RUN channels, SIZE (the window) compiled in: blocks of BLOCK threads along the
    pixels of the batch, grid.x = (block of pixels, run of channels), the runs side by side."""
    block, run = define(rung, "BLOCK", 128), define(rung, "RUN")
    grid = ceil(max(1, params.n * params.inner), block) * ceil(params.c, run)
    return Launch((grid, 1, 1), (block, 1, 1), SCALARS["lrn"](params), defines={"SIZE": params.size})


@shape
def pool_compiled(params: Pool, rung: Rung) -> Launch:
    """An output a thread in blocks of BLOCK; kind, sizes, strides, padding and dilation are compiled in under
    their names in capitals. WIDE: there are more outputs than 32 bits count."""
    p, block, total = params, define(rung, "BLOCK", 256), outputs(params)
    if p.h * p.w > MAX_X:
        raise KernelError(f"{rung.label} counts the pixels of an image in 32 bits; {p} has more")
    defines: dict[str, Define] = {"KIND": code("POOL", p.kind), "COUNT_PAD": int(p.count_include_pad)}
    defines |= {"WIDE": int(total > MAX_X - 1024)}
    names = (
        "h w out_h out_w kh kw stride_h stride_w dilation_h dilation_w pad_top pad_left pad_bottom pad_right"
    )
    defines |= {name.upper(): getattr(p, name) for name in names.split()}
    return Launch((ceil(max(1, total), block), 1, 1), (block, 1, 1), SCALARS["pool"](p), defines=defines)
