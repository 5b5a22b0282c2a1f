# op = "gemm"
# rung = 20
# name = "triton"
# idea = "In Triton: a program a tile of y, its product one call that the compiler turns into 3xTF32 on tensor cores, with a pipeline of loads in front that nobody has written."
# language = "triton"
# launch = "gemm_programs"
# precision = "fp32-tc"
# method = "split"
# side = true
# [defines]
# TILE_M = 64
# TILE_N = 32
# TILE_K = 64
# WARPS = 4
# STAGES = 3
# [tune]
# TILE_M = [32, 64, 128]
# TILE_N = [32, 64, 128]
# TILE_K = [32, 64]
# WARPS = [4, 8]
# [needs]
# activation = ["none", "relu"]
# compute_capability = "8.0"
import triton
import triton.language as tl


@triton.jit
def gemm(
    a, b, bias, y, has_bias, m, alpha, beta, bias_stride_m, bias_stride_n, activation, N: tl.constexpr,
    K: tl.constexpr, TRANS_A: tl.constexpr, TRANS_B: tl.constexpr, STRIDE_A: tl.constexpr, STRIDE_B: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, ACTIVATION_RELU: tl.constexpr,
):  # fmt: skip
    matrix = tl.program_id(2).to(tl.int64)
    across: tl.constexpr = (N + TILE_N - 1) // TILE_N
    row = (tl.program_id(0) // across * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)
    column = (tl.program_id(0) % across * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for begin in range(0, K, TILE_K):
        depth = begin + tl.arange(0, TILE_K)
        if TRANS_A:
            left = depth[None, :].to(tl.int64) * m + row[:, None]
        else:
            left = row[:, None] * K + depth[None, :]
        if TRANS_B:
            right = column[None, :] * K + depth[:, None]
        else:
            right = depth[:, None].to(tl.int64) * N + column[None, :]
        u = tl.load(a + matrix * STRIDE_A + left, mask=(row < m)[:, None] & (depth < K)[None, :], other=0.0)
        v = tl.load(
            b + matrix * STRIDE_B + right, mask=(column < N)[None, :] & (depth < K)[:, None], other=0.0
        )
        total = tl.dot(u, v, total, input_precision="tf32x3")
    total = total * alpha
    there = (row < m)[:, None] & (column < N)[None, :]
    if has_bias != 0:
        place = row[:, None] * bias_stride_m + column[None, :] * bias_stride_n
        total += beta * tl.load(bias + place, mask=there, other=0.0)
    if activation == ACTIVATION_RELU:
        total = tl.where(total < 0.0, 0.0, total)
    tl.store(y + matrix * m * N + row[:, None] * N + column[None, :], total, mask=there)
