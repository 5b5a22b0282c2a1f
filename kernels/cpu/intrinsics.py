"""The functions of kernels.cpu.simd, as Numba and LLVM know them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kernels.cpu.simd import LANES, RELU, RELU6, WIDTHS

FLOATS, INTEGERS = types.CPointer(types.float32), types.CPointer(types.int64)
STEP = types.void(INTEGERS, types.int64, types.int64, FLOATS)
"""What a compiled function is: step(a, low, high, scratch)."""

_f32, _i64, _i32 = ir.FloatType(), ir.IntType(64), ir.IntType(32)
_pf32, _pi64 = _f32.as_pointer(), _i64.as_pointer()
_lanes = ir.VectorType(_f32, LANES)


def _pointer(kind: Any) -> Any:
    def typed(typing: Any, address: Any) -> Any:
        def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(kind))

        return kind(types.int64), made

    return intrinsic(typed)


floats, integers = _pointer(FLOATS), _pointer(INTEGERS)


@intrinsic
def shifted(typing: Any, pointer: Any, count: Any) -> Any:
    """pointer + count elements."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.int64), made


def _cast(of: Any, to: Any) -> Any:
    def typed(typing: Any, value: Any) -> Any:
        def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(to))

        return to(of), made

    return intrinsic(typed)


number = _cast(types.int64, types.float64)
bits, from_bits = _cast(types.float32, types.int32), _cast(types.int32, types.float32)


def _llvm(module: Any, name: str, result: Any, arguments: Sequence[Any]) -> Any:
    """One of LLVM's own functions."""
    name = f"llvm.{name}"
    if name not in module.globals:
        ir.Function(module, ir.FunctionType(result, arguments), name)
    return module.globals[name]


# --- threads ---


@intrinsic
def load(typing: Any, pointer: Any) -> Any:
    """What all threads see there; nothing that follows is done before."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(arguments[0], "acquire", 8)

    return types.int64(INTEGERS), made


@intrinsic
def store(typing: Any, pointer: Any, value: Any) -> Any:
    """Let all threads see it; all that went before is seen by then."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], arguments[0], "seq_cst", 8)

    return types.void(INTEGERS, types.int64), made


@intrinsic
def add(typing: Any, pointer: Any, value: Any) -> Any:
    """What was there before the value was added."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", arguments[0], arguments[1], "seq_cst")

    return types.int64(INTEGERS, types.int64), made


@intrinsic
def swap(typing: Any, pointer: Any, old: Any, new: Any) -> Any:
    """Whether `old` was there, and `new` is in its place now."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = builder.cmpxchg(*arguments, "seq_cst", "seq_cst")
        return builder.zext(builder.extract_value(found, 1), _i64)

    return types.int64(INTEGERS, types.int64, types.int64), made


@intrinsic
def cycles(typing: Any) -> Any:
    """A counter that goes up with time, by nobody knows how much."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.call(_llvm(builder.module, "readcyclecounter", _i64, []), [])

    return types.int64(), made


@intrinsic
def pause(typing: Any) -> Any:
    """What a thread does while it waits for another of the same core."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if llvm.get_process_triple().startswith(("x86_64", "i686")):
            builder.call(_llvm(builder.module, "x86.sse2.pause", ir.VoidType(), []), [])

    return types.void(), made


