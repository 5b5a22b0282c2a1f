# op = "quantize"
# rung = 2
# name = "one_pass"
# idea = "All of the arithmetic in one compiled loop: an element is read once and written once."
# compiled = true
# [needs]
# dtype = ["float32", "uint8", "int8", "int32"]
# to = ["float32", "uint8", "int8"]
"""Through whole numbers: q = round(x / scale) + zero, y = (q − zero) · scale.

Rows of elements that have a scale in common, in pieces. Bytes are read as in qadd 02; NaN becomes 0 where
bytes are written, as of NumPy's conversion.
"""

import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled, inlined
from kernels.cpu.quantized import FLIP

BLOCK = 1 << 13  # elements of a part at most
REALS, OCTETS, WORDS = range(3)  # what x is
NOTHING = np.float32(0)


@inlined
def rounded(x, scale, zero, least, most):
    """q − zero, where q lies within `least` and `most`."""
    q = np.rint(x / scale) + zero
    q = least if q < least else q
    q = most if q > most else q
    return q - zero


@compiled
def step(a, low, high, scratch):
    row, channels, pieces, source, flip, to_bytes = a[1], a[2], a[3], a[4], a[5], a[6]
    scales, zeros, limits = simd.floats(a[8]), simd.floats(a[9]), simd.floats(a[11])
    least, most = limits[0], limits[1]
    for part in range(low, high):
        at, piece = part // pieces, part % pieces
        first = piece * BLOCK
        count = min(BLOCK, row - first)
        scale, zero = scales[at % channels], zeros[at % channels]
        start = at * row + first
        to, written = simd.shifted(simd.floats(a[10]), start), simd.shifted(simd.octets(a[10]), start)
        if source == REALS:
            of = simd.shifted(simd.floats(a[7]), start)
            if to_bytes == 1:
                for i in range(count):
                    q = rounded(of[i], scale, zero, least, most) + zero
                    written[i] = np.int32(q if q == q else NOTHING)
            else:
                for i in range(count):
                    to[i] = rounded(of[i], scale, zero, least, most) * scale
        elif source == OCTETS:
            byte = simd.shifted(simd.octets(a[7]), start)
            for i in range(count):
                to[i] = (np.float32(np.int32(byte[i] ^ flip) - flip) - zero) * scale
        else:
            word = simd.shifted(simd.words(a[7]), start)
            for i in range(count):
                to[i] = (np.float32(word[i]) - zero) * scale


def bind(p, inputs, output, workspace):
    row = p.inner if p.channels > 1 else p.size
    pieces = max(1, -(-row // BLOCK))
    source = {"float32": REALS, "int32": WORDS}.get(p.dtype, OCTETS)
    arguments = [
        row, p.channels, pieces, source, FLIP if p.dtype == "int8" else 0, int(p.to != "float32"),
        inputs[0], inputs[1], inputs[2], output, np.array(p.limits, np.float32),
    ]  # fmt: skip
    rows = p.outer * p.channels if p.channels > 1 else 1
    return Call(step, arguments, workspace, 0, rows * pieces)
