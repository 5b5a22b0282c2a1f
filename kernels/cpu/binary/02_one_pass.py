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
from kernels.cpu.common import broadcast, rows_of
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


def workspace(p):
    return 0


def bind(p, inputs, output, workspace):
    found = rows_of([*broadcast(p, inputs), output.reshape(p.shape)])
    if found is None or not any(found[2][1::2]):
        return load(registry.find("cpu", "binary", "ufunc")).bind(p, inputs, output, workspace)
    rows, columns, strides = found
    pieces = -(-columns // BLOCK)
    each = max(1, BLOCK // columns)
    arguments = [
        columns, rows, each, {"add": ADD, "sub": SUB, "mul": 2}[p.kind], KINDS[p.activation], *strides, 0,
        pieces, output, *inputs,
    ]  # fmt: skip
    return Call(step, arguments, workspace, 0, -(-rows // each) * pieces)
