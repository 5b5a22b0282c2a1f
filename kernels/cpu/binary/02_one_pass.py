# op = "binary"
# rung = 2
# name = "one_pass"
# idea = "The operands and what comes behind them in one compiled loop: nothing is written to be read again."
# compiled = true
# [needs]
# kind = ["add", "sub", "mul"]
"""Rows of elements, of which an operand has each its own, or one for the row, or the same row again; all else
is left to the ufunc.
"""

from kernels import registry
from kernels.cpu import load, simd
from kernels.cpu.common import broadcast, merged
from kernels.cpu.compiled import Call, compiled, inlined
from kernels.cpu.loops import KINDS, activate

BLOCK = 1 << 13  # elements of a part, about
ADD, SUB = range(2)


@inlined
def together(kind, left, right):
    return left + right if kind == ADD else (left - right if kind == SUB else left * right)


@compiled
def step(a, low, high, scratch):
    columns, rows, each, kind, after = a[1], a[2], a[3], a[4], a[5]
    y = simd.floats(a[12])
    for part in range(low, high):
        row, first = part // a[11] * each, part % a[11] * BLOCK
        last = min(columns, first + BLOCK)
        for r in range(row, min(rows, row + each)):
            left, right = simd.floats(a[13]), simd.floats(a[14])
            left, right = simd.shifted(left, r * a[6]), simd.shifted(right, r * a[8])
            to = simd.shifted(y, r * columns)
            if a[7] == 1 and a[9] == 1:
                for k in range(first, last):
                    to[k] = together(kind, left[k], right[k])
            elif a[7] == 1:
                one = right[0]
                for k in range(first, last):
                    to[k] = together(kind, left[k], one)
            else:
                one = left[0]
                for k in range(first, last):
                    to[k] = together(kind, one, right[k])
            activate(after, simd.shifted(to, first), last - first)


def _rows(p, inputs, output):
    """(rows, columns, strides of both operands along both); None where they are no such rows."""
    a, b, y = merged(*broadcast(p, inputs), output.reshape(p.shape))
    if y.ndim > 2 or y.size == 0:
        return None
    a, b, y = (of.reshape((1, *of.shape)) if of.ndim == 1 else of for of in (a, b, y))
    if a.ndim != 2:
        return None
    strides = [s // 4 for of in (a, b) for s in of.strides]
    if y.shape[0] == 1:
        strides[0] = strides[2] = 0
    fits = strides[1] in (0, 1) and strides[3] in (0, 1) and strides[1] + strides[3] > 0
    return (*y.shape, strides) if fits else None


def workspace(p):
    return 0


def bind(p, inputs, output, workspace):
    found = _rows(p, inputs, output)
    if found is None:
        return load(registry.find("cpu", "binary", "ufunc")).bind(p, inputs, output, workspace)
    rows, columns, strides = found
    pieces = -(-columns // BLOCK)
    each = max(1, BLOCK // columns)
    arguments = [
        columns, rows, each, {"add": ADD, "sub": SUB, "mul": 2}[p.kind], KINDS[p.activation], *strides, 0,
        pieces, output, *inputs,
    ]  # fmt: skip
    return Call(step, arguments, workspace, 0, -(-rows // each) * pieces)
