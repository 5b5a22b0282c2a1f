# op = "conv"
# rung = 9
# name = "depthwise_windows"
# idea = "A channel is multiplied where it lies: 16 windows side by side, their sums in one register."
# compiled = true
# [needs]
# depthwise = true
# stride_max = 4
"""Nothing is padded, laid out or picked: a window of few elements costs less than its copy.

A table, the same for every plane, says where each vector's windows begin and what of them lies outside the
image (kernels.cpu.planes). What is read beside a plane is other planes'; the first and the last of all are
copied, with room around.
"""

import numpy as np

from kernels.cpu import planes, simd
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.loops import IN_TILE, KINDS, activate
from kernels.cpu.planes import with_room
from kernels.cpu.simd import LANES


@compiled
def step(a, low, high, scratch):
    maps, channels, of_plane, of_answer, before, beyond, end = a[1], a[2], a[3], a[4], a[5], a[6], a[7]
    taps = a[9] * a[10]
    x, y, table = simd.floats(a[16]), simd.floats(a[19]), simd.integers(a[20])
    weights, bias = simd.floats(a[17]), simd.floats(a[18])
    alone = simd.shifted(scratch, before)
    if a[0] == 1:
        low, high = low * maps, high * maps
    for part in range(low, high):
        m = part % maps
        at = (part // maps * channels + m // (maps // channels)) * of_plane
        plane = with_room(x, at, of_plane, before, beyond, end, alone, 4)
        to = simd.shifted(y, part * of_answer)
        simd.sums_of_windows(
            plane, table, a[8], a[9], a[10], a[11], a[12], a[13], simd.shifted(weights, m * taps),
            simd.shifted(bias, m), a[14], to,
        )  # fmt: skip
        activate(a[15], to, of_answer)


def workspace(p):
    return 4 * (sum(planes.room_of_floats(p, LANES)) + p.h * p.w)


def bind(p, inputs, output, workspace):
    table, room = planes.of_floats(p, LANES), planes.room_of_floats(p, LANES)
    after = IN_TILE.get(p.activation, simd.PLAIN)
    bias = inputs[2] if p.bias else np.zeros(p.m, np.float32)
    arguments = [
        p.m, p.c, p.h * p.w, p.out_h * p.out_w, *room, p.n * p.c * p.h * p.w, len(table), p.kh, p.kw,
        p.dilation_h * p.w, p.dilation_w, p.stride_w, after,
        0 if p.activation in IN_TILE else KINDS[p.activation], inputs[0], inputs[1], bias, output, table,
    ]  # fmt: skip
    return Call(step, arguments, workspace, p.n, p.n * p.m, inputs[1].nbytes)
