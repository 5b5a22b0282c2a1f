/*
op = "gemm"
rung = 6
name = "warp_columns"
idea = "For a few rows the time is that of reading b once: a warp a column streams its weights, 16 bytes a lane and several in flight, and keeps a sum for every row; where columns are few, several warps share one."
launch = "gemm_warp_a_column"
overlaps = true
[defines]
BLOCK = 256
ROWS = 1   # of a and y; the launch sets it to m
WARPS = 1  # that share a column, all in one block
[needs]
m_max = 8
trans_a = false
trans_b = true
batch = 1
*/
#include "common.cuh"
#include "overlap.cuh"
#include "sums.cuh"
#include "warp.cuh"

#define AT_ONCE 4  // reads of a lane on their way

// b is (n, k), so that a column of the product reads a contiguous row of it.
extern "C" __global__ void __launch_bounds__(BLOCK)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, const GemmParams p) {
    __shared__ float shares[BLOCK / LANES][ROWS];  // a warp's sums, for the first of those that share its column
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int share = warp % WARPS * LANES + lane;  // where this thread begins along k
    const index_t column = first_element() / (LANES * WARPS);
    let_next_begin();
    if (WARPS == 1 && column >= p.n) return;  // with more, everybody meets at the barrier
    const float* weights = b + column * p.k;
    const int last = column < p.n ? p.k : 0;
    wait_for_previous();
    a = written(a);

    float sum[ROWS] = {};
    Wholes<ROWS> wholes(p.k);
    constexpr int STRIDE = LANES * WARPS;
    int rounds = 0, j = share;
    if (p.k % 4 == 0) {  // every row of a and b then begins on 16 bytes, as the tensors do
        constexpr int OF_PIECE = wholes.TERMS / 4 / AT_ONCE;  // rounds
        auto multiply = [&](int at) {
            const float4 v = reinterpret_cast<const float4*>(weights)[at];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const float4 u = reinterpret_cast<const float4*>(a + (index_t)r * p.k)[at];
                sum[r] += u.x * v.x;
                sum[r] += u.y * v.y;
                sum[r] += u.z * v.z;
                sum[r] += u.w * v.w;
            }
        };
#pragma unroll 1
        for (; j + (AT_ONCE - 1) * STRIDE < last / 4; j += AT_ONCE * STRIDE) {
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) multiply(j + i * STRIDE);
            if (++rounds % OF_PIECE == 0) wholes.take(sum, rounds / OF_PIECE - 1);
        }
#pragma unroll 1
        for (; j < last / 4; j += STRIDE) multiply(j);
        wholes.give(sum, rounds / OF_PIECE);
    } else {
        constexpr int OF_PIECE = wholes.TERMS / AT_ONCE;
        auto multiply = [&](int at) {
            const float v = weights[at];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) sum[r] += a[(index_t)r * p.k + at] * v;
        };
#pragma unroll 1
        for (; j + (AT_ONCE - 1) * STRIDE < last; j += AT_ONCE * STRIDE) {
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) multiply(j + i * STRIDE);
            if (++rounds % OF_PIECE == 0) wholes.take(sum, rounds / OF_PIECE - 1);
        }
#pragma unroll 1
        for (; j < last; j += STRIDE) multiply(j);
        wholes.give(sum, rounds / OF_PIECE);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const float total = sum_of_lanes(sum[r]);
        if (lane == 0) shares[warp][r] = total;
    }
    if (WARPS > 1) __syncthreads();  // the other warps' shares are there; of its own lane 0 knows
    if (lane != 0 || warp % WARPS != 0 || column >= p.n) return;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        float total = shares[warp][r];
#pragma unroll
        for (int s = 1; s < WARPS; ++s) total += shares[warp + s][r];
        float v = p.alpha * total;
        if (bias) v += p.beta * bias[r * p.bias_stride_m + column * p.bias_stride_n];
        y[(index_t)r * p.n + column] = activate(v, p.activation);
    }
}
