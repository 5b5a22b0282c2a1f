# op = "conv"
# rung = 31
# name = "numba"
# idea = "In Numba-CUDA: rung 4 in Python's words, a thread an output, whose sum stays in a register while it walks its window."
# language = "numba-cuda"
# launch = "one_thread_an_output"
# side = true
# [defines]
# BLOCK = 256
# [tune]
# BLOCK = [64, 128, 256, 512]
# [needs]
# activation = ["none", "relu"]
from numba import cuda, float32, int64


# x is (N, C, H, W), weight (M, C / group, KH, KW), y (N, M, OH, OW).
@cuda.jit
def conv(
    x, weight, bias, y, has_bias, n, c, h, w, m, kh, kw, out_h, out_w, stride_h, stride_w, pad_top, pad_left,
    dilation_h, dilation_w, group, activation,
):  # fmt: skip
    channels, maps = c // group, m // group
    at = cuda.grid(1)
    while at < int64(n) * m * out_h * out_w:
        ox = at % out_w
        oy = at // out_w % out_h
        om = at // (out_w * out_h) % m
        image = at // (int64(out_w) * out_h * m)
        total = float32(0)
        for ci in range(channels):
            plane = ((image * c + om // maps * channels) + ci) * h * w
            taps = (om * channels + ci) * kh * kw
            for r in range(kh):
                iy = oy * stride_h - pad_top + r * dilation_h
                if iy >= 0 and iy < h:
                    for s in range(kw):
                        ix = ox * stride_w - pad_left + s * dilation_w
                        if ix >= 0 and ix < w:
                            total += x[plane + iy * w + ix] * weight[taps + r * kw + s]
        if has_bias:
            total += bias[om]
        if activation == ACTIVATION_RELU and total < 0:
            total = float32(0)
        y[at] = total
        at += cuda.gridsize(1)
