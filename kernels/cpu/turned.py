"""Rows as columns, in blocks of LANES × LANES that vector registers hold; written in LLVM's own language.
kernels.cpu.intrinsics says what `turned` does.

Four times each two rows, 8, 4, 2 and 1 apart, exchange half of their elements: 64 instructions a block.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from kernels.cpu.simd import LANES
from kernels.cpu.tiles import llvm_own
from kernels.cpu.vectors import f32, first_lanes, floats, i32, i64, internal, mask_, void, words

_pf32 = f32.as_pointer()
_at = floats.as_pointer()
ARGUMENTS = [_pf32, i64, i64, i64, _pf32, i64]


def blocks(module: Any) -> Any:
    """The function, in this module."""
    name = "kernelscope_turned"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, ARGUMENTS)
    _, _, rows, columns, _, _ = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    down, across, begins, ends, next_row, end = map(
        function.append_basic_block, ("down", "across", "begins", "ends", "next_row", "end")
    )
    entered = b.block
    b.branch(down)
    b.position_at_end(down)
    i = b.phi(i64)
    i.add_incoming(i64(0), entered)
    b.cbranch(b.icmp_signed("<", i, rows), across, end)
    b.position_at_end(across)
    j = b.phi(i64)
    j.add_incoming(i64(0), down)
    b.cbranch(b.icmp_signed("<", j, columns), begins, next_row)
    b.position_at_end(begins)
    _block(module, b, i, j, ends)
    b.position_at_end(ends)
    j.add_incoming(b.add(j, i64(LANES)), ends)
    b.branch(across)
    b.position_at_end(next_row)
    i.add_incoming(b.add(i, i64(LANES)), next_row)
    b.branch(down)
    b.position_at_end(end)
    b.ret_void()
    return function


def _block(module: Any, b: Any, i: Any, j: Any, ends: Any) -> None:
    """The block at row i, column j. Rows that are none are read as the last one; nothing beyond a row is
    read, and nothing beyond a column's is written."""
    of, of_row, rows, columns, to, to_row = b.function.args
    loaded = llvm_own(module, f"masked.load.v{LANES}f32.p0", floats, [_at, i32, mask_, floats])
    stored = llvm_own(module, f"masked.store.v{LANES}f32.p0", void, [floats, _at, i32, mask_])
    nothing = ir.Constant(floats, [0.0] * LANES)
    last, within = b.sub(rows, i64(1)), first_lanes(b, b.sub(columns, j))
    held = []
    for k in range(LANES):
        row = b.add(i, i64(k))
        row = b.select(b.icmp_signed("<", row, rows), row, last)
        place = b.gep(of, [b.add(b.mul(row, of_row), j)])
        held.append(b.call(loaded, [b.bitcast(place, _at), i32(4), within, nothing]))
    apart = LANES // 2
    while apart:
        held = _exchanged(b, held, apart)
        apart //= 2
    there = first_lanes(b, b.sub(rows, i))
    for k, value in enumerate(held):
        column = b.add(j, i64(k))
        so = b.function.append_basic_block(f"column_{k}")
        b.cbranch(b.icmp_signed("<", column, columns), so, ends)
        b.position_at_end(so)
        goal = b.gep(to, [b.add(b.mul(column, to_row), i)])
        b.call(stored, [value, b.bitcast(goal, _at), i32(4), there])
    b.branch(ends)


def _exchanged(b: Any, rows: list[Any], apart: int) -> list[Any]:
    """Of rows k and k + apart, two blocks of `apart` elements, one behind the other, change places."""
    made = list(rows)
    low = [lane - apart + LANES if lane & apart else lane for lane in range(LANES)]
    high = [lane + LANES if lane & apart else lane + apart for lane in range(LANES)]
    for k in range(LANES):
        if not k & apart:
            pair = rows[k], rows[k + apart]
            made[k] = b.shuffle_vector(*pair, ir.Constant(words, low))
            made[k + apart] = b.shuffle_vector(*pair, ir.Constant(words, high))
    return made
