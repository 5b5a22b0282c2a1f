"""Winograd's tiles of a plane in vector registers, written in LLVM's own language: before the products, and
behind them. kernels.cpu.intrinsics says what `to_tiles` and `from_tiles` do.

A lane is a tile: 16 tiles that lie side by side go through the sums together. Columns that lie a tile's
outputs apart are parted after they were read; two columns of a tile are the next tile's first two.

A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2016 (arXiv:1509.09308), section 4:
F(2×2, 3×3) of the points 0, 1, −1; F(4×4, 3×3) of 0, 1, −1, 2, −2; ∞ of both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir

from kernels.cpu.simd import LANES
from kernels.cpu.tiles import llvm_own
from kernels.cpu.vectors import (
    bounds,
    f32,
    filled,
    first_lanes,
    floats,
    i32,
    i64,
    internal,
    read,
    splat,
    within,
    words,
)

SIZES = (2, 4)  # outputs of a tile along an axis
WINDOW = 3

_pf32 = f32.as_pointer()
TO = [_pf32, i64, i64, _pf32, i64, i64]
FROM = [_pf32, i64, i64, _pf32, i64, i64, i64, _pf32, i64, i64]
Values = list[Any]


class _Sums:
    """Sums of vectors, by the builder."""

    def __init__(self, module: Any, b: Any) -> None:
        self._b, self._fma = b, llvm_own(module, f"fmuladd.v{LANES}f32", floats, [floats] * 3)

    def plus(self, left: Any, right: Any) -> Any:
        return self._b.fadd(left, right)

    def minus(self, left: Any, right: Any) -> Any:
        return self._b.fsub(left, right)

    def times_and(self, factor: float, of: Any, more: Any) -> Any:
        """factor · of + more."""
        return self._b.call(self._fma, [filled(floats, factor), of, more])


def _before(s: _Sums, d: Values) -> Values:
    """Bᵀ d."""
    if len(d) == 4:
        return [s.minus(d[0], d[2]), s.plus(d[1], d[2]), s.minus(d[2], d[1]), s.minus(d[1], d[3])]
    even, odd = s.times_and(-4.0, d[2], d[4]), s.times_and(-4.0, d[1], d[3])
    outer, inner = s.minus(d[4], d[2]), s.minus(d[3], d[1])
    return [
        s.times_and(4.0, d[0], s.times_and(-5.0, d[2], d[4])),
        s.plus(even, odd),
        s.minus(even, odd),
        s.times_and(2.0, inner, outer),
        s.times_and(-2.0, inner, outer),
        s.times_and(4.0, d[1], s.times_and(-5.0, d[3], d[5])),
    ]


def _behind(s: _Sums, m: Values) -> Values:
    """Aᵀ m."""
    near, apart = s.plus(m[1], m[2]), s.minus(m[1], m[2])
    if len(m) == 4:
        return [s.plus(m[0], near), s.minus(apart, m[3])]
    far, further = s.plus(m[3], m[4]), s.minus(m[3], m[4])
    return [
        s.plus(s.plus(m[0], near), far),
        s.times_and(2.0, further, apart),
        s.times_and(4.0, far, near),
        s.plus(s.times_and(8.0, further, apart), m[5]),
    ]


def _over_both(of: Callable[[_Sums, Values], Values], s: _Sums, columns: list[Values]) -> list[Values]:
    """`of` along both axes. columns: by column, then by row; the answer by row, then by column."""
    down = [of(s, column) for column in columns]
    return [of(s, list(row)) for row in zip(*down, strict=True)]


def to_tiles(module: Any, size: int) -> Any:
    """The function for tiles of so many outputs along an axis, in this module."""
    name = f"kernelscope_to_tiles_{size}"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, TO)
    x, pitch, tiles, to, to_place, _ = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    s = _Sums(module, b)
    side = size + WINDOW - 1
    first, ends = _sixteen(b, tiles)
    here = b.gep(x, [b.mul(first, i64(size))])
    columns: list[Values] = [[] for _ in range(side)]
    for row in range(side):
        of_row = b.gep(here, [b.mul(pitch, i64(row))])
        held = [read(b, b.gep(of_row, [i64(k * LANES)]), floats) for k in range(size)]
        near = _parted(b, held)
        beyond = [splat(b, b.load(b.gep(of_row, [i64(LANES * size + k)]))) for k in range(WINDOW - 1)]
        for column, value in zip(columns, [*near, *map(partial(_moved, b), near, beyond)], strict=False):
            column.append(value)
    made = _over_both(_before, s, columns)
    goal = b.gep(to, [first])
    for place, value in enumerate(value for row in made for value in row):
        at = b.gep(goal, [b.mul(to_place, i64(place))])
        b.store(value, b.bitcast(at, floats.as_pointer()), align=4)
    ends()
    return function


def from_tiles(module: Any, size: int) -> Any:
    """The function for tiles of so many outputs along an axis, in this module."""
    name = f"kernelscope_from_tiles_{size}"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, FROM)
    of, of_place, tiles, y, pitch, rows, columns, bias, after, _ = function.args
    entry = function.append_basic_block("entry")
    b = ir.IRBuilder(entry)
    s = _Sums(module, b)
    side = size + WINDOW - 1
    wide = ir.VectorType(f32, LANES * size)
    kinds = [wide, wide.as_pointer(), i32, ir.VectorType(ir.IntType(1), LANES * size)]
    stored = llvm_own(module, f"masked.store.v{LANES * size}f32.p0", ir.VoidType(), kinds)
    begin = splat(b, b.load(bias))
    between = bounds(b, after)
    first, ends = _sixteen(b, tiles)
    here = b.gep(of, [first])

    def product(row: int, column: int) -> Any:
        return read(b, b.gep(here, [b.mul(of_place, i64(row * side + column))]), floats)

    made = _over_both(_behind, s, [[product(row, column) for row in range(side)] for column in range(side)])
    held = first_lanes(b, b.sub(columns, b.mul(first, i64(size))), wide)
    for row, values in enumerate(made):
        so, on = function.append_basic_block(f"row_{row}"), function.append_basic_block(f"after_{row}")
        b.cbranch(b.icmp_signed(">", rows, i64(row)), so, on)
        b.position_at_end(so)
        done = [within(b, b.fadd(value, begin), between) for value in values]
        at = b.gep(y, [b.add(b.mul(pitch, i64(row)), b.mul(first, i64(size)))])
        b.call(stored, [_woven(b, done), b.bitcast(at, wide.as_pointer()), i32(4), held])
        b.branch(on)
        b.position_at_end(on)
    ends()
    return function


def _moved(b: Any, of: Any, beyond: Any) -> Any:
    """Each lane's value in the one before it; in the last one the value of `beyond`."""
    return b.shuffle_vector(of, beyond, ir.Constant(words, list(range(1, LANES + 1))))


