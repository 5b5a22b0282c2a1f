"""Tiles of a product of eight-bit numbers in vector registers, written in LLVM's own language: compilers do
not make them of loops. `dots_by_row` of kernels.cpu.intrinsics says what a tile does.

Four numbers along the sum lie in a word. Where the processor can (VNNI), one instruction multiplies 16 words
of unsigned numbers with 16 of signed ones, or 8 with 8, and adds the four products of each to a sum in 32
bits; elsewhere this is written in pairs of 16 bits, which hold such products whole. Sums are exact in both.

Behind the sum comes what kernels.ops._quantized defines, in double precision. A number of eight bits is first
worked out in float32, whose error is known: only where that lies too near half-way between two steps is it
worked out again in double precision, for only there could another number come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from kernels.cpu.quantized import FLOAT32, INT32
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

OUT_SCALE, OUT_ZERO, LOW, HIGH = range(4)  # places of the numbers behind it

_pi8, _pi32, _pi64, _pf64 = (kind.as_pointer() for kind in (i8, i32, i64, f64))

# rows, vectors, then: spread, where its rows begin, where words lie along the sum, across, quads; then y, its
# row, left, to, numbers; correction, bias, scale, shift, zero; sums of x, whether zeros count, whether there
# is a shift; what bytes are made by in float32, and words between two of these.
_BEHIND = [
    _pi8, i64, i64, i64, _pf64, _pi32, _pi32, _pf64, _pf64, _pi32, _pi32, i64, i64, _pi32, i64,
]  # fmt: skip
ARGUMENTS = [_pi32, _pi64, _pi64, _pi32, i64, *_BEHIND]


HALF_VECTORS = 6  # vectors of sums where it takes two of a processor's 16 registers to hold one
SIZES = tuple((rows, v) for rows in DOT_ROWS for v in range(1, DOT_VECTORS[rows] + 1))


def dispatcher(module: Any, by_row: bool, sizes: Sequence[tuple[int, int]] = SIZES) -> Any:
    """The function of these sizes of tiles, rows and vectors, in this module. by_row: a row is a channel, and
    `spread` are weights, signed; else a lane is one, and `across` are."""
    name = f"kernelscope_dots_{'rows' if by_row else 'lanes'}_{len(sizes)}"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, [i64, i64, *ARGUMENTS])
    b = ir.IRBuilder(function.append_basic_block("entry"))
    rows, vectors, *rest = function.args
    end = function.append_basic_block("end")
    chosen = b.switch(b.add(b.mul(rows, i64(16)), vectors), end)
    for i, v in sizes:
        block = function.append_basic_block(f"of_{i}_{v}")
        chosen.add_case(i64(16 * i + v), block)
        b.position_at_end(block)
        finish = _finish(module, f"{name}_finish", by_row, v if by_row else i)
        b.call(_tile(module, f"{name}_{i}_{v}", i, v, by_row, finish), rest)
        b.branch(end)
    b.position_at_end(end)
    b.ret_void()
    return function


def features() -> dict[str, bool]:
    """What this processor has."""
    return dict(llvm.get_host_cpu_features())


def dot(module: Any, b: Any, sums: Any, unsigned: Any, signed: Any) -> Any:
    """sums + the four products of each word."""
    has = features()
    if has.get("avx512vnni"):
        kinds = [words] * 3
        return b.call(llvm_own(module, "x86.avx512.vpdpbusd.512", words, kinds), [sums, unsigned, signed])
    if has.get("avxvnni"):
        half = ir.VectorType(i32, LANES // 2)
        own = llvm_own(module, "x86.avx512.vpdpbusd.256", half, [half] * 3)
        halves = [ir.Constant(half, list(range(first, first + LANES // 2))) for first in (0, LANES // 2)]
        parts = [
            b.call(own, [b.shuffle_vector(of, of, places) for of in (sums, unsigned, signed)])
            for places in halves
        ]
        return b.shuffle_vector(*parts, ir.Constant(words, list(range(LANES))))
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
    function = internal(module, name, ARGUMENTS, inlined=True)
    spread, starts, along, across, quads, *behind = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    pairs = [(i, v) for i in range(rows) for v in range(vectors)]
    left, ready, apart = behind[2], behind[-2], behind[-1]
    begin = _begun(module, b, by_row, ready, apart, left, rows if by_row else vectors)
    kept = b.gep(b.alloca(ir.ArrayType(words, len(pairs))), [i32(0), i32(0)])
    if not by_row:
        panel = b.mul(quads, i64(LANES))
        panels = [b.gep(across, [b.mul(panel, i64(v))]) for v in range(vectors)]
        from_rows = [b.gep(spread, [b.load(b.gep(starts, [i64(i)]))]) for i in range(rows)]
    together = rows if features().get("avx512f") else max(1, HALF_VECTORS // vectors)
    for first in range(0, rows, together):  # as many sums as there are registers for
        some = [pair for pair in pairs if first <= pair[0] < first + together]
        entered, loop, done = b.block, b.append_basic_block("loop"), b.append_basic_block("done")
        b.branch(loop)
        b.position_at_end(loop)
        k = b.phi(i64)
        sums = [b.phi(words) for _ in some]
        next_word = b.load(b.gep(along, [k]))
        if by_row:
            here = b.gep(across, [next_word])
            places = [b.gep(here, [i64(v * LANES)]) for v in range(vectors)]
            own = b.gep(spread, [b.mul(k, i64(rows))])
        else:
            place = b.mul(k, i64(LANES))
            places = [b.gep(pointer, [place]) for pointer in panels]
        seen = [read(b, pointer, words) for pointer in places]
        added: list[Any] = []
        for (i, v), total in zip(some, sums, strict=True):
            if v == 0:
                of_row = b.gep(own, [i64(i)]) if by_row else b.gep(from_rows[i], [next_word])
                word = splat(b, b.load(of_row, align=1))
            unsigned, signed = (seen[v], word) if by_row else (word, seen[v])
            added.append(dot(module, b, total, unsigned, signed))
        following = b.add(k, i64(1))
        k.add_incoming(i64(0), entered)
        k.add_incoming(following, loop)
        for (i, v), total, value in zip(some, sums, added, strict=True):
            total.add_incoming(begin[i if by_row else v], entered)
            total.add_incoming(value, loop)
        b.cbranch(b.icmp_signed("<", following, quads), loop, done)
        b.position_at_end(done)
        for (i, v), value in zip(some, added, strict=True):
            b.store(value, b.gep(kept, [i64(i * vectors + v)]))
    b.call(finish, [kept, i64(rows), i64(vectors), *behind])
    b.ret_void()
    return function


def _begun(module: Any, b: Any, by_row: bool, ready: Any, apart: Any, left: Any, channels: int) -> list[Any]:
    """What the sums of rows or of vectors begin with, where bytes are made of them in float32; else 0."""
    is_ready, none = b.icmp_signed(">", apart, i64(0)), ir.Constant(words, [0] * LANES)
    found = []
    for k in range(channels):
        if by_row:
            value = splat(b, b.load(b.gep(ready, [i64(k)]), align=4))
        else:
            value = _lanes(module, b, b.gep(ready, [i64(k * LANES)]), words, _count(b, left, i64(k)))
        found.append(b.select(is_ready, value, none))
    return found


def _finish(module: Any, name: str, by_row: bool, inner: int) -> Any:
    """What is written of the sums of a tile, which lie row after row: of eight bits in float32, where that
    is sure (kernels.cpu.quantized.in_float32), all else by `exact`. inner: vectors of a row, or rows where
    a lane is a channel: what has a channel in common is done at once."""
    exactly = exact(module, f"{name}_exactly", by_row)
    name = f"{name}_{inner}"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, [words.as_pointer(), i64, i64, *_BEHIND])
    (
        kept, rows, vectors, y, y_row, left, to, numbers,
        correction, bias, scale, shift, zero, sums_of_x, with_zeros, with_shift, ready, apart,
    ) = function.args  # fmt: skip
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def block(name: str) -> Any:
        return function.append_basic_block(name)

    quick, slow, end = block("quick"), block("slow"), block("end")
    b.cbranch(b.icmp_signed(">", apart, i64(0)), quick, slow)
    b.position_at_end(slow)
    b.call(exactly, function.args)
    b.branch(end)

    b.position_at_end(quick)
    ends = [b.load(b.gep(numbers, [i64(place)])) for place in range(4)]
    short = [splat(b, b.fptrunc(number, f32)) for number in ends]
    whole = b.icmp_signed(">=", left, b.mul(vectors, i64(LANES)))  # vectors, all of them
    each = [i64(k) for k in range(inner)]
    counts = [_count(b, left, v) for v in each] if by_row else []
    begins = block("begins")
    b.branch(begins)
    b.position_at_end(begins)
    outer = b.phi(i64)
    outer.add_incoming(i64(0), quick)
    counts = counts or [_count(b, left, outer)] * inner
    channel = outer if by_row else b.mul(outer, i64(LANES))

    def of_channel(pointer: Any) -> Any:
        at = b.gep(pointer, [channel])
        return splat(b, b.load(at, align=4)) if by_row else _lanes(module, b, at, words, counts[0])

    reals_of = [of_channel(b.gep(ready, [b.mul(apart, i64(k))])) for k in (1, 2, 3)]
    factor, moved_by, sure = (b.bitcast(word, floats) for word in reals_of)
    pairs = [(outer, k) if by_row else (k, outer) for k in each]
    of = [b.gep(kept, [b.add(b.mul(i, vectors), v)]) for i, v in pairs]
    places = [b.gep(y, [b.add(b.mul(i, y_row), b.mul(v, i64(LANES)))]) for i, v in pairs]
    sums = [read(b, pointer, words) for pointer in of]
    before, zeros, summed = b.block, block("zeros"), block("summed")
    b.cbranch(b.icmp_signed("!=", with_zeros, i64(0)), zeros, summed)
    b.position_at_end(zeros)
    own = of_channel(zero)
    totals = [
        _lanes(module, b, b.gep(sums_of_x, [b.mul(v, i64(LANES))]), words, count)
        if by_row
        else splat(b, b.load(b.gep(sums_of_x, [i]), align=4))
        for (i, v), count in zip(pairs, counts, strict=True)
    ]
    less = [b.sub(total, b.mul(own, of_x)) for total, of_x in zip(sums, totals, strict=True)]
    b.branch(summed)
    b.position_at_end(summed)
    found = [b.phi(words) for _ in each]
    for phi, one, other in zip(found, sums, less, strict=True):
        phi.add_incoming(one, before)
        phi.add_incoming(other, zeros)
    told = [in_bytes(module, b, total, factor, moved_by, short) for total in found]
    made, furthest = [one for one, _ in told], told[0][1]
    for _, off in told[1:]:
        furthest = b.select(b.fcmp_ordered(">", off, furthest), off, furthest)
    bits = b.bitcast(b.fcmp_unordered(">", furthest, sure), ir.IntType(LANES))
    certain, again, following = block("certain"), block("again"), block("following")
    b.cbranch(b.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0)), again, certain)

    b.position_at_end(again)
    begun = of_channel(ready)
    for pointer in of:  # without what they began with
        kept_sum = b.bitcast(pointer, words.as_pointer())
        b.store(b.sub(read(b, pointer, words), begun), kept_sum)
    behind = [b.gep(pointer, [channel]) for pointer in (correction, bias, scale)]
    at_shift = b.gep(shift, [b.select(b.icmp_signed("!=", with_shift, i64(0)), channel, i64(0))])
    for (i, v), pointer, place in zip(pairs, of, places, strict=True):
        lane = b.mul(v, i64(LANES))
        own_sums = b.gep(sums_of_x, [lane if by_row else i])
        b.call(exactly, [
            pointer, i64(1), i64(1), place, y_row, b.sub(left, lane), to, numbers, *behind, at_shift,
            b.gep(zero, [channel]), own_sums, with_zeros, with_shift, ready, i64(0),
        ])  # fmt: skip
    b.branch(following)

    b.position_at_end(certain)
    goals = [b.bitcast(place, bytes_.as_pointer()) for place in places]
    all_of_them, some = block("all"), block("some")
    b.cbranch(whole, all_of_them, some)
    b.position_at_end(all_of_them)
    for value, goal in zip(made, goals, strict=True):
        b.store(value, goal, align=1)
    b.branch(following)
    b.position_at_end(some)
    for value, goal, count in zip(made, goals, counts, strict=True):
        stored_lanes(module, b, value, goal, count)
    b.branch(following)

    b.position_at_end(following)
    next_outer = b.add(outer, i64(1))
    outer.add_incoming(next_outer, following)
    b.cbranch(b.icmp_signed("<", next_outer, rows if by_row else vectors), begins, end)
    b.position_at_end(end)
    b.ret_void()
    return function


def _count(b: Any, left: Any, v: Any) -> Any:
    """Which lanes of vector v are among the first `left` of a tile's."""
    count = splat(b, b.trunc(b.sub(left, b.mul(v, i64(LANES))), i32))
    return b.icmp_signed("<", ir.Constant(words, list(range(LANES))), count)


