"""The launch shape of convolutions in which each map reads one channel."""

from __future__ import annotations

from kernels.errors import KernelError
from kernels.estimates.fitted_device import MULTIPROCESSORS, SCHEDULERS
from kernels.header import Define
from kernels.launch.core import MAX_X, Launch, shape
from kernels.launch.direct import shapes
from kernels.occupancy import SHARED_NBYTES, WARP, ceil
from kernels.ops.conv import Conv
from kernels.registry import Rung

_THREADS = 256
_TILE_FLOATS = 4096  # of shared memory a block, so that many blocks fit beside each other
_ENOUGH_WARPS = 4 * SCHEDULERS * MULTIPROCESSORS  # to keep reads in flight everywhere
_ENOUGH_BLOCKS = 2 * MULTIPROCESSORS
_FEWEST_THREADS = 64


@shape
def conv_depthwise(params: Conv, rung: Rung) -> Launch:
    """A block PLANES whole planes of x, or one and a tile of TILE_H × TILE_W outputs; a thread DOWN outputs
    of a column, in each map of its channel. ROWS × COLUMNS of a padded plane are what the tile reads. The
    tiles of a plane follow each other in grid.x, the planes behind them. Threads that would be few take
    fewer outputs, and blocks that would be few fewer planes."""
    p = params
    planes, counted = p.n * p.c, max(p.c * p.h * p.w, p.m * p.out_h * p.out_w, p.m * p.kh * p.kw)
    if counted > MAX_X // 2:
        raise KernelError(f"{rung.label} counts the elements of an image in 32 bits; {p} has more")
    down = min(_most_below(p), p.out_h)
    while down > 1 and planes * p.out_w * ceil(p.out_h, down) < _ENOUGH_WARPS * WARP:
        down = ceil(down, 2)

    def rows(strips: int) -> int:
        return (strips * down - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1

    def columns(width: int) -> int:
        # In whole strides, as they lie in shared memory.
        return ceil((width - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1, p.stride_w) * p.stride_w

    width = min(p.out_w, _THREADS)
    strips = max(1, min(ceil(p.out_h, down), _THREADS // width))
    while rows(strips) * columns(width) > _TILE_FLOATS and strips * width > 1:
        strips, width = (ceil(strips, 2), width) if strips > 1 else (strips, ceil(width, 2))
    strips = ceil(ceil(p.out_h, down), ceil(ceil(p.out_h, down), strips))  # all tiles of about one height
    floats, threads = rows(strips) * columns(width), strips * width
    if 4 * floats > SHARED_NBYTES:
        raise KernelError(f"{rung.label} keeps a window in 48 KB of shared memory; {p} has a larger one")
    tiles = ceil(p.out_h, strips * down) * ceil(p.out_w, width)
    each = max(1, min(planes, _THREADS // threads, _TILE_FLOATS // floats)) if tiles == 1 else 1
    while each > 1 and ceil(planes, each) < _ENOUGH_BLOCKS and each * threads > _FEWEST_THREADS:
        each = ceil(each, 2)
    fitted: dict[str, Define] = {
        "PLANES": each,
        "TILE_H": strips * down,
        "TILE_W": width,
        "ROWS": rows(strips),
        "COLUMNS": (width - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1,
        "THREADS": ceil(each * threads, WARP) * WARP,
        "DOWN": down,
    }
    block = (int(fitted["THREADS"]), 1, 1)
    grid = (ceil(planes, each) * tiles, 1, 1)
    return Launch(grid, block, p.scalars(), defines=shapes(p) | fitted)


def _most_below(p: Conv) -> int:
    """Outputs of a column a thread. A row of a narrow plane is no whole access to memory: the rows below it
    are written by the same warp, the more of them the fewer each thread has."""
    return 8 if p.out_w >= WARP else 4 if p.out_w >= WARP // 2 else 2
