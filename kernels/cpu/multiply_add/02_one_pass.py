# op = "multiply_add"
# rung = 2
# name = "one_pass"
# idea = "Product, sum and what comes behind them in one compiled loop: nothing is written to be read again."
# compiled = true
"""Rows of elements, of which an operand has each its own, or one for the row, or the same row again; all else
is left to the ufunc.
"""

from kernels import registry
from kernels.cpu import load, simd
from kernels.cpu.common import broadcast, rows_of
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.loops import KINDS, activate

BLOCK = 1 << 13  # elements of a part, about


@compiled
def step(a, low, high, scratch):
    columns, rows, each, after, pieces = a[1], a[2], a[3], a[4], a[5]
    y, first_of, second_of, third_of = (
        simd.floats(a[12]),
        simd.floats(a[13]),
        simd.floats(a[14]),
        simd.floats(a[15]),
    )
    for part in range(low, high):
        row, first = part // pieces * each, part % pieces * BLOCK
        last = min(columns, first + BLOCK)
        for r in range(row, min(rows, row + each)):
            left, right = simd.shifted(first_of, r * a[6]), simd.shifted(second_of, r * a[8])
            more, to = simd.shifted(third_of, r * a[10]), simd.shifted(y, r * columns)
            if a[7] == 1 and a[9] == 0 and a[11] == 0:
                factor, one = right[0], more[0]
                for k in range(first, last):
                    to[k] = left[k] * factor + one
            elif a[7] == 1 and a[9] == 1 and a[11] == 1:
                for k in range(first, last):
                    to[k] = left[k] * right[k] + more[k]
            else:
                for k in range(first, last):
                    to[k] = left[k * a[7]] * right[k * a[9]] + more[k * a[11]]
            activate(after, simd.shifted(to, first), last - first)


def workspace(p):
    return 0


def bind(p, inputs, output, workspace):
    found = rows_of([*broadcast(p, inputs), output.reshape(p.shape)])
    if found is None:
        return load(registry.find("cpu", "multiply_add", "ufunc")).bind(p, inputs, output, workspace)
    rows, columns, strides = found
    pieces = -(-columns // BLOCK)
    each = max(1, BLOCK // columns)
    arguments = [columns, rows, each, KINDS[p.activation], pieces, *strides, output, *inputs]
    return Call(step, arguments, workspace, 0, -(-rows // each) * pieces)
