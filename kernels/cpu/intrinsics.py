"""The functions of kernels.cpu.simd, as Numba and LLVM know them."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kernels.cpu import dots as of_dots
from kernels.cpu import octets as octets_of
from kernels.cpu import rows as rows_of
from kernels.cpu import turned as turned_by
from kernels.cpu import windows as windows_of
from kernels.cpu import winograd as tiles_of
from kernels.cpu.tiles import llvm_own

FLOATS, INTEGERS = types.CPointer(types.float32), types.CPointer(types.int64)
STEP = types.void(INTEGERS, types.int64, types.int64, FLOATS)
"""What a compiled function is: step(a, low, high, scratch)."""

_i64 = ir.IntType(64)
_pf32, _pi64 = ir.FloatType().as_pointer(), _i64.as_pointer()


def _pointer(kind: Any) -> Any:
    def typed(typing: Any, address: Any) -> Any:
        def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(kind))

        return kind(types.int64), made

    return intrinsic(typed)


floats, integers = _pointer(FLOATS), _pointer(INTEGERS)
doubles, words = _pointer(types.CPointer(types.float64)), _pointer(types.CPointer(types.int32))
halves, octets = _pointer(types.CPointer(types.int16)), _pointer(types.CPointer(types.uint8))


def _recast(kind: Any) -> Any:
    def typed(typing: Any, pointer: Any) -> Any:
        def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(kind))

        return kind(pointer), made

    return intrinsic(typed)


as_octets, as_words = _recast(types.CPointer(types.uint8)), _recast(types.CPointer(types.int32))
as_floats = _recast(types.CPointer(types.float32))


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
        return builder.call(llvm_own(builder.module, "readcyclecounter", _i64, []), [])

    return types.int64(), made


@intrinsic
def pause(typing: Any) -> Any:
    """What a thread does while it waits for another of the same core."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if is_x86():
            builder.call(llvm_own(builder.module, "x86.sse2.pause", ir.VoidType(), []), [])

    return types.void(), made


# Of the register that says how floating point is computed: numbers too small for full precision are zeros.
_ZEROS = 0x8040


def _control(builder: Any, name: str, slot: Any) -> None:
    pointer = ir.IntType(8).as_pointer()
    own = llvm_own(builder.module, f"x86.sse.{name}", ir.VoidType(), [pointer])
    builder.call(own, [builder.bitcast(slot, pointer)])


def is_x86() -> bool:
    return bool(llvm.get_process_triple().startswith(("x86_64", "i686")))


@intrinsic
def without_subnormals(typing: Any) -> Any:
    """From here on numbers below 2⁻¹²⁶, which take as long as a hundred products each, are zeros, where the
    processor can: what `as_before` is told to have them again."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not is_x86():
            return _i64(0)
        slot = cgutils.alloca_once(builder, ir.IntType(32))
        _control(builder, "stmxcsr", slot)
        before = builder.load(slot)
        builder.store(builder.or_(before, ir.IntType(32)(_ZEROS)), slot)
        _control(builder, "ldmxcsr", slot)
        return builder.zext(before, _i64)

    return types.int64(), made


@intrinsic
def as_before(typing: Any, state: Any) -> Any:
    """Floating point as it was when `without_subnormals` said so."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if is_x86():
            slot = cgutils.alloca_once(builder, ir.IntType(32))
            builder.store(builder.trunc(arguments[0], ir.IntType(32)), slot)
            _control(builder, "ldmxcsr", slot)

    return types.void(types.int64), made


