"""What the simulator's machine is compiled by says what Python says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels import numba_support
from kernels.cpu import simd
from kernels.ptx.native import compiled, inlined, lowest, ones

pytestmark = pytest.mark.skipif(
    numba_support.unavailable() is not None, reason=str(numba_support.unavailable())
)

OUT = 64  # where results are written


@inlined
def nearest(a, b):
    if a < 0:
        return -1
    return a * 2 if b else a


@compiled
def everything(warp: Any, mask: Any, packed: Any, scratch: Any) -> None:
    out = simd.shifted(warp, OUT)
    a, b = warp[0], warp[1]
    out[0], out[1], out[2], out[3] = a // b, a % b, a // 8, a % 8
    out[4], out[5], out[6] = a & b | 1, a ^ b, a >> 3 << 2
    out[7] = 1 if 0 < b < 100 and a in (-37, 12) else 2
    b, a = a, b
    out[8], out[9] = a, b
    total, i = 0, 0
    while True:
        i += 1
        if i % 2 == 0:
            continue
        if i > 9:
            break
        for j in range(2, i):
            total += j
    out[10] = total
    # What stands behind `and` and `or` is read only where it is asked for: element 2 says which may be.
    out[11] = b != 0 and (b > 0 or simd.integers(warp[2])[0] == 7)
    out[12], out[13] = lowest(mask), ones(mask)
    f = simd.floats(warp[3])
    f[1] = f[0] * np.float32(0.1) + 1
    d = simd.doubles(warp[3] + 8)
    d[1] = np.float64(f[0]) / 3 - abs(-2.5)
    simd.words(warp[3] + 24)[0] = -5
    out[14] = simd.words(warp[3] + 24)[0] + simd.octets(warp[3] + 24)[0] + simd.halves(warp[3] + 24)[0]
    out[15], out[16], out[17] = nearest(a, True), nearest(-a, True), nearest(a, a == 0)
    u = np.uint64(-1)
    out[18], out[19] = np.int64(u // np.uint64(3)), u > np.uint64(5)
    a = simd.from_bits(np.int32(simd.bits(f[0]) ^ -2147483648))
    f[2] = a
    out[20] = min(max(b, -10), 10) - ~b


def test_it_says_what_python_says() -> None:
    for a, b in ((-37, 5), (12, -7), (100, 33), (-9, -4)):
        state, numbers, seven = np.zeros(128, np.int64), np.zeros(8, np.float32), np.array([7])
        numbers[0] = 1.7
        state[:4] = a, b, seven.ctypes.data if a <= 0 else 0, numbers.ctypes.data
        everything(state.ctypes.data, 0b11010000, 0)
        got = state[OUT : OUT + 21].tolist()
        total = sum(j for i in (1, 3, 5, 7, 9) for j in range(2, i))
        assert got[:7] == [a // b, a % b, a // 8, a % 8, a & b | 1, a ^ b, a >> 3 << 2]
        assert got[7:14] == [1 if 0 < b < 100 and a in (-37, 12) else 2, b, a, total, 1, 4, 3]
        assert got[14] == -5 + 251 - 5
        assert got[15:18] == [-1 if b < 0 else 2 * b, -1 if b > 0 else -2 * b, -1 if b < 0 else b]
        assert got[18:21] == [(2**64 - 1) // 3, 1, min(max(a, -10), 10) - ~a]
        assert abs(numbers[1] - 1.17) < 1e-6  # a product and a sum may be one
        assert numbers[2] == -numbers[0]
        assert abs(numbers.view(np.float64)[2] - (float(np.float32(1.7)) / 3 - 2.5)) < 1e-12
