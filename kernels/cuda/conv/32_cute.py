# op = "conv"
# rung = 32
# name = "cute"
# idea = "In CuTe DSL: rung 4 on tensors, a thread an output. The coordinates of an output come from a layout, and a window is asked for by image, channel, row and column."
# language = "cute-dsl"
# launch = "one_thread_an_output"
# side = true
# [defines]
# BLOCK = 256
# [tune]
# BLOCK = [64, 128, 256, 512]
# [needs]
# activation = ["none", "relu"]
from cutlass import Float32, Int64, cute


def rows(pointer, *sizes):
    """A tensor of these sizes, the last axis without gaps; what reaches beyond 32 bits is counted in 64."""
    strides = [1]
    for size in sizes[:0:-1]:
        strides.insert(0, Int64(size) * strides[0])
    return cute.make_tensor(pointer, cute.make_layout(sizes, stride=tuple(strides)))


# x is (N, C, H, W), weight (M, C / group, KH, KW), y (N, M, OH, OW).
@cute.kernel
def conv(
    x, weight, bias, y, has_bias, n, c, h, w, m, kh, kw, out_h, out_w, stride_h, stride_w, pad_top, pad_left,
    dilation_h, dilation_w, group, activation,
):  # fmt: skip
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    blocks, _, _ = cute.arch.grid_dim()
    channels, maps = c // group, m // group
    images, taps, out = rows(x, n, c, h, w), rows(weight, m, channels, kh, kw), rows(y, n, m, out_h, out_w)
    at = Int64(block) * threads + thread
    while at < Int64(n) * m * out_h * out_w:
        ox = at % out_w
        oy = at // out_w % out_h
        om = at // (Int64(out_w) * out_h) % m
        image = at // (Int64(out_w) * out_h * m)
        total = Float32(0)
        for ci in range(channels):
            for r in range(kh):
                iy = oy * stride_h - pad_top + r * dilation_h
                if iy >= 0 and iy < h:
                    for s in range(kw):
                        ix = ox * stride_w - pad_left + s * dilation_w
                        if ix >= 0 and ix < w:
                            total += images[image, om // maps * channels + ci, iy, ix] * taps[om, ci, r, s]
        if has_bias != 0:
            total += bias[om]
        if activation == ACTIVATION_RELU and total < 0.0:
            total = Float32(0)
        out[image, om, oy, ox] = total
        at += Int64(blocks) * threads
