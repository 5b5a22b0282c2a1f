# op = "transpose"
# rung = 2
# name = "blocks"
# idea = "Matrices by blocks of 16 × 16, whose rows become columns in vector registers."
# compiled = true
"""Where all that permuting does is to exchange the last two axes, of those that do not stay neighbours; other
permutations are left to the copy.
"""

from kernels import registry
from kernels.cpu import load, simd
from kernels.cpu.common import merged
from kernels.cpu.compiled import Call, compiled

ROWS = 64  # of a matrix, in a part: of 16 that lie on one cache line, all are read soon


@compiled
def step(a, low, high, scratch):
    rows, columns, pieces = a[1], a[2], a[3]
    x, y = simd.floats(a[4]), simd.floats(a[5])
    for part in range(low, high):
        matrix, first = part // pieces, part % pieces * ROWS
        of = simd.shifted(x, (matrix * rows + first) * columns)
        to = simd.shifted(y, matrix * rows * columns + first)
        simd.turned(of, columns, min(ROWS, rows - first), columns, to, rows)


def _matrices(p, x):
    """(matrices, rows, columns) of x; None where the axes are not exchanged so."""
    (view,) = merged(x.reshape(p.shape).transpose(p.perm))
    shape, strides = view.shape, [step // 4 for step in view.strides]
    if view.ndim not in (2, 3) or strides[-2] != 1 or strides[-1] != shape[-2]:
        return None
    if view.ndim == 3 and strides[0] != shape[1] * shape[2]:
        return None
    return (shape[0] if view.ndim == 3 else 1), shape[-1], shape[-2]


def workspace(p):
    return 0


def bind(p, inputs, output, workspace):
    found = _matrices(p, inputs[0])
    if found is None:
        return load(registry.find("cpu", "transpose", "copy")).bind(p, inputs, output, workspace)
    matrices, rows, columns = found
    pieces = -(-rows // ROWS)
    arguments = [rows, columns, pieces, inputs[0], output]
    return Call(step, arguments, workspace, 0, matrices * pieces)
