"""Vectors of LANES elements in LLVM's own language, for the tiles and passes that are written in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from kernels.cpu.simd import LANES, RELU, RELU6

i8, i16, i32, i64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
f32, f64, void = ir.FloatType(), ir.DoubleType(), ir.VoidType()
bytes_, words, floats, reals = (ir.VectorType(kind, LANES) for kind in (i8, i32, f32, f64))
mask_ = ir.VectorType(ir.IntType(1), LANES)


def internal(module: Any, name: str, arguments: Sequence[Any], inlined: bool = False) -> Any:
    """A function without a body that the module keeps to itself, once for all that call it, or as a part of
    each."""
    function = ir.Function(module, ir.FunctionType(void, arguments), name)
    function.linkage = "internal"
    function.attributes.add("alwaysinline" if inlined else "noinline")
    return function


def splat(b: Any, value: Any) -> Any:
    """The value in each lane."""
    kind = ir.VectorType(value.type, LANES)
    one = b.insert_element(ir.Constant(kind, ir.Undefined), value, i32(0))
    return b.shuffle_vector(one, one, ir.Constant(words, [0] * LANES))


def filled(kind: Any, value: float) -> Any:
    """The same of a number that is known."""
    return ir.Constant(kind, [value] * LANES)


def read(b: Any, pointer: Any, kind: Any) -> Any:
    """A vector where the pointer points to."""
    return b.load(b.bitcast(pointer, kind.as_pointer()), align=1)


def bounds(b: Any, after: Any) -> tuple[Any, Any]:
    """Between which vectors `within` holds a tile's sums; after: what it does to them (simd.RELU, …)."""
    low = b.select(b.icmp_signed(">=", after, i64(RELU)), f32(0.0), f32(float("-inf")))
    high = b.select(b.icmp_signed("==", after, i64(RELU6)), f32(6.0), f32(float("inf")))
    return splat(b, low), splat(b, high)


def within(b: Any, value: Any, between: tuple[Any, Any]) -> Any:
    """The values that are not between these as the nearer one; NaN stays what it is."""
    low, high = between
    value = b.select(b.fcmp_ordered("<", value, low), low, value)
    return b.select(b.fcmp_ordered(">", value, high), high, value)


def first_lanes(b: Any, count: Any, kind: Any = None) -> Any:
    """A mask of the first `count` lanes of a vector (of LANES, or of this type), all where there are more."""
    lanes = kind.count if kind else LANES
    numbers = ir.VectorType(i32, lanes)
    one = b.insert_element(ir.Constant(numbers, ir.Undefined), b.trunc(count, i32), i32(0))
    every = b.shuffle_vector(one, one, ir.Constant(numbers, [0] * lanes))
    return b.icmp_signed("<", ir.Constant(numbers, list(range(lanes))), every)
