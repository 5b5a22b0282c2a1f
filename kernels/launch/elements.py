"""The launch shapes of operators that compute each output independently, of operators that move elements, and
of rungs in languages that work on tiles: there a block is WARPS warps of one program, and the sides of the
tile are constants."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kernels.errors import KernelError, UnsupportedError
from kernels.header import Define
from kernels.launch.core import MAX_X, MAX_YZ, Launch, define, shape
from kernels.occupancy import ceil
from kernels.ops import ITEMSIZE, MAX_RANK, Params, code
from kernels.ops._axes import Broadcast
from kernels.ops.binary import BINARY_KINDS, Binary
from kernels.ops.concat import Concat
from kernels.ops.conv import Conv
from kernels.ops.cumulate import Cumulate
from kernels.ops.gemm import Gemm
from kernels.ops.multiply_add import MultiplyAdd
from kernels.ops.quantize import Quantize
from kernels.ops.recurrent import Recurrent
from kernels.ops.softmax import Softmax
from kernels.ops.transpose import Transpose
from kernels.ops.unary import UNARY_KINDS, Unary
from kernels.registry import Rung

_WORTH_TURNING = 8  # elements along both axes below which a tile would stay almost empty
_TILE = 32
_MOST_SHARED = 48 << 10  # bytes of a block, where nothing more is asked for


@shape
def one_thread_an_output(params: Params, rung: Rung) -> Launch:
    """Blocks of BLOCK threads, an output for each thread. If there are more outputs than the 2³¹ − 1 threads
    of a grid, a thread computes several (a grid-stride loop)."""
    return _strided(params, rung, params.outputs, {})


@shape
def one_thread_typed(params: Params, rung: Rung) -> Launch:
    """As one_thread_an_output; DTYPE: the number of the inputs' element type."""
    return _strided(params, rung, params.outputs, {"DTYPE": code("DTYPE", params.dtype)})


@shape
def one_thread_an_input(params: Params, rung: Rung) -> Launch:
    """As one_thread_typed, a thread for each element of the first input."""
    return _strided(params, rung, math.prod(params.input_shapes[0]), {"DTYPE": code("DTYPE", params.dtype)})


@shape
def one_thread_a_row(params: Cumulate, rung: Rung) -> Launch:
    """As one_thread_typed, a thread for each row: outer × inner of them."""
    return _strided(params, rung, params.outer * params.inner, {"DTYPE": code("DTYPE", params.dtype)})


@shape
def one_block_a_sequence(params: Recurrent, rung: Rung) -> Launch:
    """A block of BLOCK threads, in whole warps, for each sequence and direction; shared memory for four times
    its hidden elements."""
    shared = 4 * 4 * params.hidden
    if shared > _MOST_SHARED:
        raise KernelError(
            f"{rung.label}: {params.hidden} hidden elements take {shared:,} bytes of shared memory, and "
            f"{_MOST_SHARED:,} is what every device has"
        )
    block = define(rung, "BLOCK", 256)
    grid = params.directions * params.n
    return Launch((grid, 1, 1), (block, 1, 1), params.scalars(), shared_nbytes=shared)


@shape
def unary_quads(params: Unary, rung: Rung) -> Launch:
    """Blocks of BLOCK threads, four outputs for each thread, with the grid-stride loop of
    one_thread_an_output. KIND: number of the function."""
    return _strided(params, rung, ceil(params.size, 4), {"KIND": UNARY_KINDS.index(params.kind)})


@shape
def binary_quads(params: Binary, rung: Rung) -> Launch:
    """VECTOR outputs a thread, with the same loop: four where both operands can be read so. RANK: the axes
    after merging; STEP_A, STEP_B: what the operands walk along the last of them; KIND: the operation."""
    return _quads(params, rung, {"KIND": BINARY_KINDS.index(params.kind)})


@shape
def multiply_add_quads(params: MultiplyAdd, rung: Rung) -> Launch:
    """As binary_quads, with STEP_C for the third operand and no KIND."""
    return _quads(params, rung, {})


@shape
def quantize_quads(params: Quantize, rung: Rung) -> Launch:
    """Blocks of BLOCK threads, four neighbours of one channel a thread, with the same loop; FROM, TO: the
    types."""
    if params.channels > 1 and params.inner % 4:
        raise KernelError(
            f"{rung.label} takes four neighbours of one channel; {params} has channels of others"
        )
    defines: dict[str, Define] = {"FROM": code("DTYPE", params.dtype), "TO": code("DTYPE", params.to)}
    return _strided(params, rung, ceil(params.size, 4), defines)


