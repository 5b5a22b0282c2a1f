"""One tile of a matrix product in vector registers, written in LLVM's own language: compilers do not make it
of loops. kernels.cpu.simd says how it is called; `tile` of kernels.cpu.intrinsics what it does.

For each size of a tile there is a function: one loop adds products to all of its sums, what `start` holds
is added to them, and what comes after is done before they are written, once.

Long sums are blocked, for one that adds a term after the other loses digits with every term. PIECE products
are added up in a register, PIECES of such sums in the nearest cache, and these to the whole. So a sum of n
products is off by at most (PIECE + PIECES + n / (PIECE · PIECES) + 2) · 2⁻²⁴ of Σ|a·b|, where n · 2⁻²⁴ were
possible.
N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from kernels.cpu.simd import LANES, WIDTHS
from kernels.cpu.vectors import bounds, within

PIECE, PIECES = 64, 16  # the second a power of two
READ, NEAREST, DATA = 0, 3, 1  # of what LLVM fetches ahead

_i8 = ir.IntType(8)
_f32, _i64, _i32 = ir.FloatType(), ir.IntType(64), ir.IntType(32)
_pf32, _pi64 = _f32.as_pointer(), _i64.as_pointer()
_lanes = ir.VectorType(_f32, LANES)


def llvm_own(module: Any, name: str, result: Any, arguments: Sequence[Any]) -> Any:
    """One of LLVM's own functions."""
    name = f"llvm.{name}"
    if name not in module.globals:
        ir.Function(module, ir.FunctionType(result, arguments), name)
    return module.globals[name]


