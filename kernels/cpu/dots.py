"""Tiles of a product of eight-bit numbers in vector registers, written in LLVM's own language: compilers do
not make them of loops. `dots_by_row` of kernels.cpu.intrinsics says what a tile does.

Four numbers along the sum lie in a word. Where the processor can (VNNI), one instruction multiplies 16 words
of unsigned numbers with 16 of signed ones and adds the four products of each to a sum in 32 bits; elsewhere
this is written in pairs of 16 bits, which hold such products whole. Sums are exact in both.

Behind the sum comes what kernels.ops._quantized defines, in double precision. A number of eight bits is first
worked out in float32, whose error is known: only where that lies too near half-way between two steps is it
worked out again in double precision, for only there could another number come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from kernels.cpu.quantized import BYTES, FLOAT32, INT32
from kernels.cpu.simd import DOT_ROWS, DOT_VECTORS, LANES
from kernels.cpu.tiles import llvm_own
from kernels.cpu.vectors import (
    bytes_,
    f32,
    f64,
    filled,
    floats,
    i8,
    i16,
    i32,
    i64,
    internal,
    mask_,
    read,
    reals,
    splat,
    void,
    words,
)  # fmt: skip

NEAR = 2.0**-21
OUT_SCALE, RECIPROCAL, OUT_ZERO, LOW, HIGH = range(5)  # places of the numbers behind it

_pi8, _pi32, _pi64, _pf64 = (kind.as_pointer() for kind in (i8, i32, i64, f64))

# rows, vectors, then: spread, its row or where vectors of `across` lie along the sum, across, quads; then y,
# its row, left, to, numbers; correction, bias, scale, shift, zero; sums of x, whether zeros count, whether
# there is a shift, whether a sum and its bias together stay within 32 bits.
_BEHIND = [
    _pi8, i64, i64, i64, _pf64, _pi32, _pi32, _pf64, _pf64, _pi32, _pi32, i64, i64, i64,
]  # fmt: skip


def _arguments(by_row: bool) -> list[Any]:
    return [_pi32, _pi64 if by_row else i64, _pi32, i64, *_BEHIND]


SIZES = tuple((rows, v) for rows in DOT_ROWS for v in range(1, DOT_VECTORS[rows] + 1))


def dispatcher(module: Any, by_row: bool, sizes: Sequence[tuple[int, int]] = SIZES) -> Any:
    """The function of these sizes of tiles, rows and vectors, in this module. by_row: a row is a channel, and
    `spread` are weights, signed; else a lane is one, and `across` are."""
    name = f"kernelscope_dots_{'rows' if by_row else 'lanes'}_{len(sizes)}"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, [i64, i64, *_arguments(by_row)])
    b = ir.IRBuilder(function.append_basic_block("entry"))
    rows, vectors, *rest = function.args
    end = function.append_basic_block("end")
    chosen = b.switch(b.add(b.mul(rows, i64(16)), vectors), end)
    finish = _finish(module, f"{name}_finish", by_row)
    for i, v in sizes:
        block = function.append_basic_block(f"of_{i}_{v}")
        chosen.add_case(i64(16 * i + v), block)
        b.position_at_end(block)
        b.call(_tile(module, f"{name}_{i}_{v}", i, v, by_row, finish), rest)
        b.branch(end)
    b.position_at_end(end)
    b.ret_void()
    return function


def features() -> dict[str, bool]:
    """What this processor has."""
    return dict(llvm.get_host_cpu_features())


def _dot(module: Any, b: Any, sums: Any, unsigned: Any, signed: Any) -> Any:
    """sums + the four products of each word."""
    has = features()
    if has.get("avx512vnni"):
        kinds = [words] * 3
        return b.call(llvm_own(module, "x86.avx512.vpdpbusd.512", words, kinds), [sums, unsigned, signed])
    shorts = ir.VectorType(i16, 2 * LANES)
    eight, low = (ir.Constant(shorts, [value] * 2 * LANES) for value in (8, 255))
    u, s = b.bitcast(unsigned, shorts), b.bitcast(signed, shorts)
    for one, other in (
        (b.and_(u, low), b.ashr(b.shl(s, eight), eight)),
        (b.lshr(u, eight), b.ashr(s, eight)),
    ):
        for first in (0, 1):
            places = ir.Constant(words, list(range(first, 2 * LANES, 2)))
            left, right = (b.sext(b.shuffle_vector(each, each, places), words) for each in (one, other))
            sums = b.add(sums, b.mul(left, right))
    return sums


def _tile(module: Any, name: str, rows: int, vectors: int, by_row: bool, finish: Any) -> Any:
    function = internal(module, name, _arguments(by_row))
    spread, along, across, quads, *behind = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    pairs = [(i, v) for i in range(rows) for v in range(vectors)]
    kept = b.gep(b.alloca(ir.ArrayType(words, len(pairs))), [i32(0), i32(0)])
    entered, loop, done = b.block, b.append_basic_block("loop"), b.append_basic_block("done")
    if not by_row:
        panel = b.mul(quads, i64(LANES))
        panels = [b.gep(across, [b.mul(panel, i64(v))]) for v in range(vectors)]
        from_rows = [b.gep(spread, [b.mul(along, i64(i))]) for i in range(rows)]
    b.branch(loop)
    b.position_at_end(loop)
    k = b.phi(i64)
    sums = [b.phi(words) for _ in pairs]
    if by_row:
        here = b.gep(across, [b.load(b.gep(along, [k]))])
        places = [b.gep(here, [i64(v * LANES)]) for v in range(vectors)]
        own = b.gep(spread, [b.mul(k, i64(rows))])
        rows_at = [b.gep(own, [i64(i)]) for i in range(rows)]
    else:
        place = b.mul(k, i64(LANES))
        places = [b.gep(pointer, [place]) for pointer in panels]
        rows_at = [b.gep(pointer, [k]) for pointer in from_rows]
    seen = [read(b, pointer, words) for pointer in places]
    added = []
    for i in range(rows):
        word = splat(b, b.load(rows_at[i], align=1))
        for v in range(vectors):
            unsigned, signed = (seen[v], word) if by_row else (word, seen[v])
            added.append(_dot(module, b, sums[i * vectors + v], unsigned, signed))
    following = b.add(k, i64(1))
    k.add_incoming(i64(0), entered)
    k.add_incoming(following, loop)
    for total, value in zip(sums, added, strict=True):
        total.add_incoming(ir.Constant(words, [0] * LANES), entered)
        total.add_incoming(value, loop)
    b.cbranch(b.icmp_signed("<", following, quads), loop, done)
    b.position_at_end(done)
    for n, value in enumerate(added):
        b.store(value, b.gep(kept, [i64(n)]))
    b.call(finish, [kept, i64(rows), i64(vectors), *behind])
    b.ret_void()
    return function


def _finish(module: Any, name: str, by_row: bool) -> Any:
    """What is written of the sums of a tile, which lie row after row."""
    function = internal(module, name, [words.as_pointer(), i64, i64, *_BEHIND])
    (
        kept, rows, vectors, y, y_row, left, to, numbers,
        correction, bias, scale, shift, zero, sums_of_x, with_zeros, with_shift, narrow,
    ) = function.args  # fmt: skip
    b = ir.IRBuilder(function.append_basic_block("entry"))
    ends = [b.load(b.gep(numbers, [i64(place)])) for place in range(5)]
    wide = [splat(b, end) for end in ends]  # of double precision, and of single
    short = [splat(b, b.fptrunc(end, f32)) for end in ends]
    # A float32 is near enough where the sum is whole in it, and it is asked for one of eight bits.
    quick = b.and_(b.icmp_signed("==", to, i64(BYTES)), b.icmp_signed("!=", narrow, i64(0)))
    entered, row_begins, loop = b.block, b.append_basic_block("row"), b.append_basic_block("loop")
    b.branch(row_begins)
    b.position_at_end(row_begins)
    i = b.phi(i64)
    i.add_incoming(i64(0), entered)
    of_row, y_at = b.mul(i, vectors), b.mul(i, y_row)
    b.branch(loop)
    b.position_at_end(loop)
    v = b.phi(i64)
    v.add_incoming(i64(0), row_begins)
    lane = b.mul(v, i64(LANES))
    count = splat(b, b.trunc(b.sub(left, lane), i32))
    mask = b.icmp_signed("<", ir.Constant(words, list(range(LANES))), count)

    def lanes(pointer: Any, kind: Any) -> Any:
        at = b.bitcast(b.gep(pointer, [lane]), kind.as_pointer())
        word = f"v{LANES}{'i32' if kind is words else 'f64'}"
        load = llvm_own(module, f"masked.load.{word}.p0", kind, [kind.as_pointer(), i32, mask_, kind])
        zeros = ir.Constant(kind, [0 if kind is words else 0.0] * LANES)
        return b.call(load, [at, i32(4), mask, zeros])

    def row(pointer: Any) -> Any:
        return splat(b, b.load(b.gep(pointer, [i]), align=4))

    def of_channel(pointer: Any, kind: Any) -> Any:
        return row(pointer) if by_row else lanes(pointer, kind)

    def of_step(pointer: Any) -> Any:
        """As of_channel, of double precision, in steps of y, as float32."""
        if by_row:
            return splat(b, b.fptrunc(b.fmul(b.load(b.gep(pointer, [i])), ends[RECIPROCAL]), f32))
        return b.fptrunc(b.fmul(lanes(pointer, reals), wide[RECIPROCAL]), floats)

    def stored(value: Any, kind: Any, word: str, bits: int) -> None:
        place = b.mul(b.add(y_at, lane), i64(bits // 8))
        at = b.bitcast(b.gep(y, [place]), kind.as_pointer())
        kinds = [kind, kind.as_pointer(), i32, mask_]
        b.call(llvm_own(module, f"masked.store.v{LANES}{word}.p0", void, kinds), [value, at, i32(1), mask])

    def of_floats(name: str, value: Any) -> Any:
        kind = value.type
        bits = "f32" if kind is floats else "f64"
        return b.call(llvm_own(module, f"{name}.v{LANES}{bits}", kind, [kind]), [value])

    def held(step: Any, behind: list[Any]) -> Any:
        step = b.fadd(step, behind[OUT_ZERO])
        step = b.select(b.fcmp_ordered("<", step, behind[LOW]), behind[LOW], step)
        step = b.select(b.fcmp_ordered(">", step, behind[HIGH]), behind[HIGH], step)
        return b.trunc(b.fptosi(step, words), bytes_)

    def choice(condition: Any, name: str, value: Any, other: Any) -> Any:
        """`value`, or where the condition holds what `other` makes of it."""
        before, so, on = b.block, b.append_basic_block(name), b.append_basic_block(f"after_{name}")
        b.cbranch(condition, so, on)
        b.position_at_end(so)
        made, end = other(), b.block
        b.branch(on)
        b.position_at_end(on)
        found = b.phi(value.type)
        found.add_incoming(value, before)
        found.add_incoming(made, end)
        return found

    def without_zeros() -> Any:
        total = lanes(sums_of_x, words) if by_row else row(sums_of_x)
        return b.sub(sums, b.mul(of_channel(zero, words), total))

    sums = b.add(b.load(b.gep(kept, [b.add(of_row, v)]), align=4), of_channel(correction, words))
    whole = choice(b.icmp_signed("!=", with_zeros, i64(0)), "zeros", sums, without_zeros)
    quickly, exactly, following = (b.append_basic_block(name) for name in ("quickly", "exactly", "following"))
    b.cbranch(quick, quickly, exactly)

    # The sum, the factor and the shift in float32 are each off by 2⁻²⁴ of themselves, and so are product and
    # sum: NEAR times both is more than that.
    b.position_at_end(quickly)
    product = b.fmul(b.sitofp(b.add(whole, of_channel(bias, words)), floats), of_step(scale))
    moved = choice(
        b.icmp_signed("!=", with_shift, i64(0)), "moved", product, lambda: b.fadd(product, of_step(shift))
    )
    rounded = of_floats("rint", moved)
    off = of_floats("fabs", b.fsub(of_floats("fabs", b.fsub(moved, rounded)), filled(floats, 0.5)))
    much = b.fmul(b.fadd(of_floats("fabs", product), of_floats("fabs", moved)), filled(floats, NEAR))
    near = b.bitcast(b.fcmp_unordered("<=", off, much), ir.IntType(LANES))
    certain = b.append_basic_block("certain")
    b.cbranch(b.icmp_unsigned("!=", near, ir.Constant(near.type, 0)), exactly, certain)
    b.position_at_end(certain)
    stored(held(rounded, short), bytes_, "i8", 8)
    b.branch(following)

    b.position_at_end(exactly)
    as_sums, real = b.append_basic_block("as_sums"), b.append_basic_block("real")
    b.cbranch(b.icmp_signed("==", to, i64(INT32)), as_sums, real)
    b.position_at_end(as_sums)
    stored(whole, words, "i32", 32)
    b.branch(following)
    b.position_at_end(real)
    value = b.fadd(b.sitofp(whole, reals), b.sitofp(of_channel(bias, words), reals))
    value = b.fmul(value, of_channel(scale, reals))
    value = choice(
        b.icmp_signed("!=", with_shift, i64(0)),
        "shifting",
        value,
        lambda: b.fadd(value, of_channel(shift, reals)),
    )
    as_floats, as_bytes = b.append_basic_block("as_floats"), b.append_basic_block("as_bytes")
    b.cbranch(b.icmp_signed("==", to, i64(FLOAT32)), as_floats, as_bytes)
    b.position_at_end(as_floats)
    stored(b.fptrunc(value, floats), floats, "f32", 32)
    b.branch(following)
    b.position_at_end(as_bytes)
    stored(held(of_floats("rint", b.fdiv(value, wide[OUT_SCALE])), wide), bytes_, "i8", 8)
    b.branch(following)

    b.position_at_end(following)
    next_vector, next_row = b.add(v, i64(1)), b.add(i, i64(1))
    v.add_incoming(next_vector, following)
    row_ends, end = b.append_basic_block("row_ends"), b.append_basic_block("end")
    b.cbranch(b.icmp_signed("<", next_vector, vectors), loop, row_ends)
    b.position_at_end(row_ends)
    i.add_incoming(next_row, row_ends)
    b.cbranch(b.icmp_signed("<", next_row, rows), row_begins, end)
    b.position_at_end(end)
    b.ret_void()
    return function
