# op = "cast"
# rung = 1
# name = "copy"
# idea = "One converting copy, after values beyond an eight-bit float were brought back to its largest."
# [needs]
# dtype = [
#     "float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "int8", "bool",
#     "int16", "uint16", "uint32", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
#     "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2", "uint2",
# ]
"""Element type changed; floating point is cut towards zero, bool is x ≠ 0."""

from functools import partial

import ml_dtypes
import numpy as np

from kernels.cpu.common import sequence, typed, typed_nbytes
from kernels.ops import EXPONENTS


def workspace(p):
    """Of what is not converted at once: exponents, values held within limits, and what goes from one type
    that NumPy has not to another."""
    each = typed_nbytes(p.size, np.float32)
    return 2 * each if p.to == EXPONENTS else each if _staged(p) else 0


def _staged(p):
    return p.saturate or not (hasattr(np, p.dtype) or hasattr(np, p.to))


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    if p.to == EXPONENTS:
        bits, more = np.split(typed(workspace, 2 * p.size, np.uint32), 2)
        return partial(_exponents, p, x, y.view(np.uint8), bits, more)
    if not _staged(p):
        return partial(np.copyto, y, x, "unsafe")
    values = typed(workspace, p.size, np.float32)
    calls = [partial(np.copyto, values, x, "unsafe"), partial(np.copyto, y, values, "unsafe")]
    if p.saturate:
        limits = ml_dtypes.finfo(p.to)
        calls.insert(1, partial(np.clip, values, float(limits.min), float(limits.max), values))
    return sequence(calls)


def _exponents(p, x, y, bits, more):
    """Of float32 the eight bits of its exponent, and one more where it is rounded up; NaN of infinity."""
    np.copyto(bits.view(np.float32), x, "unsafe")
    np.bitwise_and(bits, 0x7FFFFF, more)
    np.right_shift(bits, 23, bits)
    np.bitwise_and(bits, 0xFF, bits)
    if p.towards == "nearest":  # from the middle up, but from 2⁻¹²⁷
        np.greater(more, 0x400000 - (bits > 0), more, casting="unsafe")
    else:
        np.greater(more, 0 if p.towards == "up" else 0x7FFFFF, more, casting="unsafe")
    np.multiply(more, bits < (0xFE if p.saturate else 0xFF), more, casting="unsafe")
    np.add(bits, more, bits)
    np.copyto(y, bits, "unsafe")
