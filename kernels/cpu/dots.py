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

NEAR = 2.0**-21
OUT_SCALE, RECIPROCAL, OUT_ZERO, LOW, HIGH = range(5)  # places of the numbers behind it

_i1, _i8, _i16, _i32, _i64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
_f32, _f64, _void = ir.FloatType(), ir.DoubleType(), ir.VoidType()
_bytes, _words, _floats, _reals = (ir.VectorType(kind, LANES) for kind in (_i8, _i32, _f32, _f64))
_mask = ir.VectorType(_i1, LANES)
_pi8, _pi32, _pi64, _pf64 = (kind.as_pointer() for kind in (_i8, _i32, _i64, _f64))

# rows, vectors, then: spread, its row or where vectors of `across` lie along the sum, across, quads; y, its row,
# left, to, numbers; correction, bias, scale, shift, zero; sums of x, whether zeros count, whether there is a
# shift, whether a sum and its bias together stay within 32 bits.
_BEHIND = [
    _pi8, _i64, _i64, _i64, _pf64, _pi32, _pi32, _pf64, _pf64, _pi32, _pi32, _i64, _i64, _i64,
]  # fmt: skip


def _arguments(by_row: bool) -> list[Any]:
    return [_pi32, _pi64 if by_row else _i64, _pi32, _i64, *_BEHIND]


SIZES = tuple((rows, v) for rows in DOT_ROWS for v in range(1, DOT_VECTORS[rows] + 1))


def dispatcher(module: Any, by_row: bool, sizes: Sequence[tuple[int, int]] = SIZES) -> Any:
    """The function of these sizes of tiles, rows and vectors, in this module. by_row: a row is a channel, and
    `spread` are weights, signed; else a lane is one, and `across` are."""
    name = f"kernelscope_dots_{'rows' if by_row else 'lanes'}_{len(sizes)}"
    if name in module.globals:
        return module.globals[name]
    function = _function(module, name, [_i64, _i64, *_arguments(by_row)])
    b = ir.IRBuilder(function.append_basic_block("entry"))
    rows, vectors, *rest = function.args
    end = function.append_basic_block("end")
    chosen = b.switch(b.add(b.mul(rows, _i64(16)), vectors), end)
    finish = _finish(module, f"{name}_finish", by_row)
    for i, v in sizes:
        block = function.append_basic_block(f"of_{i}_{v}")
        chosen.add_case(_i64(16 * i + v), block)
        b.position_at_end(block)
        b.call(_tile(module, f"{name}_{i}_{v}", i, v, by_row, finish), rest)
        b.branch(end)
    b.position_at_end(end)
    b.ret_void()
    return function


