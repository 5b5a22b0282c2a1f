# op = "pool"
# rung = 6
# name = "windows"
# idea = "16 windows side by side, read where they lie: the largest or the sum of each in one register."
# compiled = true
# [needs]
# kernel_max = 16
# stride_max = 4
# [prefers]
# kernel_max = 8
# require = ["out_h * out_w > 1"]
"""A table, the same for every plane, says where the vectors begin and what of them lies outside the image,
which never wins, or adds nothing (kernels.cpu.planes). What is read beside a plane is other planes'; the
first and the last of all are copied, with room around. Sums are not blocked: of larger windows they would
lose digits.
"""

import numpy as np

from kernels.cpu import planes, simd
from kernels.cpu.common import counts
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.loops import KINDS, activate
from kernels.cpu.planes import with_room
from kernels.cpu.simd import LANES


@compiled
def step(a, low, high, scratch):
    of_plane, of_answer, before, beyond, end = a[2], a[3], a[4], a[5], a[6]
    x, least, y, table = simd.floats(a[14]), simd.floats(a[15]), simd.floats(a[16]), simd.integers(a[17])
    ones, of_window = simd.floats(a[19]), simd.floats(a[20])
    alone = simd.shifted(scratch, before)
    if a[0] == 1:
        low, high = low * a[1], high * a[1]
    for which in range(low, high):
        at = which * of_plane
        plane = with_room(x, at, of_plane, before, beyond, end, alone, 4)
        to = simd.shifted(y, which * of_answer)
        if a[18] == 1:
            simd.sums_of_windows(
                plane, table, a[7], a[8], a[9], a[10], a[11], a[12], ones, least, simd.PLAIN, to
            )
            for k in range(of_answer):
                to[k] = to[k] / of_window[k]
        else:
            simd.maxima_of_windows(
                plane, table, a[7], a[8], a[9], a[10], a[11], a[12], least, least, simd.PLAIN, to
            )
        activate(a[13], to, of_answer)


def workspace(p):
    return 4 * (sum(planes.room_of_floats(p, LANES)) + p.h * p.w)


def bind(p, inputs, output, workspace):
    table, room = planes.of_floats(p, LANES), planes.room_of_floats(p, LANES)
    average = p.kind == "average"
    arguments = [
        p.c, p.h * p.w, p.out_h * p.out_w, *room, p.n * p.c * p.h * p.w, len(table), p.kh, p.kw,
        p.dilation_h * p.w, p.dilation_w, p.stride_w, KINDS[p.activation], inputs[0],
        np.full(1, 0 if average else -np.inf, np.float32), output, table, int(average),
        np.ones(p.kh * p.kw, np.float32), counts(p) if average else np.ones(1, np.float32),
    ]  # fmt: skip
    return Call(step, arguments, workspace, p.n, p.n * p.c)
