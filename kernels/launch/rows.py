"""The launch shapes of operators that reduce rows, such as softmax and attention."""

from __future__ import annotations

from dataclasses import replace

from kernels.errors import KernelError
from kernels.header import Define
from kernels.launch.core import MAX_X, Launch, define, shape
from kernels.layouts import PLAIN, chunk
from kernels.occupancy import ceil
from kernels.ops import code
from kernels.ops.attention import Attention
from kernels.ops.normalize import Normalize
from kernels.ops.reduce import Reduce
from kernels.ops.softmax import Softmax
from kernels.precision import narrow
from kernels.registry import Rung

_MOST_VALUES = 16  # of a row in the registers of a thread
_FEW_VALUES = 4
_MOST_OF_ROW = 32  # values: no more are added up one after the other (sums.cuh)
_SECTOR = 8  # float32 elements: the least that memory gives at once
_WARP, _BLOCK = 32, 1024
_THREADS = 128  # of a block whose rows are short
_TILE, _SIDE = 64, 16  # attention: queries of a block, threads along a side of it
_WIDEST_TENSOR = 128  # elements of a key or value on the tensor cores
_QUERIES, _KEYS = 16, 32  # of a warp at a time, where warps divide the keys
_NARROW = 64  # elements of a key and value, of which a block has room for more warps
_BUSY = 1600  # warps: twelve for each of an H100's 132 multiprocessors
_WIDEST = 16  # elements of the answer that such a thread has of each of its queries


@shape
def softmax_rows(params: Softmax, rung: Rung) -> Launch:
    """Blocks of BLOCK threads, a thread for each row (outer × inner of them); a thread does several rows
    where the grid would be too large."""
    return _lanes(params, rung, 1, {})


@shape
def one_warp_a_row(params: Softmax, rung: Rung) -> Launch:
    """As softmax_rows, a warp a row."""
    return _lanes(params, rung, _WARP, {})


@shape
def softmax_lanes(params: Softmax, rung: Rung) -> Launch:
    """Blocks of BLOCK threads; LANES lanes of a warp for each row: as many as the row has elements, at most
    32. VALUES: elements of a lane."""
    lanes = min(_WARP, _power_of_two(params.axis))
    defines: dict[str, Define] = {"LANES": lanes, "VALUES": ceil(params.axis, lanes)}
    block = define(rung, "BLOCK", 256)
    grid = ceil(params.outer * params.inner * lanes, block)
    return Launch((grid, 1, 1), (block, 1, 1), params.scalars(), defines=defines)