@intrinsic
def give_way(typing: Any) -> Any:
    """Let another thread have the core, where the system has a word for it that C knows."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if os.name == "posix":
            if "sched_yield" not in builder.module.globals:
                ir.Function(builder.module, ir.FunctionType(ir.IntType(32), []), "sched_yield")
            builder.call(builder.module.globals["sched_yield"], [])

    return types.void(), made


# FUTEX_WAIT and FUTEX_WAKE of this process alone, and the number of that system call: Linux's own, futex(2).
_WAIT, _WAKE = 128, 129
_NUMBERS = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
_FUTEX = _NUMBERS.get(platform.machine()) if sys.platform == "linux" else None


def _futex(builder: Any, pointer: Any, do: int, value: Any) -> Any:
    if "syscall" not in builder.module.globals:
        ir.Function(builder.module, ir.FunctionType(_i64, [_i64], var_arg=True), "syscall")
    call, nothing = builder.module.globals["syscall"], ir.Constant(_i64, 0)
    return builder.call(call, [_i64(_FUTEX), pointer, _i64(do), value, nothing])


@intrinsic
def doze(typing: Any, pointer: Any, value: Any) -> Any:
    """Sleep for as long as the low 32 bits there are those of the value, and until roused, or a little
    shorter; 0 where the system has no such sleep."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if _FUTEX is None:
            return _i64(0)
        _futex(builder, arguments[0], _WAIT, arguments[1])
        return _i64(1)

    return types.int64(INTEGERS, types.int64), made


@intrinsic
def rouse(typing: Any, pointer: Any) -> Any:
    """Whoever dozes there."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if _FUTEX is not None:
            _futex(builder, arguments[0], _WAKE, _i64(1))

    return types.void(INTEGERS), made


@intrinsic
def invoke(typing: Any, address: Any, a: Any, low: Any, high: Any, scratch: Any) -> Any:
    """Another compiled function."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_pi64, _i64, _i64, _pf32])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return types.void(types.int64, INTEGERS, types.int64, types.int64, FLOATS), made


# --- a tile of a product: kernels.cpu.tiles has the code ---


@intrinsic
def tile(
    typing: Any, address: Any, rows: Any, vectors: Any, w: Any, w_row: Any, w_k: Any, x: Any, offsets: Any,
    bases: Any, depth: Any, y: Any, y_row: Any, columns: Any, lanes: Any, start: Any, start_row: Any,
    after: Any, soon: Any,
) -> Any:  # fmt: skip
    """y[i · y_row + columns[v] + lane] = after(start + Σ_k w[i · w_row + k · w_k] · x[bases[v] + offsets[k] +
    lane]) for i below `rows` and v below `vectors` (one of WIDTHS[rows]), of vector v the first lanes[v].

    address: kernels.cpu.compiled.tiles(). start: a value a row, start[i], where start_row is below 0; else
    start[i · start_row + v · LANES + lane]. soon: rows · depth elements from there
    on, which will be read next, are asked for meanwhile; w itself: none are.
    """

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [value.type for value in arguments[1:]])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    whole, real = types.int64, FLOATS
    return types.void(
        whole, whole, whole, real, whole, whole, real, INTEGERS, INTEGERS, whole, real, whole, INTEGERS,
        INTEGERS, real, whole, whole, real,
    ), made  # fmt: skip


# --- a tile of a product of eight-bit numbers: kernels.cpu.dots has the code ---


def _dots(by_row: bool, sizes: Any = of_dots.SIZES) -> Any:
    def typed(
        typing: Any, rows: Any, vectors: Any, spread: Any, starts: Any, along: Any, across: Any, quads: Any,
        y: Any, y_row: Any, left: Any, to: Any, numbers: Any, correction: Any, bias: Any, scale: Any,
        shift: Any, zero: Any, sums_of_x: Any, with_zeros: Any, with_shift: Any, ready: Any,
        apart: Any,
    ) -> Any:  # fmt: skip
        """Of rows i (one of DOT_ROWS) and vectors v (up to DOT_VECTORS of these) of lanes,

            sum = Σ_k dot4(spread[k · rows + i], across[along[k] + v · LANES + lane])   by row
            sum = Σ_k dot4(spread[starts[i] + along[k]], across[(v · quads + k) · LANES + lane])   by lane
            sum + correction − zero · sums_of_x

        the last where `with_zeros`; and of the first `left` lanes in y, an element of y_row a row, what
        `to` says (dots.INT32, …): the sum, or (sum + bias) · scale + shift (where `with_shift`), in float32
        or divided by numbers[0], rounded, moved and held between the last of `numbers`. What belongs
        to a channel is taken by row or by lane, sums_of_x by the other. ready, apart: as
        kernels.cpu.quantized.in_float32 makes them."""

        def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.call(of_dots.dispatcher(builder.module, by_row, sizes), arguments)

        words, reals, whole = types.CPointer(types.int32), types.CPointer(types.float64), types.int64
        return types.void(
            whole, whole, words, INTEGERS, INTEGERS, words, whole, types.CPointer(types.uint8),
            whole, whole, whole, reals, words, words, reals, reals, words, words, whole, whole, words, whole,
        ), made  # fmt: skip

    return intrinsic(typed)


