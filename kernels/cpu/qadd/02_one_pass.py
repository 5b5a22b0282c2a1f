# op = "qadd"
# rung = 2
# name = "one_pass"
# idea = "All of the arithmetic in one compiled loop, in float32 wherever that is sure to give the same byte."
# compiled = true
# [needs]
# dtype = ["uint8", "int8"]
# to = ["uint8", "int8"]
"""An int8 is read as the uint8 that is larger by 128, and its zero point with it (kernels.cpu.octets)."""

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.quantized import FLIP, of_sum
from kernels.cpu.simd import LANES

BLOCK = 1 << 14  # elements of a part


@compiled
def step(a, low, high, scratch):
    x_flip, z_flip, numbers = a[2], a[3], simd.doubles(a[7])
    first, last = low * BLOCK, min(a[1], high * BLOCK)
    x, z, y = simd.octets(a[4]), simd.octets(a[5]), simd.octets(a[6])
    if last - first >= LANES:
        simd.added(
            simd.shifted(x, first), simd.shifted(z, first), simd.shifted(y, first), last - first, x_flip,
            z_flip, numbers,
        )  # fmt: skip
        return
    left = simd.as_octets(scratch)
    right = simd.shifted(left, LANES)
    to = simd.shifted(right, LANES)
    for i in range(last - first):
        left[i], right[i] = x[first + i], z[first + i]
    simd.added(left, right, to, LANES, x_flip, z_flip, numbers)
    for i in range(last - first):
        y[first + i] = to[i]


def workspace(p):
    return 3 * LANES


def bind(p, inputs, output, workspace):
    flips = [FLIP if name == "int8" else 0 for name in p.input_dtypes]
    arguments = [p.size, *flips, inputs[0], inputs[1], output, of_sum(p, flips)]
    return Call(step, arguments, workspace, 0, -(-p.size // BLOCK))