def _lanes(module: Any, b: Any, pointer: Any, kind: Any, mask: Any) -> Any:
    """A vector of int32 or float64 of which no other lane is read; these are 0."""
    word = f"v{LANES}{'i32' if kind is words else 'f64'}"
    load = llvm_own(module, f"masked.load.{word}.p0", kind, [kind.as_pointer(), i32, mask_, kind])
    zeros = filled(kind, 0 if kind is words else 0.0)
    return b.call(load, [b.bitcast(pointer, kind.as_pointer()), i32(4), mask, zeros])


def stored_lanes(module: Any, b: Any, value: Any, at: Any, mask: Any) -> None:
    """Those lanes of a vector, where `at` points to."""
    kind = value.type
    word = {bytes_: "i8", words: "i32", floats: "f32"}[kind]
    kinds = [kind, kind.as_pointer(), i32, mask_]
    b.call(llvm_own(module, f"masked.store.v{LANES}{word}.p0", void, kinds), [value, at, i32(1), mask])


def _of(module: Any, b: Any, name: str, value: Any) -> Any:
    """A function of LLVM's of each lane."""
    kind = value.type
    own = f"{name}.v{LANES}{'f32' if kind == floats else 'f64'}"
    return b.call(llvm_own(module, own, kind, [kind]), [value])


