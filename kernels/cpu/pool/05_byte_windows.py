# op = "pool"
# rung = 5
# name = "byte_windows"
# idea = "Bytes where they lie: a vector for each place of a window, the largest of them; strides pick last."
# compiled = true
# [needs]
# kind = ["max"]
# activation = ["none"]
# dtype = ["uint8", "int8"]
# stride_max = 4
# [prefers]
# kernel_max = 8
"""A table, the same for every plane, says where the vectors begin and what of them lies outside the image,
which never wins (kernels.cpu.planes). What is read beside a plane is other planes'; the first and the last of
all are copied, with room around.
"""

from functools import cache

import numpy as np

from kernels.cpu import planes, simd
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.planes import with_room
from kernels.cpu.simd import LANES

REACH = 4 * LANES  # bytes that are read at once


@compiled
def step(a, low, high, scratch):
    of_plane, of_answer, before, beyond, end = a[2], a[3], a[4], a[5], a[6]
    x, y, table = simd.octets(a[14]), simd.octets(a[15]), simd.integers(a[16])
    alone = simd.shifted(simd.as_octets(scratch), before)
    if a[0] == 1:
        low, high = low * a[1], high * a[1]
    for which in range(low, high):
        at = which * of_plane
        plane = with_room(x, at, of_plane, before, beyond, end, alone, 1)
        simd.largest_of_windows(
            plane, table, a[7], a[8], a[9], a[10], a[11], a[12], a[13], simd.shifted(y, which * of_answer)
        )


def _lanes(p):
    return REACH // p.stride_w


@cache
def _table(p):
    rows, columns = np.divmod(np.arange(p.kh * p.kw), p.kw)
    held = planes.inside(p, _lanes(p), rows * p.dilation_h, columns * p.dilation_w)
    seen = np.zeros((*held.shape[:2], REACH), bool)
    seen[..., : _lanes(p) * p.stride_w : p.stride_w] = held
    return planes.told(p, _lanes(p), seen)


def _room(p):
    return planes.room(p, _lanes(p), REACH)


def workspace(p):
    return -(-(sum(_room(p)) + p.h * p.w) // 4) * 4


def bind(p, inputs, output, workspace):
    table = _table(p)
    arguments = [
        p.c, p.h * p.w, p.out_h * p.out_w, *_room(p), p.n * p.c * p.h * p.w, len(table), p.kh, p.kw,
        p.dilation_h * p.w, p.dilation_w, p.stride_w, int(p.dtype == "int8"), inputs[0], output, table,
    ]  # fmt: skip
    return Call(step, arguments, workspace, p.n, p.n * p.c)
