"""Bytes in vector registers: copied, woven into words, added up. Written in LLVM's own language,
for compilers cannot know that what is read and what is written lie apart. kernels.cpu.simd names them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llvmlite import ir

from kernels.cpu.simd import LANES
from kernels.cpu.tiles import llvm_own
from kernels.cpu.vectors import (
    bytes_,
    f32,
    f64,
    floats,
    i8,
    i32,
    i64,
    internal,
    read,
    reals,
    splat,
    words,
)  # fmt: skip

pi8, pi32, pf64 = i8.as_pointer(), i32.as_pointer(), f64.as_pointer()
STRIDES = (1, 2, 3, 4)  # of bytes that are read in vectors


def copier(module: Any) -> Any:
    """void(to, of, count, stride): to[k] = of[k · stride]; the two do not overlap."""
    name = "kernelscope_copied"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, [pi8, pi8, i64, i64])
    to, of, count, stride = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    end = function.append_basic_block("end")

    def moved(at: Any, width: int, apart: int) -> None:
        from_ = _some(b, of, b.mul(at, i64(apart)), width * apart)
        places = ir.Constant(ir.VectorType(i32, width), list(range(0, width * apart, apart)))
        _kept(b, b.shuffle_vector(from_, ir.Constant(from_.type, ir.Undefined), places), to, at)

    def one(at: Any, width: int) -> None:
        b.store(b.load(b.gep(of, [b.mul(at, stride)])), b.gep(to, [at]))

    single = function.append_basic_block("single")
    chosen = b.switch(stride, single)
    for apart in STRIDES:
        begin = function.append_basic_block(f"apart_{apart}")
        chosen.add_case(i64(apart), begin)
        b.position_at_end(begin)
        if apart == 1:
            _in_blocks(b, count, (32, 16, 8, 4), end, partial(moved, apart=1))
        else:  # nothing is read behind the last byte that is wanted
            last, before = b.sub(count, i64(1)), function.append_basic_block("last")
            _in_blocks(b, last, (16, 8, 4), before, partial(moved, apart=apart))
            end_of_blocks = b.block
            b.position_at_end(before)
            one(last, 1)
            b.branch(end)
            b.position_at_end(end_of_blocks)
        b.branch(single)
    b.position_at_end(single)
    _in_blocks(b, count, (1,), end, one)
    b.branch(end)
    b.position_at_end(end)
    b.ret_void()
    return function


def _some(b: Any, pointer: Any, at: Any, width: int) -> Any:
    return b.load(b.bitcast(b.gep(pointer, [at]), ir.VectorType(i8, width).as_pointer()), align=1)


def _kept(b: Any, value: Any, pointer: Any, at: Any) -> None:
    b.store(value, b.bitcast(b.gep(pointer, [at]), value.type.as_pointer()), align=1)


def _in_blocks(b: Any, count: Any, widths: Sequence[int], end: Any, body: Callable[[Any, int], None]) -> None:
    """body(at, width) for `count` elements in blocks of the first width that is not more than these, of which
    the last overlaps the one before it; then on to `end`. Where there are fewer than each width it goes on
    here."""
    function = b.function
    for width in widths:
        fits, loop, done, less = (
            function.append_basic_block(f"{name}_{width}") for name in ("fits", "loop", "done", "less")
        )
        b.cbranch(b.icmp_signed(">=", count, i64(width)), fits, less)
        b.position_at_end(fits)
        last = b.sub(count, i64(width))
        b.cbranch(b.icmp_signed(">", last, i64(0)), loop, done)
        b.position_at_end(loop)
        at = b.phi(i64)
        at.add_incoming(i64(0), fits)
        body(at, width)
        following = b.add(at, i64(width))
        at.add_incoming(following, loop)
        b.cbranch(b.icmp_signed("<", following, last), loop, done)
        b.position_at_end(done)
        body(last, width)
        b.branch(end)
        b.position_at_end(less)


def weaver(module: Any) -> Any:
    """void(to, first, second, third, fourth, count, flip, stride): words of a byte of each, with flip in each
    byte, of every byte or every second one; 16 words at a time, so that more than `count` are written, and up
    to WOVEN bytes more are read."""
    name = "kernelscope_woven"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, [pi32, *[pi8] * 4, i64, i64, i64])
    to, *sources, count, flip, stride = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    each = splat(b, b.mul(b.trunc(flip, i32), i32(0x01010101)))
    end, begins = function.append_basic_block("end"), function.append_basic_block("begins")
    b.cbranch(b.icmp_signed(">", count, i64(0)), begins, end)
    b.position_at_end(begins)
    second = function.append_basic_block("second")
    loops = {1: function.append_basic_block("loop"), 2: second}
    b.cbranch(b.icmp_signed("==", stride, i64(2)), second, loops[1])
    for apart, loop in loops.items():
        b.position_at_end(loop)
        at = b.phi(i64)
        at.add_incoming(i64(0), begins)
        rows = [_some(b, source, b.mul(at, i64(apart)), LANES * apart) for source in sources]
        kind = ir.VectorType(i32, LANES)
        while len(rows) > 1:  # one behind the other, of each every byte or every second one
            kind = ir.VectorType(i32, 2 * kind.count)
            step = apart if len(rows) == len(sources) else 1
            if len(rows) == 2:  # the last time: byte after byte of each
                places = [k + LANES * row for k in range(LANES) for row in range(len(sources))]
            else:
                places = list(range(0, kind.count * step, step))
            rows = [
                b.shuffle_vector(rows[k], rows[k + 1], ir.Constant(kind, places))
                for k in range(0, len(rows), 2)
            ]
        word = b.xor(b.bitcast(rows[0], words), each)
        b.store(word, b.bitcast(b.gep(to, [at]), words.as_pointer()), align=4)
        following = b.add(at, i64(LANES))
        at.add_incoming(following, loop)
        b.cbranch(b.icmp_signed("<", following, count), loop, end)
    b.position_at_end(end)
    b.ret_void()
    return function


# Places of the numbers that a sum is told.
X_SCALE, Z_SCALE, OUT_SCALE, OUT_ZERO, LOW, HIGH, X_ZERO, Z_ZERO, X_STEPS, Z_STEPS, ADDED, SURE = range(12)


def adder(module: Any) -> Any:
    """void(x, z, y, count, x_flip, z_flip, numbers): of count bytes, at least LANES, y = round(((x − x_zero)
    · x_scale + (z − z_zero) · z_scale) / out_scale) + out_zero, between low and high. A flip makes a signed
    byte the unsigned number that it is read as; its zero point is one, too.

    Worked out in float32, as x · x_steps + (z · z_steps + added), and again in double precision where one of
    LANES lies further than `sure` from a whole number (kernels.cpu.quantized.of_sum)."""
    name = "kernelscope_added"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, [pi8, pi8, pi8, i64, i64, i64, pf64])
    x, z, y, count, x_flip, z_flip, numbers = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    told = [b.load(b.gep(numbers, [i64(place)])) for place in range(SURE + 1)]
    wide = [splat(b, number) for number in told[:X_STEPS]]
    short = [splat(b, b.fptrunc(number, f32)) for number in told]
    flips = [splat(b, b.trunc(flip, i8)) for flip in (x_flip, z_flip)]
    last = b.sub(count, i64(LANES))
    entered, loop, exact, written, end = (
        b.block,
        *map(function.append_basic_block, ("loop", "exact", "written", "end")),
    )
    b.branch(loop)
    b.position_at_end(loop)
    at = b.phi(i64)
    at.add_incoming(i64(0), entered)

    def of(function: str, value: Any) -> Any:
        bits = "f32" if value.type == floats else "f64"
        own = llvm_own(module, f"{function}.v{LANES}{bits}", value.type, [value.type])
        return b.call(own, [value])

    def held(value: Any, numbers: list[Any]) -> Any:
        value = b.select(b.fcmp_ordered("<", value, numbers[LOW]), numbers[LOW], value)
        return b.select(b.fcmp_ordered(">", value, numbers[HIGH]), numbers[HIGH], value)

    given = [
        b.zext(b.xor(read(b, b.gep(source, [at]), bytes_), flip), words)
        for source, flip in zip((x, z), flips, strict=True)
    ]
    fma = llvm_own(module, f"fmuladd.v{LANES}f32", floats, [floats] * 3)
    total = b.call(fma, [b.uitofp(given[1], floats), short[Z_STEPS], short[ADDED]])
    total = held(b.call(fma, [b.uitofp(given[0], floats), short[X_STEPS], total]), short)
    whole = b.fptosi(of("rint", total), words)  # one instruction
    off = of("fabs", b.fsub(total, b.sitofp(whole, floats)))
    unsure = b.bitcast(b.fcmp_unordered(">", off, short[SURE]), ir.IntType(LANES))
    quick = b.trunc(whole, bytes_)
    b.cbranch(b.icmp_unsigned("!=", unsure, ir.Constant(unsure.type, 0)), exact, written)
    b.position_at_end(exact)
    products = [
        b.fmul(b.fsub(b.sitofp(each, reals), wide[zero]), wide[scale])
        for each, zero, scale in zip(given, (X_ZERO, Z_ZERO), (X_SCALE, Z_SCALE), strict=True)
    ]
    steps = of("rint", b.fdiv(b.fadd(*products), wide[OUT_SCALE]))
    slow = b.trunc(b.fptosi(held(b.fadd(steps, wide[OUT_ZERO]), wide), words), bytes_)
    b.branch(written)
    b.position_at_end(written)
    made = b.phi(bytes_)
    made.add_incoming(quick, loop)
    made.add_incoming(slow, exact)
    b.store(made, b.bitcast(b.gep(y, [at]), bytes_.as_pointer()), align=1)
    following = b.add(at, i64(LANES))
    # The last ones overlap those before them.
    at.add_incoming(b.select(b.icmp_signed("<", following, last), following, last), written)
    b.cbranch(b.icmp_signed("<", at, last), loop, end)
    b.position_at_end(end)
    b.ret_void()
    return function
