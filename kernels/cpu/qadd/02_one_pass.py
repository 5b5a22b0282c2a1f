# op = "qadd"
# rung = 2
# name = "one_pass"
# idea = "All of the arithmetic in one compiled loop: an element is read once and written once, as a byte."
# compiled = true
# [needs]
# dtype = ["uint8", "int8"]
# to = ["uint8", "int8"]
"""An int8 is read as the uint8 that is larger by 128, and its zero point with it."""

import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.quantized import FLIP

BLOCK = 1 << 14  # elements of a part


@compiled
def step(a, low, high, scratch):
    size, x_flip, x_zero, z_flip, z_zero = a[1], a[2], a[3], a[4], a[5]
    x, z, y = simd.octets(a[6]), simd.octets(a[7]), simd.octets(a[8])
    numbers = simd.doubles(a[9])
    x_scale, z_scale, scale, zero, least, most = (
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]
    )  # fmt: skip
    last = min(size, high * BLOCK)
    for i in range(low * BLOCK, last):
        left = np.float64((x[i] ^ x_flip) - x_zero) * x_scale
        right = np.float64((z[i] ^ z_flip) - z_zero) * z_scale
        q = np.rint((left + right) / scale) + zero
        q = least if q < least else q
        q = most if q > most else q
        y[i] = np.int32(q)


def bind(p, inputs, output, workspace):
    flips = [FLIP if name == "int8" else 0 for name in p.input_dtypes]
    scales = [np.float64(np.float32(scale)) for scale in (p.a_scale, p.b_scale, p.out_scale)]
    numbers = np.array([*scales, p.out_zero, p.low, p.high], np.float64)
    arguments = [
        p.size, flips[0], p.a_zero + flips[0], flips[1], p.b_zero + flips[1], inputs[0], inputs[1], output,
        numbers,
    ]  # fmt: skip
    return Call(step, arguments, workspace, 0, -(-p.size // BLOCK))
