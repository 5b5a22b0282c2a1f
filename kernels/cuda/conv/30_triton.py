# op = "conv"
# rung = 30
# name = "triton"
# idea = "In Triton: the convolution as a product of maps and pixels, the window's elements gathered by their addresses into a tile, multiplied as 3xTF32 on tensor cores."
# language = "triton"
# launch = "conv_programs"
# precision = "fp32-tc"
# method = "split"
# side = true
# [defines]
# TILE_M = 32
# TILE_N = 128
# TILE_K = 32
# WARPS = 4
# STAGES = 3
# [tune]
# TILE_M = [16, 32, 64, 128]
# TILE_N = [64, 128]
# WARPS = [4, 8]
# [needs]
# activation = ["none", "relu"]
# compute_capability = "8.0"
import triton
import triton.language as tl


# x is (N, C, H, W), weight (M, C / group, KH, KW), y (N, M, OH, OW).
@triton.jit
def conv(
    x, weight, bias, y, has_bias, n, c, h, w, m, out_h, out_w, stride_h, stride_w, pad_top, pad_left, dilation_h,
    dilation_w, group, activation, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, KH: tl.constexpr,
    KW: tl.constexpr, ACTIVATION_RELU: tl.constexpr,
):  # fmt: skip
    pixels = out_h * out_w
    channels, maps = c // group, m // group  # of a group
    pixel = tl.program_id(0).to(tl.int64) * TILE_N + tl.arange(0, TILE_N)
    own = tl.program_id(1) * TILE_M + tl.arange(0, TILE_M)
    om = tl.program_id(2) * maps + own
    image, at = pixel // pixels, (pixel % pixels).to(tl.int32)
    top, begin = at // out_w * stride_h - pad_top, at % out_w * stride_w - pad_left
    first = (image * c + tl.program_id(2) * channels) * h * w
    length = channels * KH * KW
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for k0 in range(0, length, TILE_K):
        k = k0 + tl.arange(0, TILE_K)
        filters = weight + om.to(tl.int64)[:, None] * length + k[None, :]
        u = tl.load(filters, mask=(own < maps)[:, None] & (k < length)[None, :], other=0.0)
        channel, r, s = k // (KH * KW), k // KW % KH, k % KW
        row = top[None, :] + (r * dilation_h)[:, None]
        column = begin[None, :] + (s * dilation_w)[:, None]
        inside = (row >= 0) & (row < h) & (column >= 0) & (column < w)
        inside = inside & (k < length)[:, None] & (image < n)[None, :]
        place = first[None, :] + channel[:, None] * (h * w) + row * w + column
        v = tl.load(x + place, mask=inside, other=0.0)
        total = tl.dot(u, v, total, input_precision="tf32x3")
    if has_bias != 0:
        total += tl.load(bias + om, mask=own < maps, other=0.0)[:, None]
    if activation == ACTIVATION_RELU:
        total = tl.where(total < 0.0, 0.0, total)
    out = (image * m)[None, :] * pixels + om.to(tl.int64)[:, None] * pixels + at[None, :]
    tl.store(y + out, total, mask=(own < maps)[:, None] & (image < n)[None, :])
