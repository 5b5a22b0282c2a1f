"""Rows of float32 that are shorter than several vectors, written in LLVM's own language: compilers go through
such rows one element after the other. kernels.cpu.intrinsics says what `picked`, `total` and `largest` do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from kernels.cpu.octets import STRIDES
from kernels.cpu.simd import LANES
from kernels.cpu.tiles import llvm_own
from kernels.cpu.vectors import f32, filled, first_lanes, floats, i32, i64, internal, read, void, words

_pf32 = f32.as_pointer()


def total(module: Any) -> Any:
    return _gathered(module, "kernelscope_total", 0.0, lambda b, left, right: b.fadd(left, right))


def largest(module: Any) -> Any:
    def larger(b: Any, left: Any, right: Any) -> Any:
        more = b.or_(b.fcmp_ordered(">", right, left), b.fcmp_unordered("!=", right, right))
        return b.select(more, right, left)

    return _gathered(module, "kernelscope_largest", float("-inf"), larger)


def _gathered(module: Any, name: str, first: float, both: Callable[[Any, Any, Any], Any]) -> Any:
    """The function that makes one of all elements of so many vectors, two at a time."""
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(f32, [_pf32, i64]), name)
    function.linkage = "internal"
    x, vectors = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    entered = b.block
    loop, body, end = map(function.append_basic_block, ("loop", "body", "end"))
    b.branch(loop)
    b.position_at_end(loop)
    v, so_far = b.phi(i64), b.phi(floats)
    v.add_incoming(i64(0), entered)
    so_far.add_incoming(filled(floats, first), entered)
    b.cbranch(b.icmp_signed("<", v, vectors), body, end)
    b.position_at_end(body)
    so_far.add_incoming(both(b, so_far, read(b, b.gep(x, [b.mul(v, i64(LANES))]), floats)), body)
    v.add_incoming(b.add(v, i64(1)), body)
    b.branch(loop)
    b.position_at_end(end)
    found, apart = so_far, LANES // 2
    while apart:
        places = ir.Constant(words, [(lane + apart) % LANES for lane in range(LANES)])
        found = both(b, found, b.shuffle_vector(found, found, places))
        apart //= 2
    b.ret(b.extract_element(found, i32(0)))
    return function


def picker(module: Any) -> Any:
    """The function, in this module."""
    name = "kernelscope_picked"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, [_pf32, _pf32, i64, i64])
    b = ir.IRBuilder(function.append_basic_block("entry"))
    end, single = function.append_basic_block("end"), function.append_basic_block("single")
    chosen = b.switch(function.args[3], single)
    for apart in STRIDES:
        block = function.append_basic_block(f"apart_{apart}")
        chosen.add_case(i64(apart), block)
        b.position_at_end(block)
        _in_vectors(module, b, apart, end)
    b.position_at_end(single)
    _one_by_one(b, end)
    b.position_at_end(end)
    b.ret_void()
    return function


def _in_vectors(module: Any, b: Any, apart: int, end: Any) -> None:
    to, of, count, _ = b.function.args
    wide = ir.VectorType(f32, LANES * apart)
    picks = ir.Constant(words, list(range(0, LANES * apart, apart)))
    bits, its_bits = (ir.VectorType(ir.IntType(1), kind.count) for kind in (floats, wide))
    masked = [wide.as_pointer(), i32, its_bits, wide]
    loaded = llvm_own(module, f"masked.load.v{wide.count}f32.p0", wide, masked)
    stored = llvm_own(module, f"masked.store.v{LANES}f32.p0", void, [floats, floats.as_pointer(), i32, bits])
    nothing = ir.Constant(wide, [0.0] * wide.count)
    # Nothing is read behind the last element that is wanted.
    last_of_whole = ir.Constant(its_bits, [k <= (LANES - 1) * apart for k in range(wide.count)])

    def moved(at: Any, many: Any) -> None:
        seen = b.bitcast(b.gep(of, [b.mul(at, i64(apart))]), wide.as_pointer())
        goal = b.bitcast(b.gep(to, [at]), floats.as_pointer())
        if many is None and apart == 1:
            b.store(b.load(seen, align=4), goal, align=4)
            return
        mask = last_of_whole
        if many is not None:
            mask = first_lanes(b, b.add(b.mul(b.sub(many, i64(1)), i64(apart)), i64(1)), wide)
        value = b.call(loaded, [seen, i32(4), mask, nothing])
        value = b.shuffle_vector(value, ir.Constant(wide, ir.Undefined), picks)
        if many is None:
            b.store(value, goal, align=4)
        else:
            b.call(stored, [value, goal, i32(4), first_lanes(b, many)])

    entered = b.block
    loop, body, rest, some = (
        b.function.append_basic_block(f"{name}_{apart}") for name in ("loop", "body", "rest", "some")
    )
    b.branch(loop)
    b.position_at_end(loop)
    at = b.phi(i64)
    at.add_incoming(i64(0), entered)
    following = b.add(at, i64(LANES))
    b.cbranch(b.icmp_signed("<=", following, count), body, rest)
    b.position_at_end(body)
    moved(at, None)
    at.add_incoming(following, b.block)
    b.branch(loop)
    b.position_at_end(rest)
    b.cbranch(b.icmp_signed("<", at, count), some, end)
    b.position_at_end(some)
    moved(at, b.sub(count, at))
    b.branch(end)


def _one_by_one(b: Any, end: Any) -> None:
    to, of, count, stride = b.function.args
    entered, loop, body = (
        b.block,
        b.function.append_basic_block("loop"),
        b.function.append_basic_block("body"),
    )
    b.branch(loop)
    b.position_at_end(loop)
    at = b.phi(i64)
    at.add_incoming(i64(0), entered)
    b.cbranch(b.icmp_signed("<", at, count), body, end)
    b.position_at_end(body)
    b.store(b.load(b.gep(of, [b.mul(at, stride)])), b.gep(to, [at]))
    at.add_incoming(b.add(at, i64(1)), body)
    b.branch(loop)