dots_by_row, dots_by_lane = _dots(True), _dots(False)
largest_dots = _dots(True, ((8, 3),))  # which is soon compiled

_OCTETS = types.CPointer(types.uint8)


@intrinsic
def under_windows(
    typing: Any, x: Any, table: Any, vectors: Any, rows: Any, quads: Any, row_step: Any, stride: Any,
    flip: Any, padding: Any, weights: Any, ones: Any, kept: Any, y: Any, each: Any, to: Any, numbers: Any,
    correction: Any, bias: Any, scale: Any, shift: Any, zero: Any, with_zeros: Any, with_shift: Any,
    ready: Any, apart: Any,
) -> Any:  # fmt: skip
    """Of the outputs of one map, by vectors of LANES,

        sum = Σ_(r, q) dot4(weights[r · quads + q], four bytes of x at + r · row_step + 4q + lane · stride)

    and of these what `dots_by_row` says, in y (elements of `each` bytes). The table tells of each vector: at,
    where it lies in y, how many of its lanes are outputs; then, for each r and q, which of 4 LANES bytes are
    of the image: the others are `padding`. A stride is one of kernels.cpu.octets.STRIDES; 2 LANES bytes are
    read at once, 4 LANES where it is not 1. ones: the same words as `weights`, by which the bytes themselves
    are added up; kept: 2 LANES words to work in. correction, bias, scale, shift, zero and ready begin with
    those of this map."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.call(windows_of.planes(builder.module), arguments)

    ints, reals, whole = types.CPointer(types.int32), types.CPointer(types.float64), types.int64
    return types.void(
        _OCTETS, INTEGERS, *[whole] * 7, ints, ints, ints, _OCTETS, whole, whole, reals, ints, ints, reals,
        reals, ints, whole, whole, ints, whole,
    ), made  # fmt: skip


@intrinsic
def copied(typing: Any, to: Any, of: Any, count: Any, stride: Any) -> Any:
    """So many bytes: to[k] = of[k · stride], which do not overlap."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.call(octets_of.copier(builder.module), arguments)

    return types.void(_OCTETS, _OCTETS, types.int64, types.int64), made


@intrinsic
def picked(typing: Any, to: Any, of: Any, count: Any, stride: Any) -> Any:
    """So many float32: to[k] = of[k · stride], which do not overlap; soon where the stride is one of
    kernels.cpu.octets.STRIDES."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.call(rows_of.picker(builder.module), arguments)

    return types.void(FLOATS, FLOATS, types.int64, types.int64), made


def _of_row(function: Any) -> Any:
    def typed(typing: Any, x: Any, vectors: Any) -> Any:
        """The sum of so many vectors' elements, or the largest of them, NaN where one is."""

        def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.call(function(builder.module), arguments)

        return types.float32(FLOATS, types.int64), made

    return intrinsic(typed)


total, largest = _of_row(rows_of.total), _of_row(rows_of.largest)