@shape
def softmax_fitted(params: Softmax, rung: Rung) -> Launch:
    """A block does ROWS rows, with LANES threads for each row and VALUES elements for each thread. ACROSS:
    neighbouring threads have neighbouring rows, which are contiguous where there is an inner axis."""
    lanes = min(_BLOCK, _power_of_two(ceil(params.axis, _FEW_VALUES)))
    rows, across = max(1, 128 // lanes), 0
    if params.inner >= _SECTOR:
        beside = min(_WARP, _power_of_two(params.inner))
        while beside > _SECTOR and ceil(params.axis, _BLOCK // beside) > _MOST_VALUES:
            beside //= 2
        fitting = min(_BLOCK // beside, max(lanes, _WARP // beside))
        if ceil(params.axis, fitting) <= _MOST_VALUES:
            lanes, rows, across = fitting, beside, 1
    defines: dict[str, Define] = {"LANES": lanes, "ROWS": rows, "ACROSS": across}
    defines["VALUES"] = ceil(params.axis, lanes)
    grid = ceil(params.outer * params.inner, rows)
    return Launch((grid, 1, 1), (lanes * rows, 1, 1), params.scalars(), defines=defines)


@shape
def reduce_fitted(params: Reduce, rung: Rung) -> Launch:
    """A block does ROWS rows with LANES threads each, as in softmax_fitted, but a thread may have any number
    of elements. KIND: what is compiled in."""
    lanes, rows, across = _fitted(params.axis, params.inner)
    defines: dict[str, Define] = {"LANES": lanes, "ROWS": rows, "ACROSS": across}
    defines["KIND"] = code("REDUCE", params.kind)
    grid = ceil(params.outer * params.inner, rows)
    return Launch((grid, 1, 1), (lanes * rows, 1, 1), params.scalars(), defines=defines)


@shape
def normalize_rows(params: Normalize, rung: Rung) -> Launch:
    """As reduce_fitted, with contiguous rows."""
    lanes, rows, across = _fitted(params.length, 1)
    defines: dict[str, Define] = {"LANES": lanes, "ROWS": rows, "ACROSS": across}
    return Launch((ceil(params.count, rows), 1, 1), (lanes * rows, 1, 1), params.scalars(), defines=defines)


@shape
def normalize_fitted(params: Normalize, rung: Rung) -> Launch:
    """As normalize_rows, with VALUES elements of a row in the registers of a thread, in fours that lie side
    by side where all rows begin at 16 bytes (ALIGNED). Raises KernelError for rows too long for that."""
    aligned = params.length % 4 == 0
    together = 4 if aligned else 1
    lanes = min(_BLOCK, _power_of_two(ceil(params.length, 2 * _FEW_VALUES)))
    values = together * ceil(ceil(params.length, together), lanes)
    if values > _MOST_OF_ROW:
        raise KernelError(
            f"{rung.label} takes rows of up to {_MOST_OF_ROW * _BLOCK} elements, "
            f"and these have {params.length}"
        )
    rows = max(1, _THREADS // lanes)
    defines: dict[str, Define] = {"LANES": lanes, "ROWS": rows, "ACROSS": 0, "VALUES": values}
    defines |= {"ALIGNED": int(aligned), **_layouts(rung)}
    laid = rung.written_layout
    if laid != PLAIN and (params.gives != "all" or params.length % max(4, chunk(laid))):
        raise KernelError(f"{rung.label} writes {laid} in rows of whole chunks alone")
    return Launch((ceil(params.count, rows), 1, 1), (lanes * rows, 1, 1), params.scalars(), defines=defines)


@shape
def attention_queries(params: Attention, rung: Rung) -> Launch:
    """A block of BLOCK threads for each query of a head."""
    blocks = params.batch * params.heads * params.queries
    return Launch((blocks, 1, 1), (define(rung, "BLOCK"), 1, 1), params.scalars())


@shape
def attention_tiles(params: Attention, rung: Rung) -> Launch:
    """A block of 256 threads for 64 queries of a head. ACROSS: elements of the answer for each thread, of
    each of four queries. Raises KernelError where values have more elements than registers suffice for."""
    across = ceil(params.depth_v, _SIDE)
    if across > _WIDEST:
        raise KernelError(
            f"{rung.label} takes values of up to {_WIDEST * _SIDE} elements, and these have {params.depth_v}"
        )
    blocks = params.batch * params.heads * ceil(params.queries, _TILE)
    return Launch((blocks, 1, 1), (_SIDE**2, 1, 1), params.scalars(), defines={"ACROSS": across})


@shape
def attention_tensor(params: Attention, rung: Rung) -> Launch:
    """A block of four warps for 64 queries of a head. DEPTH, DEPTH_V: elements of keys and values, padded;
    KEYS: keys in shared memory at a time. Raises KernelError for more elements than registers suffice for."""
    widest = max(params.depth, params.depth_v)
    if widest > _WIDEST_TENSOR:
        raise KernelError(
            f"{rung.label} takes up to {_WIDEST_TENSOR} elements a key and value, and these have {widest}"
        )
    keys = 64 if narrow(rung.precision) or widest <= 64 else 32
    defines: dict[str, Define] = {
        "DEPTH": 16 * ceil(params.depth, 16),
        "DEPTH_V": 8 * ceil(params.depth_v, 8),
    }
    blocks = params.batch * params.heads * ceil(params.queries, _TILE)
    return Launch((blocks, 1, 1), (_TILE * 2, 1, 1), params.scalars(), defines={**defines, "KEYS": keys})


@shape
def attention_by_warp(params: Attention, rung: Rung) -> Launch:
    """A block of WARPS warps for 16 queries of a head, or twice or four times as many where there are enough
    of them to keep a large device busy; SHARES warps divide the keys of the same queries. DEPTH, DEPTH_V:
    elements of keys and values, padded; ALIGNED: whether all rows begin at 16 bytes. Raises KernelError for
    more elements than registers suffice for."""
    # By the shared memory where shares meet.
    how = _by_warp(params, rung, 4, 8 if params.depth_v <= _NARROW else 4)
    _check_layouts(params, rung, 4)
    return replace(how, defines={**how.defines, **_layouts(rung)})


@shape
def attention_by_warp_in_shared(params: Attention, rung: Rung) -> Launch:
    """As attention_by_warp; each warp has a tile of keys or values, and its weights, in shared memory, and
    the warps of the same queries have these there together."""
    warps = 4 if max(params.depth, params.depth_v) <= _NARROW else 2  # of 64 KiB, as the oldest devices have
    how = _by_warp(params, rung, warps, warps)
    line = int(how.defines["DEPTH"]) + 4
    of_warp = _KEYS * (max(line, int(how.defines["DEPTH_V"])) + _QUERIES + 4)
    shared = 4 * (warps * of_warp + warps // int(how.defines["SHARES"]) * _QUERIES * line)
    return replace(how, shared_nbytes=shared)


@shape
def attention_ahead(params: Attention, rung: Rung) -> Launch:
    """A block of four warps for 64 queries of a head; two tiles of 32 keys and values in shared memory, rows
    of them PITCH_K and PITCH_V elements apart. DEPTH, DEPTH_V: elements, padded. Raises KernelError for more
    elements than registers suffice for, and for rows that do not lie in whole 16 bytes."""
    halves = rung.read_layout != PLAIN
    each = 8 if halves else 4  # elements of 16 bytes
    if params.depth % each or params.depth_v % each:
        raise KernelError(f"{rung.label} takes keys and values of whole {each} elements")
    _check_layouts(params, rung, each)
    defines = dict(_by_warp(params, rung, 4, 1).defines)
    del defines["WARPS"], defines["SHARES"], defines["ALIGNED"]
    depth, depth_v = int(defines["DEPTH"]), int(defines["DEPTH_V"])
    # By the banks: of keys a quarter of a warp reads 64 bytes of two rows, or half of one 32 bytes of four;
    # of values it reads every other row, 32 bytes of each.
    whole = 64 if halves else 32
    defines["PITCH_K"] = depth + (16 - depth) % whole
    defines["PITCH_V"] = depth_v + each
    shared = 2 * _KEYS * (int(defines["PITCH_K"]) + int(defines["PITCH_V"])) * (2 if halves else 4)
    blocks = params.batch * params.heads * ceil(params.queries, _TILE)
    return Launch(
        (blocks, 1, 1),
        (4 * _WARP, 1, 1),
        params.scalars(),
        shared_nbytes=shared,
        defines={**defines, **_layouts(rung)},
    )


def _check_layouts(params: Attention, rung: Rung, each: int) -> None:
    """Raises KernelError where the inputs or the output cannot lie as the rung is to read and write them.
    each: elements that are read at once."""
    aligned = params.depth % each == 0 and params.depth_v % each == 0
    if rung.read_layout != PLAIN and not (params.packed and aligned):
        raise KernelError(
            f"{rung.label} reads {rung.read_layout} in packed rows of whole {each} elements alone"
        )
    eights = params.swapped[3] and params.heads * params.depth_v % 8 == 0
    if rung.written_layout != PLAIN and not (eights and aligned):
        raise KernelError(f"{rung.label} writes {rung.written_layout} in rows of whole eights alone")


def _by_warp(params: Attention, rung: Rung, least: int, most: int) -> Launch:
    """least, most: warps of a block and shares of the keys."""
    widest = max(params.depth, params.depth_v)
    if widest > _WIDEST_TENSOR:
        raise KernelError(
            f"{rung.label} takes up to {_WIDEST_TENSOR} elements a key and value, and these have {widest}"
        )
    tiles = params.batch * params.heads * ceil(params.queries, _QUERIES)
    shares = 1
    while shares < min(most, ceil(params.keys, _KEYS)) and shares * tiles < _BUSY:
        shares *= 2
    warps = max(least, shares)
    defines: dict[str, Define] = {
        "DEPTH": 16 * ceil(params.depth, 16),
        "DEPTH_V": 32 * ceil(params.depth_v, 32),
        "WARPS": warps,
        "SHARES": shares,
        "ALIGNED": int(params.depth % 4 == 0 and params.depth_v % 4 == 0),
    }
    blocks = params.batch * params.heads * ceil(params.queries, _QUERIES * (warps // shares))
    return Launch((blocks, 1, 1), (_WARP * warps, 1, 1), params.scalars(), defines=defines)


def _layouts(rung: Rung) -> dict[str, Define]:
    return {name: rung.defines[name] for name in ("READS", "WRITES") if name in rung.defines}


def _fitted(axis: int, inner: int) -> tuple[int, int, int]:
    """Threads of a row, rows of a block, and whether neighbouring threads have neighbouring rows."""
    lanes = min(_BLOCK, _power_of_two(ceil(axis, _FEW_VALUES)))
    if inner < _SECTOR:
        return lanes, max(1, _THREADS // lanes), 0
    beside = min(_WARP, _power_of_two(inner))
    lanes = min(_BLOCK // beside, lanes)
    return lanes, max(beside, _THREADS // lanes), 1


def _lanes(params: Softmax, rung: Rung, lanes: int, defines: dict[str, Define]) -> Launch:
    block = define(rung, "BLOCK", 256)
    grid = min(ceil(max(1, params.outer * params.inner), block // lanes), MAX_X // block)
    return Launch((grid, 1, 1), (block, 1, 1), params.scalars(), defines=defines)


def _power_of_two(count: int) -> int:
    """The least power of two that is not below `count`."""
    return 1 << (max(1, count) - 1).bit_length()