def _function(module: Any, name: str, arguments: Sequence[Any]) -> Any:
    function = ir.Function(module, ir.FunctionType(_void, arguments), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function


def _splat(b: Any, value: Any) -> Any:
    kind = ir.VectorType(value.type, LANES)
    one = b.insert_element(ir.Constant(kind, ir.Undefined), value, _i32(0))
    return b.shuffle_vector(one, one, ir.Constant(_words, [0] * LANES))


def _read(b: Any, pointer: Any, kind: Any) -> Any:
    return b.load(b.bitcast(pointer, kind.as_pointer()), align=4)


def features() -> dict[str, bool]:
    """What this processor has."""
    return dict(llvm.get_host_cpu_features())


def _dot(module: Any, b: Any, sums: Any, unsigned: Any, signed: Any) -> Any:
    """sums + the four products of each word."""
    has = features()
    if has.get("avx512vnni"):
        kinds = [_words] * 3
        return b.call(llvm_own(module, "x86.avx512.vpdpbusd.512", _words, kinds), [sums, unsigned, signed])
    shorts = ir.VectorType(_i16, 2 * LANES)
    eight, low = (ir.Constant(shorts, [value] * 2 * LANES) for value in (8, 255))
    u, s = b.bitcast(unsigned, shorts), b.bitcast(signed, shorts)
    for one, other in (
        (b.and_(u, low), b.ashr(b.shl(s, eight), eight)),
        (b.lshr(u, eight), b.ashr(s, eight)),
    ):
        for first in (0, 1):
            places = ir.Constant(_words, list(range(first, 2 * LANES, 2)))
            left, right = (b.sext(b.shuffle_vector(each, each, places), _words) for each in (one, other))
            sums = b.add(sums, b.mul(left, right))
    return sums


def _tile(module: Any, name: str, rows: int, vectors: int, by_row: bool, finish: Any) -> Any:
    function = _function(module, name, _arguments(by_row))
    spread, along, across, quads, *behind = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    pairs = [(i, v) for i in range(rows) for v in range(vectors)]
    kept = b.gep(b.alloca(ir.ArrayType(_words, len(pairs))), [_i32(0), _i32(0)])
    entered, loop, done = b.block, b.append_basic_block("loop"), b.append_basic_block("done")
    if not by_row:
        panel = b.mul(quads, _i64(LANES))
        panels = [b.gep(across, [b.mul(panel, _i64(v))]) for v in range(vectors)]
        from_rows = [b.gep(spread, [b.mul(along, _i64(i))]) for i in range(rows)]
    b.branch(loop)
    b.position_at_end(loop)
    k = b.phi(_i64)
    sums = [b.phi(_words) for _ in pairs]
    if by_row:
        here = b.gep(across, [b.load(b.gep(along, [k]))])
        places = [b.gep(here, [_i64(v * LANES)]) for v in range(vectors)]
        own = b.gep(spread, [b.mul(k, _i64(rows))])
        words = [b.gep(own, [_i64(i)]) for i in range(rows)]
    else:
        place = b.mul(k, _i64(LANES))
        places = [b.gep(pointer, [place]) for pointer in panels]
        words = [b.gep(pointer, [k]) for pointer in from_rows]
    seen = [_read(b, pointer, _words) for pointer in places]
    added = []
    for i in range(rows):
        word = _splat(b, b.load(words[i], align=1))
        for v in range(vectors):
            unsigned, signed = (seen[v], word) if by_row else (word, seen[v])
            added.append(_dot(module, b, sums[i * vectors + v], unsigned, signed))
    following = b.add(k, _i64(1))
    k.add_incoming(_i64(0), entered)
    k.add_incoming(following, loop)
    for total, value in zip(sums, added, strict=True):
        total.add_incoming(ir.Constant(_words, [0] * LANES), entered)
        total.add_incoming(value, loop)
    b.cbranch(b.icmp_signed("<", following, quads), loop, done)
    b.position_at_end(done)
    for n, value in enumerate(added):
        b.store(value, b.gep(kept, [_i64(n)]))
    b.call(finish, [kept, _i64(rows), _i64(vectors), *behind])
    b.ret_void()
    return function


def _finish(module: Any, name: str, by_row: bool) -> Any:
    """What is written of the sums of a tile, which lie row after row."""
    function = _function(module, name, [_words.as_pointer(), _i64, _i64, *_BEHIND])
    (
        kept, rows, vectors, y, y_row, left, to, numbers,
        correction, bias, scale, shift, zero, sums_of_x, with_zeros, with_shift, narrow,
    ) = function.args  # fmt: skip
    b = ir.IRBuilder(function.append_basic_block("entry"))
    ends = [b.load(b.gep(numbers, [_i64(place)])) for place in range(5)]
    wide = [_splat(b, end) for end in ends]  # of double precision, and of single
    short = [_splat(b, b.fptrunc(end, _f32)) for end in ends]
    # A float32 is near enough where the sum is whole in it, and it is asked for one of eight bits.
    quick = b.and_(b.icmp_signed("==", to, _i64(BYTES)), b.icmp_signed("!=", narrow, _i64(0)))
    entered, row_begins, loop = b.block, b.append_basic_block("row"), b.append_basic_block("loop")
    b.branch(row_begins)
    b.position_at_end(row_begins)
    i = b.phi(_i64)
    i.add_incoming(_i64(0), entered)
    of_row, y_at = b.mul(i, vectors), b.mul(i, y_row)
    b.branch(loop)
    b.position_at_end(loop)
    v = b.phi(_i64)
    v.add_incoming(_i64(0), row_begins)
    lane = b.mul(v, _i64(LANES))
    count = _splat(b, b.trunc(b.sub(left, lane), _i32))
    mask = b.icmp_signed("<", ir.Constant(_words, list(range(LANES))), count)

    def lanes(pointer: Any, kind: Any) -> Any:
        at = b.bitcast(b.gep(pointer, [lane]), kind.as_pointer())
        word = f"v{LANES}{'i32' if kind is _words else 'f64'}"
        load = llvm_own(module, f"masked.load.{word}.p0", kind, [kind.as_pointer(), _i32, _mask, kind])
        zeros = ir.Constant(kind, [0 if kind is _words else 0.0] * LANES)
        return b.call(load, [at, _i32(4), mask, zeros])

    def row(pointer: Any) -> Any:
        return _splat(b, b.load(b.gep(pointer, [i]), align=4))

    def of_channel(pointer: Any, kind: Any) -> Any:
        return row(pointer) if by_row else lanes(pointer, kind)

    def of_step(pointer: Any) -> Any:
        """As of_channel, of double precision, in steps of y, as float32."""
        if by_row:
            return _splat(b, b.fptrunc(b.fmul(b.load(b.gep(pointer, [i])), ends[RECIPROCAL]), _f32))
        return b.fptrunc(b.fmul(lanes(pointer, _reals), wide[RECIPROCAL]), _floats)

    def stored(value: Any, kind: Any, word: str, bits: int) -> None:
        place = b.mul(b.add(y_at, lane), _i64(bits // 8))
        at = b.bitcast(b.gep(y, [place]), kind.as_pointer())
        kinds = [kind, kind.as_pointer(), _i32, _mask]
        b.call(llvm_own(module, f"masked.store.v{LANES}{word}.p0", _void, kinds), [value, at, _i32(1), mask])

    def of_floats(name: str, value: Any) -> Any:
        kind = value.type
        bits = "f32" if kind is _floats else "f64"
        return b.call(llvm_own(module, f"{name}.v{LANES}{bits}", kind, [kind]), [value])

    def held(step: Any, behind: list[Any]) -> Any:
        step = b.fadd(step, behind[OUT_ZERO])
        step = b.select(b.fcmp_ordered("<", step, behind[LOW]), behind[LOW], step)
        step = b.select(b.fcmp_ordered(">", step, behind[HIGH]), behind[HIGH], step)
        return b.trunc(b.fptosi(step, _words), _bytes)

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
        total = lanes(sums_of_x, _words) if by_row else row(sums_of_x)
        return b.sub(sums, b.mul(of_channel(zero, _words), total))

    sums = b.add(b.load(b.gep(kept, [b.add(of_row, v)]), align=4), of_channel(correction, _words))
    whole = choice(b.icmp_signed("!=", with_zeros, _i64(0)), "zeros", sums, without_zeros)
    quickly, exactly, following = (b.append_basic_block(name) for name in ("quickly", "exactly", "following"))
    b.cbranch(quick, quickly, exactly)

    # The sum, the factor and the shift in float32 are each off by 2⁻²⁴ of themselves, and so are product and
    # sum: NEAR times both is more than that.
    b.position_at_end(quickly)
    product = b.fmul(b.sitofp(b.add(whole, of_channel(bias, _words)), _floats), of_step(scale))
    moved = choice(
        b.icmp_signed("!=", with_shift, _i64(0)), "moved", product, lambda: b.fadd(product, of_step(shift))
    )
    rounded = of_floats("rint", moved)
    off = of_floats("fabs", b.fsub(of_floats("fabs", b.fsub(moved, rounded)), _constant(_floats, 0.5)))
    much = b.fmul(b.fadd(of_floats("fabs", product), of_floats("fabs", moved)), _constant(_floats, NEAR))
    near = b.bitcast(b.fcmp_unordered("<=", off, much), ir.IntType(LANES))
    certain = b.append_basic_block("certain")
    b.cbranch(b.icmp_unsigned("!=", near, ir.Constant(near.type, 0)), exactly, certain)
    b.position_at_end(certain)
    stored(held(rounded, short), _bytes, "i8", 8)
    b.branch(following)

    b.position_at_end(exactly)
    as_sums, real = b.append_basic_block("as_sums"), b.append_basic_block("real")
    b.cbranch(b.icmp_signed("==", to, _i64(INT32)), as_sums, real)
    b.position_at_end(as_sums)
    stored(whole, _words, "i32", 32)
    b.branch(following)
    b.position_at_end(real)
    value = b.fadd(b.sitofp(whole, _reals), b.sitofp(of_channel(bias, _words), _reals))
    value = b.fmul(value, of_channel(scale, _reals))
    value = choice(
        b.icmp_signed("!=", with_shift, _i64(0)),
        "shifting",
        value,
        lambda: b.fadd(value, of_channel(shift, _reals)),
    )
    as_floats, as_bytes = b.append_basic_block("as_floats"), b.append_basic_block("as_bytes")
    b.cbranch(b.icmp_signed("==", to, _i64(FLOAT32)), as_floats, as_bytes)
    b.position_at_end(as_floats)
    stored(b.fptrunc(value, _floats), _floats, "f32", 32)
    b.branch(following)
    b.position_at_end(as_bytes)
    stored(held(of_floats("rint", b.fdiv(value, wide[OUT_SCALE])), wide), _bytes, "i8", 8)
    b.branch(following)

    b.position_at_end(following)
    next_vector, next_row = b.add(v, _i64(1)), b.add(i, _i64(1))
    v.add_incoming(next_vector, following)
    row_ends, end = b.append_basic_block("row_ends"), b.append_basic_block("end")
    b.cbranch(b.icmp_signed("<", next_vector, vectors), loop, row_ends)
    b.position_at_end(row_ends)
    i.add_incoming(next_row, row_ends)
    b.cbranch(b.icmp_signed("<", next_row, rows), row_begins, end)
    b.position_at_end(end)
    b.ret_void()
    return function


def _constant(kind: Any, value: float) -> Any:
    return ir.Constant(kind, [value] * LANES)


# --- bytes on their way into words ---


def copier(module: Any) -> Any:
    """void(to, of, count): bytes to where others lie, which do not overlap."""
    name = "kernelscope_copied"
    if name in module.globals:
        return module.globals[name]
    function = _function(module, name, [_pi8, _pi8, _i64])
    to, of, count = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    end = function.append_basic_block("end")

    def moved(at: Any, width: int) -> None:
        kind = ir.VectorType(_i8, width).as_pointer()
        from_, into = (b.bitcast(b.gep(pointer, [at]), kind) for pointer in (of, to))
        b.store(b.load(from_, align=1), into, align=1)

    # The last block of a width overlaps the one before it.
    for width in (32, 16, 8, 4, 2, 1):
        fits, less = (function.append_basic_block(f"{name}_{width}") for name in ("fits", "less"))
        b.cbranch(b.icmp_signed(">=", count, _i64(width)), fits, less)
        b.position_at_end(fits)
        last = b.sub(count, _i64(width))
        loop, done = (function.append_basic_block(f"{name}_{width}") for name in ("loop", "done"))
        b.cbranch(b.icmp_signed(">", last, _i64(0)), loop, done)
        b.position_at_end(loop)
        at = b.phi(_i64)
        at.add_incoming(_i64(0), fits)
        moved(at, width)
        following = b.add(at, _i64(width))
        at.add_incoming(following, loop)
        b.cbranch(b.icmp_signed("<", following, last), loop, done)
        b.position_at_end(done)
        moved(last, width)
        b.branch(end)
        b.position_at_end(less)
    b.branch(end)
    b.position_at_end(end)
    b.ret_void()
    return function


def weaver(module: Any) -> Any:
    """void(to, first, second, third, fourth, count, flip): words of a byte of each, with flip in each byte; 16
    at a time, so that up to 15 more are read and written."""
    name = "kernelscope_woven"
    if name in module.globals:
        return module.globals[name]
    function = _function(module, name, [_pi32, *[_pi8] * 4, _i64, _i64])
    to, *sources, count, flip = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    each = _splat(b, b.mul(b.trunc(flip, _i32), _i32(0x01010101)))
    entered, loop, end = b.block, function.append_basic_block("loop"), function.append_basic_block("end")
    b.cbranch(b.icmp_signed(">", count, _i64(0)), loop, end)
    b.position_at_end(loop)
    at = b.phi(_i64)
    at.add_incoming(_i64(0), entered)
    word = each
    for place, source in enumerate(sources):
        read = b.load(b.bitcast(b.gep(source, [at]), _bytes.as_pointer()), align=1)
        word = b.xor(word, b.shl(b.zext(read, _words), ir.Constant(_words, [8 * place] * LANES)))
    b.store(word, b.bitcast(b.gep(to, [at]), _words.as_pointer()), align=4)
    following = b.add(at, _i64(LANES))
    at.add_incoming(following, loop)
    b.cbranch(b.icmp_signed("<", following, count), loop, end)
    b.position_at_end(end)
    b.ret_void()
    return function