@intrinsic
def turned(typing: Any, of: Any, of_row: Any, rows: Any, columns: Any, to: Any, to_row: Any) -> Any:
    """to[j · to_row + i] = of[i · of_row + j] for i below `rows` and j below `columns`, float32 that do not
    overlap."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.call(turned_by.blocks(builder.module), arguments)

    whole = types.int64
    return types.void(FLOATS, whole, whole, whole, FLOATS, whole), made


def _of_windows(largest: bool) -> Any:
    def typed(
        typing: Any, x: Any, table: Any, vectors: Any, rows: Any, columns: Any, row_step: Any,
        column_step: Any, stride: Any, weights: Any, bias: Any, after: Any, y: Any,
    ) -> Any:  # fmt: skip
        """Of the outputs of one map, by vectors of LANES, after(bias[0] + Σ_(r, c) weights[r · columns + c] ·
        x[at + r · row_step + c · column_step + lane · stride]), or the largest of bias[0] and these x. The
        table: as of `under_windows`; for each r and c, and then for all of them, of which lanes that is
        within the image. A stride is one of kernels.cpu.octets.STRIDES; LANES · stride elements are read at
        once."""

        def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.call(windows_of.sums(builder.module, largest), arguments)

        whole = types.int64
        return types.void(FLOATS, INTEGERS, *[whole] * 6, FLOATS, FLOATS, whole, FLOATS), made

    return intrinsic(typed)


sums_of_windows, maxima_of_windows = _of_windows(False), _of_windows(True)


@intrinsic
def to_tiles(typing: Any, x: Any, pitch: Any, tiles: Any, to: Any, to_place: Any, size: Any) -> Any:
    """Of a row of tiles of Winograd's method, 16 at a time, Bᵀ d B: place p of tile t is written to
    to[p · to_place + t]. The tile's d are size + 2 rows of x, `pitch` elements apart, from column t · size
    on. For up to 15 tiles more than there are, x is read and `to` written. size: one of
    kernels.cpu.winograd.SIZES."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.call(tiles_of.by_size(builder.module, tiles_of.to_tiles), arguments)

    whole = types.int64
    return types.void(FLOATS, whole, whole, FLOATS, whole, whole), made


@intrinsic
def from_tiles(
    typing: Any, of: Any, of_place: Any, tiles: Any, y: Any, pitch: Any, rows: Any, columns: Any, bias: Any,
    after: Any, size: Any,
) -> Any:  # fmt: skip
    """The other way, after(bias[0] + Aᵀ m A): of the products m of tile t, of[p · of_place + t], size · size
    outputs, in y from column t · size on; of its rows, `pitch` elements apart, the first `rows`, and of the
    columns those below `columns`."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.call(tiles_of.by_size(builder.module, tiles_of.from_tiles), arguments)

    whole = types.int64
    return types.void(FLOATS, whole, whole, FLOATS, *[whole] * 3, FLOATS, whole, whole), made


@intrinsic
def largest_of_windows(
    typing: Any, x: Any, table: Any, vectors: Any, rows: Any, columns: Any, row_step: Any, column_step: Any,
    stride: Any, signed: Any, y: Any,
) -> Any:  # fmt: skip
    """Of the outputs of one plane, by vectors of 4 LANES // stride, the largest of x at +
    r · row_step + c · column_step + k · stride. The table: as of `under_windows`; for each r and c, which
    of the 4 LANES bytes that are read are of the image. A stride is one of kernels.cpu.octets.STRIDES."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.call(windows_of.maxima(builder.module), arguments)

    whole = types.int64
    return types.void(_OCTETS, INTEGERS, *[whole] * 7, _OCTETS), made


@intrinsic
def woven(
    typing: Any, to: Any, first: Any, second: Any, third: Any, fourth: Any, count: Any, flip: Any, stride: Any
) -> Any:
    """Words of a byte of each, as kernels.cpu.octets.weaver says."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.call(octets_of.weaver(builder.module), arguments)

    return types.void(types.CPointer(types.int32), *[_OCTETS] * 4, *[types.int64] * 3), made


@intrinsic
def added(typing: Any, x: Any, z: Any, y: Any, count: Any, x_flip: Any, z_flip: Any, numbers: Any) -> Any:
    """Sums of so many bytes, at least LANES, between two scales, as kernels.cpu.octets.adder says."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.call(octets_of.adder(builder.module), arguments)

    whole = types.int64
    return types.void(*[_OCTETS] * 3, whole, whole, whole, types.CPointer(types.float64)), made
