"""One tile of a product of eight-bit numbers in vector registers, written in LLVM's own language: compilers
do not make it of loops. `dots_by_row` of kernels.cpu.intrinsics says what it does.

Four numbers along the sum lie in a word. Where the processor can (VNNI), one instruction multiplies 16 words
of unsigned numbers with 16 of signed ones and adds the four products of each to a sum in 32 bits; elsewhere
this is written in pairs of 16 bits, which hold such products whole. Sums are exact in both.

Behind the sum comes what kernels.ops._quantized defines, in double precision. A quotient is first taken by
the reciprocal: only where that lies within 2⁻²⁰ of half-way between two steps is it divided, for only there
could another number come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from kernels.cpu.quantized import FLOAT32, INT32
from kernels.cpu.simd import DOT_ROWS, DOT_VECTORS, LANES
from kernels.cpu.tiles import llvm_own

NEAR = 2.0**-20
OUT_SCALE, RECIPROCAL, OUT_ZERO, LOW, HIGH = range(5)  # places of the numbers behind it

_i1, _i8, _i16, _i32, _i64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
_f32, _f64, _void = ir.FloatType(), ir.DoubleType(), ir.VoidType()
_bytes, _words, _floats, _reals = (ir.VectorType(kind, LANES) for kind in (_i8, _i32, _f32, _f64))
_mask = ir.VectorType(_i1, LANES)
_pi8, _pi32, _pf64 = _i8.as_pointer(), _i32.as_pointer(), _f64.as_pointer()

# rows, vectors, then: spread, its row, across, quads; y, its row, left, to, numbers; correction, bias, scale,
# shift, zero; sums of x, whether zeros count, whether there is a shift.
ARGUMENTS = [
    _pi32, _i64, _pi32, _i64, _pi8, _i64, _i64, _i64, _pf64, _pi32, _pi32, _pf64, _pf64, _pi32, _pi32, _i64,
    _i64,
]  # fmt: skip


SIZES = tuple((rows, v) for rows in DOT_ROWS for v in range(1, DOT_VECTORS[rows] + 1))


def dispatcher(module: Any, by_row: bool, sizes: Sequence[tuple[int, int]] = SIZES) -> Any:
    """The function of these sizes of tiles, rows and vectors, in this module. by_row: a row is a channel, and
    `spread` are weights, signed; else a lane is one, and `across` are."""
    name = f"kernelscope_dots_{'rows' if by_row else 'lanes'}_{len(sizes)}"
    if name in module.globals:
        return module.globals[name]
    function = _function(module, name, [_i64, _i64, *ARGUMENTS])
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
    function = _function(module, name, ARGUMENTS)
    spread, spread_row, across, quads, *behind = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    pairs = [(i, v) for i in range(rows) for v in range(vectors)]
    kept = b.gep(b.alloca(ir.ArrayType(_words, len(pairs))), [_i32(0), _i32(0)])
    from_rows = [b.gep(spread, [b.mul(spread_row, _i64(i))]) for i in range(rows)]
    panel = b.mul(quads, _i64(LANES))
    from_across = [b.gep(across, [b.mul(panel, _i64(v))]) for v in range(vectors)]
    entered, loop, done = b.block, b.append_basic_block("loop"), b.append_basic_block("done")
    b.branch(loop)
    b.position_at_end(loop)
    k = b.phi(_i64)
    sums = [b.phi(_words) for _ in pairs]
    place = b.mul(k, _i64(LANES))
    seen = [_read(b, b.gep(pointer, [place]), _words) for pointer in from_across]
    added = []
    for i in range(rows):
        word = _splat(b, b.load(b.gep(from_rows[i], [k]), align=1))
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
    function = _function(module, name, [_words.as_pointer(), _i64, _i64, *ARGUMENTS[4:]])
    (
        kept, rows, vectors, y, y_row, left, to, numbers,
        correction, bias, scale, shift, zero, sums_of_x, with_zeros, with_shift,
    ) = function.args  # fmt: skip
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def number(place: int) -> Any:
        return _splat(b, b.load(b.gep(numbers, [_i64(place)])))

    behind = [number(place) for place in range(5)]
    entered, loop = b.block, b.append_basic_block("loop")
    b.branch(loop)
    b.position_at_end(loop)
    n = b.phi(_i64)
    n.add_incoming(_i64(0), entered)
    i, v = b.udiv(n, vectors), b.urem(n, vectors)
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

    def stored(value: Any, kind: Any, word: str, bits: int) -> None:
        place = b.mul(b.add(b.mul(i, y_row), lane), _i64(bits // 8))
        at = b.bitcast(b.gep(y, [place]), kind.as_pointer())
        kinds = [kind, kind.as_pointer(), _i32, _mask]
        b.call(llvm_own(module, f"masked.store.v{LANES}{word}.p0", _void, kinds), [value, at, _i32(1), mask])

    sums = b.add(b.load(b.gep(kept, [n]), align=4), of_channel(correction, _words))
    before, zeros, summed = b.block, b.append_basic_block("zeros"), b.append_basic_block("summed")
    b.cbranch(b.icmp_signed("!=", with_zeros, _i64(0)), zeros, summed)
    b.position_at_end(zeros)
    total = lanes(sums_of_x, _words) if by_row else row(sums_of_x)
    less = b.sub(sums, b.mul(of_channel(zero, _words), total))
    b.branch(summed)
    b.position_at_end(summed)
    whole = b.phi(_words)
    whole.add_incoming(sums, before)
    whole.add_incoming(less, zeros)
    as_sums, real, following = (b.append_basic_block(name) for name in ("as_sums", "real", "following"))
    b.cbranch(b.icmp_signed("==", to, _i64(INT32)), as_sums, real)
    b.position_at_end(as_sums)
    stored(whole, _words, "i32", 32)
    b.branch(following)

    b.position_at_end(real)
    value = b.fadd(b.sitofp(whole, _reals), b.sitofp(of_channel(bias, _words), _reals))
    value = b.fmul(value, of_channel(scale, _reals))
    before, shifting, shifted = b.block, b.append_basic_block("shifting"), b.append_basic_block("shifted")
    b.cbranch(b.icmp_signed("!=", with_shift, _i64(0)), shifting, shifted)
    b.position_at_end(shifting)
    moved = b.fadd(value, of_channel(shift, _reals))
    b.branch(shifted)
    b.position_at_end(shifted)
    found = b.phi(_reals)
    found.add_incoming(value, before)
    found.add_incoming(moved, shifting)
    as_floats, as_bytes = b.append_basic_block("as_floats"), b.append_basic_block("as_bytes")
    b.cbranch(b.icmp_signed("==", to, _i64(FLOAT32)), as_floats, as_bytes)
    b.position_at_end(as_floats)
    stored(b.fptrunc(found, _floats), _floats, "f32", 32)
    b.branch(following)

    b.position_at_end(as_bytes)
    rint, fabs = (llvm_own(module, f"{of}.v{LANES}f64", _reals, [_reals]) for of in ("rint", "fabs"))
    quotient = b.fmul(found, behind[RECIPROCAL])
    rounded = b.call(rint, [quotient])
    off = b.call(fabs, [b.fsub(b.call(fabs, [b.fsub(quotient, rounded)]), _constant(0.5))])
    near = b.bitcast(b.fcmp_ordered("<", off, _constant(NEAR)), ir.IntType(LANES))
    before, exact, written = b.block, b.append_basic_block("exact"), b.append_basic_block("written")
    b.cbranch(b.icmp_unsigned("!=", near, ir.Constant(near.type, 0)), exact, written)
    b.position_at_end(exact)
    divided = b.call(rint, [b.fdiv(found, behind[OUT_SCALE])])
    b.branch(written)
    b.position_at_end(written)
    step = b.phi(_reals)
    step.add_incoming(rounded, before)
    step.add_incoming(divided, exact)
    step = b.fadd(step, behind[OUT_ZERO])
    step = b.select(b.fcmp_ordered("<", step, behind[LOW]), behind[LOW], step)
    step = b.select(b.fcmp_ordered(">", step, behind[HIGH]), behind[HIGH], step)
    stored(b.trunc(b.fptosi(step, _words), _bytes), _bytes, "i8", 8)
    b.branch(following)

    b.position_at_end(following)
    next_one = b.add(n, _i64(1))
    n.add_incoming(next_one, following)
    end = b.append_basic_block("end")
    b.cbranch(b.icmp_signed("<", next_one, b.mul(rows, vectors)), loop, end)
    b.position_at_end(end)
    b.ret_void()
    return function


def _constant(value: float) -> Any:
    return ir.Constant(_reals, [value] * LANES)