@intrinsic
def invoke(typing: Any, address: Any, a: Any, low: Any, high: Any, scratch: Any) -> Any:
    """Another compiled function."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_pi64, _i64, _i64, _pf32])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return types.void(types.int64, INTEGERS, types.int64, types.int64, FLOATS), made


# --- a tile of a product ---


@intrinsic
def tile(
    typing: Any, rows: Any, vectors: Any, w: Any, w_row: Any, w_k: Any, x: Any, offsets: Any, bases: Any,
    depth: Any, y: Any, y_row: Any, columns: Any, lanes: Any, start: Any, start_row: Any, after: Any,
) -> Any:  # fmt: skip
    """y[i · y_row + columns[v] + lane] = after(start + Σ_k w[i · w_row + k · w_k] · x[bases[v] + offsets[k] +
    lane]) for i below `rows` and v below `vectors` (one of WIDTHS[rows]), of vector v the first lanes[v].

    start: a value a row, start[i], where start_row is below 0; else start[i · start_row + v · LANES + lane].
    """

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.call(_dispatcher(builder.module), arguments)

    whole, real = types.int64, FLOATS
    return types.void(
        whole, whole, real, whole, whole, real, INTEGERS, INTEGERS, whole, real, whole, INTEGERS, INTEGERS, real,
        whole, whole,
    ), made  # fmt: skip


_TILE = [_pf32, _i64, _i64, _pf32, _pi64, _pi64, _i64, _pf32, _i64, _pi64, _pi64, _pf32, _i64, _i64]


def _dispatcher(module: Any) -> Any:
    """A function of all sizes of tiles, which calls the one asked for."""
    name = "kernelscope_tile"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_i64, _i64, *_TILE]), name)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    rows, vectors, *rest = function.args
    end = function.append_basic_block("end")
    chosen = builder.switch(builder.add(builder.mul(rows, _i64(16)), vectors), end)
    for i, widths in WIDTHS.items():
        for v in widths:
            block = function.append_basic_block(f"of_{i}_{v}")
            chosen.add_case(_i64(16 * i + v), block)
            builder.position_at_end(block)
            builder.call(_tile(module, i, v), rest)
            builder.branch(end)
    builder.position_at_end(end)
    builder.ret_void()
    return function


def _tile(module: Any, rows: int, vectors: int) -> Any:
    function = ir.Function(
        module, ir.FunctionType(ir.VoidType(), _TILE), f"kernelscope_tile_{rows}_{vectors}"
    )
    function.linkage = "internal"
    function.attributes.add("noinline")
    w, w_row, w_k, x, offsets, bases, depth, y, y_row, columns, lanes, start, start_row, after = function.args
    fma = _llvm(module, f"fmuladd.v{LANES}f32", _lanes, [_lanes] * 3)
    zero = ir.Constant(_lanes, [0.0] * LANES)
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def at(pointer: Any, *counts: Any) -> Any:
        for count in counts:
            pointer = b.gep(pointer, [count])
        return pointer

    def spread(value: Any) -> Any:
        one = b.insert_element(ir.Constant(_lanes, ir.Undefined), value, _i32(0))
        return b.shuffle_vector(one, one, ir.Constant(ir.VectorType(_i32, LANES), [0] * LANES))

    def read(pointer: Any) -> Any:
        return b.load(b.bitcast(pointer, _lanes.as_pointer()), align=4)

    pairs = [(i, v) for i in range(rows) for v in range(vectors)]
    from_x = [at(x, b.load(at(bases, _i64(v)))) for v in range(vectors)]
    from_w = [at(w, b.mul(w_row, _i64(i))) for i in range(rows)]
    by_row, by_lane, loop, done = map(function.append_basic_block, ("by_row", "by_lane", "loop", "done"))
    b.cbranch(b.icmp_signed(">=", start_row, _i64(0)), by_lane, by_row)
    b.position_at_end(by_row)
    values = [spread(b.load(at(start, _i64(i)))) for i in range(rows)]
    first = [[values[i] for i, _ in pairs]]
    b.branch(loop)
    b.position_at_end(by_lane)
    begin = [at(start, b.mul(start_row, _i64(i))) for i in range(rows)]
    first.append([read(at(begin[i], _i64(v * LANES))) for i, v in pairs])
    b.branch(loop)

    b.position_at_end(loop)
    k = b.phi(_i64)
    sums = [b.phi(_lanes) for _ in pairs]
    offset = b.load(at(offsets, k))
    seen = [read(at(base, offset)) for base in from_x]
    place = b.mul(k, w_k)
    added = []
    for i in range(rows):
        weight = spread(b.load(at(from_w[i], place)))
        for v in range(vectors):
            added.append(b.call(fma, [weight, seen[v], sums[i * vectors + v]]))
    following = b.add(k, _i64(1))
    for block, begun in zip((by_row, by_lane), first, strict=True):
        k.add_incoming(_i64(0), block)
        for total, value in zip(sums, begun, strict=True):
            total.add_incoming(value, block)
    k.add_incoming(following, loop)
    for total, value in zip(sums, added, strict=True):
        total.add_incoming(value, loop)
    b.cbranch(b.icmp_signed("<", following, depth), loop, done)

    b.position_at_end(done)
    mask_type = ir.VectorType(ir.IntType(1), LANES)
    kinds = [_lanes, _lanes.as_pointer(), _i32, mask_type]
    stored = _llvm(module, f"masked.store.v{LANES}f32.p0", ir.VoidType(), kinds)
    numbers = ir.VectorType(_i32, LANES)
    count_up = ir.Constant(numbers, list(range(LANES)))
    none = ir.Constant(numbers, [0] * LANES)
    relu = b.icmp_signed(">=", after, _i64(RELU))
    relu6 = b.icmp_signed("==", after, _i64(RELU6))
    six = ir.Constant(_lanes, [6.0] * LANES)
    for v in range(vectors):
        held = b.trunc(b.load(at(lanes, _i64(v))), _i32)
        held = b.insert_element(ir.Constant(numbers, ir.Undefined), held, _i32(0))
        mask = b.icmp_signed("<", count_up, b.shuffle_vector(held, held, none))
        to = at(y, b.load(at(columns, _i64(v))))
        for i in range(rows):
            value = added[i * vectors + v]
            # so that NaN stays what it is
            value = b.select(relu, b.select(b.fcmp_ordered("<", value, zero), zero, value), value)
            value = b.select(relu6, b.select(b.fcmp_ordered(">", value, six), six, value), value)
            goal = b.bitcast(at(to, b.mul(y_row, _i64(i))), _lanes.as_pointer())
            b.call(stored, [value, goal, _i32(4), mask])
    b.ret_void()
    return function