def in_bytes(
    module: Any, b: Any, total: Any, factor: Any, moved_by: Any, short: list[Any]
) -> tuple[Any, Any]:
    """The bytes of these sums, worked out in float32, and how far each was from a whole number: none where it
    is held at an end (kernels.cpu.quantized.in_float32)."""
    fma = llvm_own(module, f"fmuladd.v{LANES}f32", floats, [floats] * 3)
    step = b.call(fma, [b.sitofp(total, floats), factor, moved_by])
    step = b.select(b.fcmp_ordered("<", step, short[LOW]), short[LOW], step)
    step = b.select(b.fcmp_ordered(">", step, short[HIGH]), short[HIGH], step)
    whole = b.fptosi(_of(module, b, "rint", step), words)  # one instruction
    return b.trunc(whole, bytes_), _of(module, b, "fabs", b.fsub(step, b.sitofp(whole, floats)))


def _held(b: Any, step: Any, behind: list[Any]) -> Any:
    """The bytes of a rounded number of steps."""
    step = b.fadd(step, behind[OUT_ZERO])
    step = b.select(b.fcmp_ordered("<", step, behind[LOW]), behind[LOW], step)
    step = b.select(b.fcmp_ordered(">", step, behind[HIGH]), behind[HIGH], step)
    return b.trunc(b.fptosi(step, words), bytes_)