@shape
def concat_chunks(params: Concat, rung: Rung) -> Launch:
    """A block of BLOCK threads copies a run of one input; each thread copies EACH pieces of UNIT bytes, the
    most that divide the rows of all inputs."""
    block, each, item = define(rung, "BLOCK"), define(rung, "EACH"), ITEMSIZE[params.dtype]
    unit = math.gcd(16, *(width * item for width in params.widths))
    units = [params.outer * width * item // unit for width in params.widths]
    defines: dict[str, Define] = {"UNIT": unit, "WIDE": _wide(max(units) + block * each)}
    grid = sum(ceil(count, block * each) for count in units)
    return Launch((grid, 1, 1), (block, 1, 1), params.scalars(), defines=defines)


@shape
def transpose_tiles(params: Transpose, rung: Rung) -> Launch:
    """A block of 256 threads copies a tile of 32×32 elements: of the last axis of y, and of the last axis of
    x, which is axis TURNED of y's six. TURNED is 5 where both are the same axis, or where either is too
    short; then each thread copies an element."""
    dims, source = params.walks()
    sizes, strides = [1] * (MAX_RANK - len(dims)) + dims, [0] * (MAX_RANK - len(dims)) + source
    turned = next((axis for axis in range(MAX_RANK) if strides[axis] == 1), MAX_RANK - 1)
    if min(sizes[turned], sizes[-1]) < _WORTH_TURNING:
        turned = MAX_RANK - 1
    defines: dict[str, Define] = {"TURNED": turned, "WIDE": _wide(params.outputs)}
    if turned == MAX_RANK - 1:
        return _strided(params, rung, params.outputs, defines)
    others = math.prod(sizes) // (sizes[turned] * sizes[-1])
    tiles = ceil(sizes[turned], _TILE) * ceil(sizes[-1], _TILE) * others
    return Launch((tiles, 1, 1), (256, 1, 1), params.scalars(), defines=defines)


# --- helpers ----------------------------------------------------------------------------------------------


def _strided(params: Params, rung: Rung, units: int, defines: dict[str, Define]) -> Launch:
    """Blocks of BLOCK threads, a unit of work a thread, several where the grid would be too long."""
    block = define(rung, "BLOCK", 256)
    grid = min(ceil(max(1, units), block), MAX_X // block)
    return Launch((grid, 1, 1), (block, 1, 1), params.scalars(), defines=defines)


def _quads(params: Broadcast, rung: Rung, more: dict[str, Define]) -> Launch:
    dims, walks = params.walks()
    steps = [walk[-1] if walk else 0 for walk in walks]
    # A row of an operand begins on 16 bytes where all its other strides are multiples of four elements.
    aligned = all(stride % 4 == 0 for walk in walks if walk and walk[-1] for stride in walk[:-1])
    even = len(dims) == 1 or (len(dims) > 1 and dims[-1] % 4 == 0)
    vector = 4 if even and aligned and set(steps) <= {0, 1} else 1
    defines: dict[str, Define] = {"RANK": max(1, len(dims)), "VECTOR": vector, "WIDE": _wide(params.size)}
    defines |= {f"STEP_{name}": step for name, step in zip("ABC", steps, strict=False)}
    return _strided(params, rung, ceil(params.size, vector), defines | more)


def _wide(total: int) -> int:
    """1 where there are more elements, those of a last block included, than 32 bits count; else 0."""
    return int(total > MAX_X - 4096)


_LEAST = 16  # a tile's side, for products
_VALUES = 256  # elements that a program of short rows takes, and a warp of a long one
_MOST_WARPS = 16


@shape
def softmax_programs(params: Softmax, rung: Rung) -> Launch:
    """A program computes ROWS whole rows, each padded to WIDTH: the least power of two that is not below the
    axis. WARPS as these two need."""
    width = 1 << (max(1, params.axis) - 1).bit_length()
    rows = max(1, _VALUES // width)
    warps = min(_MOST_WARPS, rows * width // _VALUES)
    defines = {"ROWS": rows, "WIDTH": width, "WARPS": warps}
    return _launch(params, (ceil(max(1, params.outer * params.inner), rows), 1, 1), warps, defines)


@shape
def gemm_programs(params: Gemm, rung: Rung) -> Launch:
    """A program computes a tile of TILE_M × TILE_N outputs, smaller where y is: tiles in grid.x, column
    first; matrices of a batch in grid.z. N, K, TRANS_A, TRANS_B, STRIDE_A, STRIDE_B are constants, from which
    the compiler knows what is contiguous."""
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
    """The side of a tile for so many elements."""
    return min(tile, max(_LEAST, 1 << (max(1, size) - 1).bit_length()))
