# op = "lrn"
# rung = 3
# name = "planes"
# idea = "Squares, sum, roots and quotient of a channel as compiled loops, while it is in the cache."
# compiled = true
"""The squares of a channel's neighbours are added up where the answer will be."""

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.loops import lrn_plane, lrn_words


@compiled
def step(a, low, high, scratch):
    channels, inner = a[1], a[2]
    x, y = simd.floats(a[3]), simd.floats(a[4])
    if a[0] == 1:
        low, high = low * channels, high * channels
    for plane in range(low, high):
        image = simd.shifted(x, plane // channels * channels * inner)
        to = simd.shifted(y, plane * inner)
        lrn_plane(a, 5, image, plane % channels, channels, inner, to)


def bind(p, inputs, output, workspace):
    arguments = [p.c, p.inner, inputs[0], output, *lrn_words(p)]
    return Call(step, arguments, workspace, images=p.n, parts=p.n * p.c)
