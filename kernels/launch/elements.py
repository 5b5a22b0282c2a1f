"""The launch shapes of operators that compute each output on its own, and of operators that move elements."""

from __future__ import annotations

import math

from kernels.errors import KernelError
from kernels.header import Define
from kernels.launch.core import MAX_X, Launch, define, shape
from kernels.occupancy import ceil
from kernels.ops import ITEMSIZE, MAX_RANK, Params, code
from kernels.ops._axes import Broadcast
from kernels.ops.binary import BINARY_KINDS, Binary
from kernels.ops.concat import Concat
from kernels.ops.cumulate import Cumulate
from kernels.ops.multiply_add import MultiplyAdd
from kernels.ops.recurrent import Recurrent
from kernels.ops.transpose import Transpose
from kernels.ops.unary import UNARY_KINDS, Unary
from kernels.registry import Rung

_WORTH_TURNING = 8  # elements along both axes below which a tile would stay almost empty
_TILE = 32
_MOST_SHARED = 48 << 10  # bytes of a block, where nothing more is asked for


@shape
def one_thread_an_output(params: Params, rung: Rung) -> Launch:
    """Blocks of BLOCK threads, an output a thread; where the outputs are more than a grid of 2³¹ − 1 threads,
    a thread takes several (a grid-stride loop)."""
    return _strided(params, rung, params.outputs, {})


@shape
def one_thread_typed(params: Params, rung: Rung) -> Launch:
    """As one_thread_an_output; DTYPE: the number of the inputs' element type."""
    return _strided(params, rung, params.outputs, {"DTYPE": code("DTYPE", params.dtype)})


@shape
def one_thread_an_input(params: Params, rung: Rung) -> Launch:
    """As one_thread_typed, an element of the first input a thread."""
    return _strided(params, rung, math.prod(params.input_shapes[0]), {"DTYPE": code("DTYPE", params.dtype)})


@shape
def one_thread_a_row(params: Cumulate, rung: Rung) -> Launch:
    """As one_thread_typed, a row a thread: outer × inner of them."""
    return _strided(params, rung, params.outer * params.inner, {"DTYPE": code("DTYPE", params.dtype)})


@shape
def one_block_a_sequence(params: Recurrent, rung: Rung) -> Launch:
    """A block of BLOCK threads, whole warps, a sequence and direction; four times its hidden elements in
    shared memory."""
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
    """Blocks of BLOCK threads, four outputs a thread, with the grid-stride loop of one_thread_an_output.
    KIND: the function's number."""
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
def concat_chunks(params: Concat, rung: Rung) -> Launch:
    """A block of BLOCK threads a run of one input, EACH of them so many times UNIT bytes: the most that
    divide its rows and those of all others."""
    block, each, item = define(rung, "BLOCK"), define(rung, "EACH"), ITEMSIZE[params.dtype]
    unit = math.gcd(16, *(width * item for width in params.widths))
    units = [params.outer * width * item // unit for width in params.widths]
    defines: dict[str, Define] = {"UNIT": unit, "WIDE": _wide(max(units) + block * each)}
    grid = sum(ceil(count, block * each) for count in units)
    return Launch((grid, 1, 1), (block, 1, 1), params.scalars(), defines=defines)


@shape
def transpose_tiles(params: Transpose, rung: Rung) -> Launch:
    """A block of 256 threads a tile of 32×32 elements of the last axis of y and that of x, which is axis
    TURNED of y's six; 5 where it is the same axis, or either is too short: then an element a thread."""
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
    """1 where elements, and those of a last block beyond them, are more than 32 bits count."""
    return int(total > MAX_X - 4096)