def _parted(b: Any, values: Values) -> Values:
    """Of vectors that lie one behind the other every second element, or every fourth one, from the first on,
    from the second on, and so on."""
    if len(values) == 1:
        return values
    halves = []
    for start in (0, 1):
        places = ir.Constant(words, list(range(start, 2 * LANES, 2)))
        pairs = zip(values[::2], values[1::2], strict=True)
        halves.append(_parted(b, [b.shuffle_vector(*pair, places) for pair in pairs]))
    return [value for pair in zip(*halves, strict=True) for value in pair]


def _woven(b: Any, values: Values) -> Any:
    """One element of each, then the next of each."""
    while len(values) > 1:
        half = len(values) // 2
        values = [
            _alternating(b, left, right) for left, right in zip(values[:half], values[half:], strict=True)
        ]
    return values[0]


def _alternating(b: Any, left: Any, right: Any) -> Any:
    count = left.type.count
    places = [place + other for place in range(count) for other in (0, count)]
    return b.shuffle_vector(left, right, ir.Constant(ir.VectorType(i32, 2 * count), places))


def _sixteen(b: Any, tiles: Any) -> tuple[Any, Callable[[], None]]:
    """Begins what is done for each 16 tiles: the number of the first of them, and a call to end it, which
    returns from the function after the last."""
    entered, loop, end = b.block, *map(b.function.append_basic_block, ("loop", "end"))
    b.branch(loop)
    b.position_at_end(loop)
    first = b.phi(i64)
    first.add_incoming(i64(0), entered)

    def ends() -> None:
        following = b.add(first, i64(LANES))
        first.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed("<", following, tiles), loop, end)
        b.position_at_end(end)
        b.ret_void()

    return first, ends


def by_size(module: Any, of: Callable[[Any, int], Any]) -> Any:
    """The function that calls the one of the size that its last argument says."""
    functions = {size: of(module, size) for size in SIZES}
    name = f"{functions[SIZES[0]].name}_or_others"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, functions[SIZES[0]].ftype.args)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    end = function.append_basic_block("end")
    chosen = b.switch(function.args[-1], end)
    for size, its in functions.items():
        block = function.append_basic_block(f"of_{size}")
        chosen.add_case(i64(size), block)
        b.position_at_end(block)
        b.call(its, function.args)
        b.branch(end)
    b.position_at_end(end)
    b.ret_void()
    return function