def exact(module: Any, name: str, by_row: bool) -> Any:
    """What is written of the sums of a tile, which lie row after row, in double precision."""
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, [words.as_pointer(), i64, i64, *_BEHIND])
    (
        kept, rows, vectors, y, y_row, left, to, numbers,
        correction, bias, scale, shift, zero, sums_of_x, with_zeros, with_shift, *_,
    ) = function.args  # fmt: skip
    b = ir.IRBuilder(function.append_basic_block("entry"))
    ends = [b.load(b.gep(numbers, [i64(place)])) for place in range(4)]
    wide = [splat(b, end) for end in ends]
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
    mask = _count(b, left, v)

    def lanes(pointer: Any, kind: Any) -> Any:
        return _lanes(module, b, b.gep(pointer, [lane]), kind, mask)

    def row(pointer: Any) -> Any:
        return splat(b, b.load(b.gep(pointer, [i]), align=4))

    def of_channel(pointer: Any, kind: Any) -> Any:
        return row(pointer) if by_row else lanes(pointer, kind)

    def stored(value: Any, nbytes: int) -> None:
        place = b.gep(y, [b.mul(b.add(y_at, lane), i64(nbytes))])
        stored_lanes(module, b, value, b.bitcast(place, value.type.as_pointer()), mask)

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

    sums = b.add(read(b, b.gep(kept, [b.add(of_row, v)]), words), of_channel(correction, words))
    whole = choice(b.icmp_signed("!=", with_zeros, i64(0)), "zeros", sums, without_zeros)
    following = b.append_basic_block("following")
    as_sums, real = b.append_basic_block("as_sums"), b.append_basic_block("real")
    b.cbranch(b.icmp_signed("==", to, i64(INT32)), as_sums, real)
    b.position_at_end(as_sums)
    stored(whole, 4)
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
    stored(b.fptrunc(value, floats), 4)
    b.branch(following)
    b.position_at_end(as_bytes)
    step = _of(module, b, "rint", b.fdiv(value, wide[OUT_SCALE]))
    stored(_held(b, step, wide), 1)
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
