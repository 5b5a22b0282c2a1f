"""A plane of bytes under windows, in vector registers, written in LLVM's own language: what one map makes of
it, and the largest of each. kernels.cpu.intrinsics says what `under_windows` and `largest_of_windows` do.

Of a row of a window four bytes that lie side by side are a word. The words of LANES outputs are brought
about by two permutations of what is loaded once: words first, then bytes within four words. So a window of
3 × 3 is three loads, and three instructions that multiply four numbers each (kernels.cpu.dots).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import ir

from kernels.cpu.dots import HIGH, dot, exact, in_bytes, stored_lanes
from kernels.cpu.octets import STRIDES
from kernels.cpu.quantized import BYTES
from kernels.cpu.simd import LANES, OF_VECTOR
from kernels.cpu.tiles import llvm_own
from kernels.cpu.vectors import (
    bounds,
    bytes_,
    f32,
    f64,
    floats,
    i8,
    i32,
    i64,
    internal,
    read,
    splat,
    within,
    words,
)  # fmt: skip

WHOLE = ir.VectorType(i8, 4 * LANES)
BITS = ir.VectorType(ir.IntType(1), 4 * LANES)
X_AT, Y_AT, COUNT, MASKS = range(OF_VECTOR + 1)  # of a vector: what the table says of it

_pi8, _pi32, _pi64, _pf32, _pf64 = (kind.as_pointer() for kind in (i8, i32, i64, f32, f64))
ARGUMENTS = [
    _pi8, _pi64, i64, i64, i64, i64, i64, i64, i64, _pi32, _pi32, _pi32, _pi8, i64, i64, _pf64, _pi32,
    _pi32, _pf64, _pf64, _pi32, i64, i64, _pi32, i64,
]  # fmt: skip
UNROLLED = 3  # rows of a window, a word each: the most frequent one
ANY, PLAIN, FLIPPED = range(3)  # windows; those of that many rows, of unsigned bytes; and of signed ones
KINDS = 3


def planes(module: Any) -> Any:
    """The function for every stride, in this module."""
    name = "kernelscope_windows"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, ARGUMENTS)
    (
        _, table, vectors, rows, quads, _, stride, flip, _, _, _, kept, y, each, to, numbers,
        correction, bias, scale, shift, zero, with_zeros, with_shift, ready, _,
    ) = function.args  # fmt: skip
    b = ir.IRBuilder(function.append_basic_block("entry"))
    is_known = b.and_(b.icmp_signed("==", rows, i64(UNROLLED)), b.icmp_signed("==", quads, i64(1)))
    is_known = b.and_(is_known, b.icmp_signed("<=", stride, i64(2)))
    kind = b.select(is_known, b.select(b.icmp_signed("==", flip, i64(0)), i64(PLAIN), i64(FLIPPED)), i64(ANY))
    which = b.add(b.mul(stride, i64(KINDS)), kind)
    pitch = b.add(b.mul(rows, quads), i64(MASKS))
    entered, begins, exactly, end = (
        b.block,
        *map(function.append_basic_block, ("begins", "exactly", "end")),
    )
    b.branch(begins)
    b.position_at_end(begins)
    v = b.phi(i64)
    v.add_incoming(i64(0), entered)
    chosen = b.switch(which, end)
    reached = []
    for apart in STRIDES:
        for kind in (ANY, PLAIN, FLIPPED) if apart <= 2 else (ANY,):
            block = function.append_basic_block(f"of_{apart}_{kind}")
            chosen.add_case(i64(KINDS * apart + kind), block)
            b.position_at_end(block)
            of_stride = _plane(module, f"{name}_{apart}_{kind}", apart, kind)
            stopped = b.call(of_stride, [v, *function.args])
            reached.append((stopped, block))
            b.cbranch(b.icmp_signed("<", stopped, vectors), exactly, end)
    b.position_at_end(exactly)
    at = b.phi(i64)
    for stopped, block in reached:
        at.add_incoming(stopped, block)
    told = b.gep(table, [b.mul(at, pitch)])
    y_at, count = (b.load(b.gep(told, [i64(place)])) for place in (Y_AT, COUNT))
    b.call(exact(module, f"{name}_exactly", True), [
        b.bitcast(kept, words.as_pointer()), i64(1), i64(1), b.gep(y, [b.mul(y_at, each)]), i64(0), count, to,
        numbers, correction, bias, scale, shift, zero, b.gep(kept, [i64(LANES)]), with_zeros, with_shift,
        ready, i64(0),
    ])  # fmt: skip
    following = b.add(at, i64(1))
    v.add_incoming(following, exactly)
    b.cbranch(b.icmp_signed("<", following, vectors), begins, end)
    b.position_at_end(end)
    b.ret_void()
    return function


def _plane(module: Any, name: str, stride: int, kind: int) -> Any:
    """The bytes of vectors from `first` on, as far as float32 is sure: the number of the one that is not, or
    of no byte, whose sums are kept; nothing is called in between, so that registers hold what all share."""
    function = ir.Function(module, ir.FunctionType(i64, [i64, *ARGUMENTS]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    (
        start, x, table, vectors, rows, quads, row_step, _, flip, padding, weights, ones, kept, y, _, to,
        numbers, _, _, _, _, zero, with_zeros, _, ready, apart,
    ) = function.args  # fmt: skip
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def block(name: str) -> Any:
        return function.append_basic_block(name)

    taps = b.mul(rows, quads)
    pitch = b.add(taps, i64(MASKS))
    flips, padded = (_splat_bytes(b, b.trunc(value, i8)) for value in (flip, padding))
    told = [b.load(b.gep(numbers, [i64(place)])) for place in range(HIGH + 1)]
    short = [splat(b, b.fptrunc(number, f32)) for number in told]
    quickly = b.and_(b.icmp_signed(">", apart, i64(0)), b.icmp_signed("==", to, i64(BYTES)))
    base, factor, moved, sure = (
        splat(b, b.load(b.gep(ready, [b.mul(apart, i64(k))]), align=4)) for k in range(4)
    )
    factor, moved, sure = (b.bitcast(word, floats) for word in (factor, moved, sure))
    weight_zero = splat(b, b.load(zero, align=4))
    known = [
        splat(b, b.load(b.gep(weights, [i64(tap)]), align=1)) for tap in range(0 if kind == ANY else UNROLLED)
    ]
    v, here, masks, y_at, count, ends = _each_vector(b, x, table, pitch, vectors, start)

    def seen(row: Any, quad: Any, tap: Any) -> Any:
        place = b.gep(here, [b.add(b.mul(row, row_step), b.mul(quad, i64(4)))])
        inside = b.bitcast(b.load(b.gep(masks, [tap])), BITS)
        under = b.select(inside, _spread(b, place, stride), padded)
        return b.bitcast(under if kind == PLAIN else b.xor(under, flips), words)

    def summed(word_of: Callable[[Any], Any]) -> Any:
        """Of every row and quad of the window, the words seen there times these."""
        none = ir.Constant(words, [0] * LANES)
        if kind != ANY:
            total = none
            for tap in range(UNROLLED):
                total = dot(module, b, total, seen(i64(tap), i64(0), i64(tap)), word_of(tap))
            return total

        def added(row: Any, quad: Any, tap: Any, total: Any) -> Any:
            return dot(module, b, total, seen(row, quad, tap), word_of(tap))

        return _over_taps(b, quads, taps, none, added)

    def of(pointer: Any) -> Callable[[Any], Any]:
        def word_of(tap: Any) -> Any:
            if isinstance(tap, int) and pointer is weights:
                return known[tap]
            at = i64(tap) if isinstance(tap, int) else tap
            return splat(b, b.load(b.gep(pointer, [at]), align=1))

        return word_of

    sums = summed(of(weights))
    before, zeros, whole = b.block, block("zeros"), block("whole")
    b.cbranch(b.icmp_signed("!=", with_zeros, i64(0)), zeros, whole)
    b.position_at_end(zeros)
    totals = summed(of(ones))
    b.store(totals, b.bitcast(b.gep(kept, [i64(LANES)]), words.as_pointer()), align=4)
    less, zeros_end = b.sub(sums, b.mul(weight_zero, totals)), b.block
    b.branch(whole)
    b.position_at_end(whole)
    found = b.phi(words)
    found.add_incoming(sums, before)
    found.add_incoming(less, zeros_end)
    quick, unsure, certain, following = (block(name) for name in ("quick", "unsure", "certain", "following"))
    b.cbranch(quickly, quick, unsure)

    b.position_at_end(quick)
    made, off = in_bytes(module, b, b.add(found, base), factor, moved, short)
    bits = b.bitcast(b.fcmp_unordered(">", off, sure), ir.IntType(LANES))
    b.cbranch(b.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0)), unsure, certain)

    b.position_at_end(unsure)
    b.store(sums, b.bitcast(kept, words.as_pointer()), align=4)
    b.ret(v)

    b.position_at_end(certain)
    goal = b.bitcast(b.gep(y, [y_at]), bytes_.as_pointer())
    full, some = block("full"), block("some")
    b.cbranch(b.icmp_signed("==", count, i64(LANES)), full, some)
    b.position_at_end(full)
    b.store(made, goal, align=1)
    b.branch(following)
    b.position_at_end(some)
    lanes = ir.Constant(words, list(range(LANES)))
    stored_lanes(module, b, made, goal, b.icmp_signed("<", lanes, splat(b, b.trunc(count, i32))))
    b.branch(following)

    b.position_at_end(following)
    ends()
    b.ret(vectors)
    return function


def _splat_bytes(b: Any, value: Any) -> Any:
    one = b.insert_element(ir.Constant(WHOLE, ir.Undefined), value, i32(0))
    zeros = ir.Constant(ir.VectorType(i32, 4 * LANES), [0] * 4 * LANES)
    return b.shuffle_vector(one, one, zeros)


def _spread(b: Any, pointer: Any, stride: int) -> Any:
    """Byte 4 l + k is the one `l · stride + k` further on: k of lane l. Up to 2 LANES bytes are read, or 4
    LANES where the stride is not 1."""
    few = ir.VectorType(i32, LANES // 2 if stride == 1 else LANES)
    loaded = read(b, pointer, few)
    # Lanes in fours, whose bytes lie in four words one after the other.
    fours = [stride * (lane // 4) + lane % 4 for lane in range(LANES)]
    fours = [min(place, few.count - 1) for place in fours]
    near = b.bitcast(
        b.shuffle_vector(loaded, ir.Constant(few, ir.Undefined), ir.Constant(words, fours)), WHOLE
    )
    places = [lane // 4 * 16 + lane % 4 * stride + k for lane in range(LANES) for k in range(4)]
    kinds = ir.VectorType(i32, 4 * LANES)
    return b.shuffle_vector(near, ir.Constant(WHOLE, ir.Undefined), ir.Constant(kinds, places))


# --- what all of them have in common ---


def _each_vector(b: Any, x: Any, table: Any, pitch: Any, vectors: Any, first: Any = None) -> Any:
    """Begins what is done for each vector. Of one: its number; x where its first window begins; what the
    table says of its taps; where its outputs lie in y; how many they are; and a call to end what is done for
    each, behind which it goes on after the last. first: one of them, to begin with; else all, if there are
    any."""
    entered, begins, end = b.block, *map(b.function.append_basic_block, ("begins", "end"))
    if first is None:
        b.cbranch(b.icmp_signed(">", vectors, i64(0)), begins, end)
    else:
        b.branch(begins)
    b.position_at_end(begins)
    v = b.phi(i64)
    v.add_incoming(i64(0) if first is None else first, entered)
    told = b.gep(table, [b.mul(v, pitch)])
    x_at, y_at, count = (b.load(b.gep(told, [i64(place)])) for place in (X_AT, Y_AT, COUNT))

    def ends() -> None:
        following = b.add(v, i64(1))
        v.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed("<", following, vectors), begins, end)
        b.position_at_end(end)

    return v, b.gep(x, [x_at]), b.gep(told, [i64(MASKS)]), y_at, count, ends


def _over_taps(b: Any, columns: Any, taps: Any, begin: Any, body: Callable[[Any, Any, Any, Any], Any]) -> Any:
    """What body(row, column, tap, what it made of the tap before) makes of the last tap of a window, whose
    rows are of so many columns. begin: what it is given with the first."""
    before, loop, done = b.block, *map(b.function.append_basic_block, ("loop", "done"))
    b.branch(loop)
    b.position_at_end(loop)
    row, column, tap, so_far = b.phi(i64), b.phi(i64), b.phi(i64), b.phi(begin.type)
    made = body(row, column, tap, so_far)
    next_column, next_tap = b.add(column, i64(1)), b.add(tap, i64(1))
    wraps = b.icmp_signed("==", next_column, columns)
    for phi, first, further in (
        (row, i64(0), b.add(row, b.zext(wraps, i64))),
        (column, i64(0), b.select(wraps, i64(0), next_column)),
        (tap, i64(0), next_tap),
        (so_far, begin, made),
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(further, b.block)
    b.cbranch(b.icmp_signed("<", next_tap, taps), loop, done)
    b.position_at_end(done)
    return made


def _one_of(b: Any, number: Any, functions: Iterable[tuple[int, Any]]) -> None:
    """The end of a function: the one of this number, if there is one, is called with the same arguments."""
    end = b.function.append_basic_block("end")
    chosen = b.switch(number, end)
    for case, function in functions:
        block = b.function.append_basic_block(f"of_{case}")
        chosen.add_case(i64(case), block)
        b.position_at_end(block)
        b.call(function, b.function.args)
        b.branch(end)
    b.position_at_end(end)
    b.ret_void()


# --- the largest ---

MOST = [_pi8, _pi64, i64, i64, i64, i64, i64, i64, i64, _pi8]


def maxima(module: Any) -> Any:
    """The function for every stride, of unsigned and of signed bytes, in this module."""
    name = "kernelscope_maxima"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, MOST)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    stride, signed = function.args[7:9]
    _one_of(b, b.add(b.mul(stride, i64(2)), signed), (
        (2 * apart + sign, _largest(module, f"{name}_{apart}_{sign}", apart, bool(sign)))
        for apart in STRIDES
        for sign in (0, 1)
    ))  # fmt: skip
    return function


def _largest(module: Any, name: str, stride: int, signed: bool) -> Any:
    function = internal(module, name, MOST)
    x, table, vectors, rows, columns, row_step, column_step, _, _, y = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    taps = b.mul(rows, columns)
    lowest = ir.Constant(WHOLE, [-128 if signed else 0] * WHOLE.count)
    compared = b.icmp_signed if signed else b.icmp_unsigned
    pitch = b.add(taps, i64(MASKS))
    _, here, masks, y_at, count, ends = _each_vector(b, x, table, pitch, vectors)

    def larger(row: Any, column: Any, tap: Any, most: Any) -> Any:
        place = b.add(b.mul(row, row_step), b.mul(column, column_step))
        of_image = b.bitcast(b.load(b.gep(masks, [tap])), BITS)
        seen = b.select(of_image, read(b, b.gep(here, [place]), WHOLE), lowest)
        return b.select(compared(">", seen, most), seen, most)

    most = _over_taps(b, columns, taps, lowest, larger)
    lanes = WHOLE.count // stride
    kind = ir.VectorType(i8, lanes)
    places = ir.Constant(ir.VectorType(i32, lanes), list(range(0, lanes * stride, stride)))
    picked = b.shuffle_vector(most, ir.Constant(WHOLE, ir.Undefined), places)
    goal = b.bitcast(b.gep(y, [y_at]), kind.as_pointer())
    following, full, some = map(function.append_basic_block, ("following", "full", "some"))
    b.cbranch(b.icmp_signed("==", count, i64(lanes)), full, some)
    b.position_at_end(full)
    b.store(picked, goal, align=1)
    b.branch(following)
    b.position_at_end(some)
    bits = ir.VectorType(ir.IntType(1), lanes)
    number = ir.Constant(kind, list(range(lanes)))
    one = b.insert_element(ir.Constant(kind, ir.Undefined), b.trunc(count, i8), i32(0))
    every = b.shuffle_vector(one, one, ir.Constant(ir.VectorType(i32, lanes), [0] * lanes))
    store = llvm_own(
        module, f"masked.store.v{lanes}i8.p0", ir.VoidType(), [kind, kind.as_pointer(), i32, bits]
    )
    b.call(store, [picked, goal, i32(1), b.icmp_unsigned("<", number, every)])
    b.branch(following)
    b.position_at_end(following)
    ends()
    b.ret_void()
    return function


# --- sums and maxima of float32 ---

SUMS = [_pf32, _pi64, i64, i64, i64, i64, i64, i64, _pf32, _pf32, i64, _pf32]
SHORT = ir.VectorType(ir.IntType(1), LANES)
SQUARES = (3, 5)  # windows of so many rows and columns have their weights in registers
LARGER = 0


def sums(module: Any, largest: bool = False) -> Any:
    """The function for every stride, in this module. largest: of the same arguments, but for the weights and
    what comes after, which count for nothing, the largest in place of the sum."""
    name = f"kernelscope_window_{'maxima' if largest else 'sums'}"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, SUMS)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    rows, columns, stride = (function.args[place] for place in (3, 4, 7))
    side = i64(LARGER)
    for square in SQUARES:
        fits = b.and_(b.icmp_signed("==", rows, i64(square)), b.icmp_signed("==", columns, i64(square)))
        side = b.select(b.and_(fits, b.icmp_signed("<=", stride, i64(2))), i64(square), side)
    _one_of(b, b.add(b.mul(stride, i64(8)), side), (
        (8 * apart + of_side, _summed(module, f"{name}_{apart}_{of_side}", apart, of_side, largest))
        for apart in STRIDES
        for of_side in ((LARGER, *SQUARES) if apart <= 2 else (LARGER,))
    ))  # fmt: skip
    return function


def _summed(module: Any, name: str, stride: int, side: int, largest: bool) -> Any:
    function = internal(module, name, SUMS)
    x, table, vectors, rows, columns, row_step, column_step, _, weights, bias, after, y = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def block(name: str) -> Any:
        return function.append_basic_block(name)

    fma = llvm_own(module, f"fmuladd.v{LANES}f32", floats, [floats] * 3)
    taps = b.mul(rows, columns)
    pitch = b.add(taps, i64(MASKS + 1))
    begin = splat(b, b.load(bias))
    between = bounds(b, after)
    known = [None if largest else splat(b, b.load(b.gep(weights, [i64(tap)]))) for tap in range(side * side)]
    _, here, masks, y_at, count, ends = _each_vector(b, x, table, pitch, vectors)
    wide = ir.VectorType(f32, LANES * stride)
    picks = ir.Constant(words, list(range(0, LANES * stride, stride)))

    def added(total: Any, row: Any, column: Any, tap: Any, weight: Any, cut: bool) -> Any:
        place = b.gep(here, [b.add(b.mul(row, row_step), b.mul(column, column_step))])
        seen = b.load(b.bitcast(place, wide.as_pointer()), align=4)
        if stride > 1:
            seen = b.shuffle_vector(seen, ir.Constant(wide, ir.Undefined), picks)
        if largest:  # NaN where one of them is
            more = b.or_(b.fcmp_ordered(">", seen, total), b.fcmp_unordered("!=", seen, seen))
            made = b.select(more, seen, total)
        else:
            made = b.call(fma, [weight, seen, total])
        return b.select(_lanes_of(b, masks, tap), made, total) if cut else made

    def window(cut: bool) -> Any:
        """The sums; cut: where something of a window lies outside the image."""
        if side:
            total = begin
            for tap in range(side * side):
                row, column = divmod(tap, side)
                total = added(total, i64(row), i64(column), i64(tap), known[tap], cut)
            return total

        def further(row: Any, column: Any, tap: Any, total: Any) -> Any:
            weight = None if largest else splat(b, b.load(b.gep(weights, [tap])))
            return added(total, row, column, tap, weight, cut)

        return _over_taps(b, columns, taps, begin, further)

    everywhere = _lanes_of(b, masks, taps)
    inner, edge, written = block("inner"), block("edge"), block("written")
    bits = b.bitcast(everywhere, ir.IntType(LANES))
    b.cbranch(b.icmp_unsigned("==", bits, ir.Constant(bits.type, -1)), inner, edge)
    made = []
    for of, cut in ((inner, False), (edge, True)):
        b.position_at_end(of)
        made.append((window(cut), b.block))
        b.branch(written)
    b.position_at_end(written)
    value = b.phi(floats)
    for one, before in made:
        value.add_incoming(one, before)
    if not largest:
        value = within(b, value, between)
    lanes = ir.Constant(words, list(range(LANES)))
    first = b.icmp_signed("<", lanes, splat(b, b.trunc(count, i32)))
    stored_lanes(module, b, value, b.bitcast(b.gep(y, [y_at]), floats.as_pointer()), first)
    ends()
    b.ret_void()
    return function


def _lanes_of(b: Any, masks: Any, tap: Any) -> Any:
    word = b.load(b.bitcast(b.gep(masks, [tap]), ir.IntType(LANES).as_pointer()))
    return b.bitcast(word, SHORT)