_TILE = [_pf32, _i64, _i64, _pf32, _pi64, _pi64, _i64, _pf32, _i64, _pi64, _pi64, _pf32, _i64, _i64, _pf32]


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
    (
        w, w_row, w_k, x, offsets, bases, depth, y, y_row, columns, lanes, start, start_row, after, soon,
    ) = function.args  # fmt: skip
    fma = llvm_own(module, f"fmuladd.v{LANES}f32", _lanes, [_lanes] * 3)
    prefetch = llvm_own(module, "prefetch.p0", ir.VoidType(), [_i8.as_pointer(), _i32, _i32, _i32])
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

    def block(name: str) -> Any:
        return function.append_basic_block(name)

    pairs = [(i, v) for i in range(rows) for v in range(vectors)]
    held = [ir.ArrayType(_lanes, len(pairs))] * 2
    partial, whole = (b.gep(b.alloca(kind), [_i32(0), _i32(0)]) for kind in held)
    from_x = [at(x, b.load(at(bases, _i64(v)))) for v in range(vectors)]
    # What the processor fetches by itself ends with each page, and a net's weights are in no cache of a
    # core's own.
    wanted = b.icmp_unsigned("!=", soon, w)
    from_w = [at(w, b.mul(w_row, _i64(i))) for i in range(rows)]
    entered, piece_begins, loop, piece_ends = b.block, block("piece"), block("loop"), block("piece_ends")
    b.branch(piece_begins)

    b.position_at_end(piece_begins)
    piece, low = b.phi(_i64), b.phi(_i64)
    piece.add_incoming(_i64(0), entered)
    low.add_incoming(_i64(0), entered)
    after_piece = b.add(low, _i64(PIECE))
    high = b.select(b.icmp_signed("<", after_piece, depth), after_piece, depth)
    of_whole = b.and_(piece, _i64(PIECES - 1))  # which of the pieces that are added up first
    ask, asked = block("ask"), block("asked")
    b.cbranch(wanted, ask, asked)
    b.position_at_end(ask)
    of_piece = at(soon, b.mul(low, _i64(rows)))
    for line in range(0, PIECE * rows, LANES):
        there = b.bitcast(at(of_piece, _i64(line)), _i8.as_pointer())
        b.call(prefetch, [there, *map(_i32, (READ, NEAREST, DATA))])
    b.branch(asked)
    b.position_at_end(asked)
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
    k.add_incoming(low, asked)
    k.add_incoming(following, loop)
    for total, value in zip(sums, added, strict=True):
        total.add_incoming(zero, asked)
        total.add_incoming(value, loop)
    b.cbranch(b.icmp_signed("<", following, high), loop, piece_ends)

    def kept(to: Any, values: list[Any]) -> None:
        for n, value in enumerate(values):
            b.store(value, at(to, _i64(n)))

    def joined(of: Any, values: list[Any]) -> list[Any]:
        return [b.fadd(b.load(at(of, _i64(n))), value) for n, value in enumerate(values)]

    def if_so(condition: Any, name: str, of: Any, values: list[Any]) -> list[Any]:
        """What is held of `of`, where the condition holds, and the values, added."""
        before, so, on = b.block, block(name), block(f"after_{name}")
        b.cbranch(condition, so, on)
        b.position_at_end(so)
        both = joined(of, values)
        b.branch(on)
        b.position_at_end(on)
        found = [b.phi(_lanes) for _ in values]
        for phi, one, other in zip(found, values, both, strict=True):
            phi.add_incoming(one, before)
            phi.add_incoming(other, so)
        return found

    done, goes_on, next_piece = block("done"), block("goes_on"), block("next_piece")
    keep, fold = block("keep"), block("fold")
    b.position_at_end(piece_ends)
    b.cbranch(b.icmp_signed("<", high, depth), goes_on, done)
    b.position_at_end(goes_on)
    so_far = if_so(b.icmp_signed("!=", of_whole, _i64(0)), "with_pieces", partial, added)
    b.cbranch(b.icmp_signed("==", of_whole, _i64(PIECES - 1)), fold, keep)
    b.position_at_end(keep)
    kept(partial, so_far)
    b.branch(next_piece)
    b.position_at_end(fold)
    first_whole = b.icmp_signed("==", piece, _i64(PIECES - 1))
    kept(whole, if_so(b.not_(first_whole), "with_whole", whole, so_far))
    b.branch(next_piece)
    b.position_at_end(next_piece)
    piece.add_incoming(b.add(piece, _i64(1)), next_piece)
    low.add_incoming(high, next_piece)
    b.branch(piece_begins)

    b.position_at_end(done)
    total = if_so(b.icmp_signed("!=", of_whole, _i64(0)), "last_pieces", partial, added)
    total = if_so(b.icmp_signed(">=", piece, _i64(PIECES)), "last_whole", whole, total)
    by_row, by_lane, out = block("by_row"), block("by_lane"), block("out")
    b.cbranch(b.icmp_signed(">=", start_row, _i64(0)), by_lane, by_row)
    b.position_at_end(by_row)
    values = [spread(b.load(at(start, _i64(i)))) for i in range(rows)]
    first = [b.fadd(values[i], value) for (i, _), value in zip(pairs, total, strict=True)]
    b.branch(out)
    b.position_at_end(by_lane)
    begin = [at(start, b.mul(start_row, _i64(i))) for i in range(rows)]
    second = [
        b.fadd(read(at(begin[i], _i64(v * LANES))), value) for (i, v), value in zip(pairs, total, strict=True)
    ]
    b.branch(out)
    b.position_at_end(out)
    results = [b.phi(_lanes) for _ in pairs]
    for phi, one, other in zip(results, first, second, strict=True):
        phi.add_incoming(one, by_row)
        phi.add_incoming(other, by_lane)

    mask_type = ir.VectorType(ir.IntType(1), LANES)
    kinds = [_lanes, _lanes.as_pointer(), _i32, mask_type]
    stored = llvm_own(module, f"masked.store.v{LANES}f32.p0", ir.VoidType(), kinds)
    numbers = ir.VectorType(_i32, LANES)
    count_up = ir.Constant(numbers, list(range(LANES)))
    none = ir.Constant(numbers, [0] * LANES)
    between = bounds(b, after)
    for v in range(vectors):
        held = b.trunc(b.load(at(lanes, _i64(v))), _i32)
        held = b.insert_element(ir.Constant(numbers, ir.Undefined), held, _i32(0))
        mask = b.icmp_signed("<", count_up, b.shuffle_vector(held, held, none))
        to = at(y, b.load(at(columns, _i64(v))))
        for i in range(rows):
            value = within(b, results[i * vectors + v], between)
            goal = b.bitcast(at(to, b.mul(y_row, _i64(i))), _lanes.as_pointer())
            b.call(stored, [value, goal, _i32(4), mask])
    b.ret_void()
    return function
