"""One tile of a matrix product in vector registers, written in LLVM's own language: compilers do not make it
of loops. kernels.cpu.simd says how it is called; `tile` of kernels.cpu.intrinsics what it does.

For each size of a tile there is a function: its sums begin with what `start` holds, one loop adds products to
all of them, and what comes after is done before they are written, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from kernels.cpu.simd import LANES, RELU, RELU6, WIDTHS

_f32, _i64, _i32 = ir.FloatType(), ir.IntType(64), ir.IntType(32)
_pf32, _pi64 = _f32.as_pointer(), _i64.as_pointer()
_lanes = ir.VectorType(_f32, LANES)


def llvm_own(module: Any, name: str, result: Any, arguments: Sequence[Any]) -> Any:
    """One of LLVM's own functions."""
    name = f"llvm.{name}"
    if name not in module.globals:
        ir.Function(module, ir.FunctionType(result, arguments), name)
    return module.globals[name]


_TILE = [_pf32, _i64, _i64, _pf32, _pi64, _pi64, _i64, _pf32, _i64, _pi64, _pi64, _pf32, _i64, _i64]


def compiled(entry: str, machine: Any) -> bytes:
    """The object file of a function of all sizes of tiles, which calls the one asked for."""
    module = ir.Module()
    module.triple = llvm.get_process_triple()
    _dispatcher(module, entry)
    parsed = llvm.parse_assembly(str(module))
    return bytes(machine.emit_object(parsed))


def _dispatcher(module: Any, name: str) -> Any:
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_i64, _i64, *_TILE]), name)
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
    fma = llvm_own(module, f"fmuladd.v{LANES}f32", _lanes, [_lanes] * 3)
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
        added += [b.call(fma, [weight, seen[v], sums[i * vectors + v]]) for v in range(vectors)]
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
    stored = llvm_own(module, f"masked.store.v{LANES}f32.p0", ir.VoidType(), kinds)
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
