// A product with a few rows and its weights in float16, bound by reading b: a warp streams the weights of a few columns at
// once. SCALED: a and y are float32, and each column's weights are scaled by a power of two; behind them all lies what
// brings the products of each back.
#pragma once
#include "common.cuh"
#include "half.cuh"
#include "overlap.cuh"
#include "warp.cuh"

#define CHUNK 8  // halves in 16 bytes

#ifndef READS  // in the rung that knows a and y as float32 alone
#define READS 0
#define WRITES 0
#endif
#ifndef SCALED
#define SCALED 0
#endif

// READS, WRITES: a and y are rows of whole chunks of halves (nhwc.cuh: images of one pixel), filled up with zeros.
// b comes packed: each column of the product a row of halves, filled up with zeros to whole chunks.
extern "C" __global__ void __launch_bounds__(BLOCK)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, const GemmParams p) {
    __shared__ float shares[BLOCK / LANES][ROWS][COLUMNS];
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int share = warp % WARPS * LANES + lane;  // where this thread begins along k
    const index_t first_column = first_element() / (LANES * WARPS) * COLUMNS;
    // What is written of a row.
    const int wide = WRITES ? (p.n + CHUNK - 1) / CHUNK * CHUNK : p.n;
    if (WARPS == 1 && first_column >= wide) return;  // with more, everybody meets at the barrier
    const int chunks = (p.k + CHUNK - 1) / CHUNK, last = first_column < p.n ? chunks : 0;
    const uint4* weights[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c)  // beyond the last column the last once more, to be thrown away
        weights[c] = reinterpret_cast<const uint4*>(b) + min(first_column + c, (index_t)p.n - 1) * chunks;

    auto fetch = [&](int j, uint4 (&chunks_of_columns)[COLUMNS]) {
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) chunks_of_columns[c] = weights[c][j];
    };
    // The first weights, which the kernel in front does not write, are on their way before it has ended.
    uint4 first[COLUMNS];
    let_next_begin();
    if (share < last) fetch(share, first);
    wait_for_previous();
    a = written(a);

    float sum[ROWS][COLUMNS] = {};
    auto add = [&](int j, const uint4 (&chunks_of_columns)[COLUMNS]) {
        float v[COLUMNS][CHUNK];
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const uint4 halves = chunks_of_columns[c];
            const unsigned pairs[4] = {halves.x, halves.y, halves.z, halves.w};
#pragma unroll
            for (int e = 0; e < CHUNK; ++e)
                v[c][e] = half_to_float((half_bits)(pairs[e / 2] >> e % 2 * 16));
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float* from = a + (index_t)r * p.k + j * CHUNK;
            float u[CHUNK];
            if (READS) {
                const uint4 halves = reinterpret_cast<const uint4*>(a)[(index_t)r * chunks + j];
                const unsigned pairs[4] = {halves.x, halves.y, halves.z, halves.w};
#pragma unroll
                for (int e = 0; e < CHUNK; ++e) u[e] = half_to_float((half_bits)(pairs[e / 2] >> e % 2 * 16));
            } else if (p.k % CHUNK == 0) {  // every row of a then begins on 16 bytes, as the tensor does
                const float4 first = reinterpret_cast<const float4*>(from)[0];
                const float4 second = reinterpret_cast<const float4*>(from)[1];
                u[0] = first.x, u[1] = first.y, u[2] = first.z, u[3] = first.w;
                u[4] = second.x, u[5] = second.y, u[6] = second.z, u[7] = second.w;
            } else {
#pragma unroll
                for (int e = 0; e < CHUNK; ++e) u[e] = j * CHUNK + e < p.k ? from[e] : 0.0f;
            }
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
#pragma unroll
                for (int e = 0; e < CHUNK; ++e) sum[r][c] += u[e] * v[c][e];
        }
    };
    if (share < last) add(share, first);
#pragma unroll 2
    for (int j = share + LANES * WARPS; j < last; j += LANES * WARPS) {
        uint4 next[COLUMNS];
        fetch(j, next);
        add(j, next);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const float total = sum_of_lanes(sum[r][c]);
            if (lane == 0) shares[warp][r][c] = total;
        }
    if (WARPS > 1)
        __syncthreads();
    else
        __syncwarp();
    if (warp % WARPS != 0) return;
    for (int e = lane; e < ROWS * COLUMNS; e += LANES) {
        const int r = e / COLUMNS, c = e % COLUMNS;
        const index_t column = first_column + c;
        if (column >= wide) continue;
        float total = shares[warp][r][c];
#pragma unroll
        for (int s = 1; s < WARPS; ++s) total += shares[warp + s][r][c];
#if SCALED
        total *= reinterpret_cast<const float*>(reinterpret_cast<const uint4*>(b) + (index_t)p.n * chunks)[column];
#endif
        float w = p.alpha * total;
        if (bias && column < p.n) w += p.beta * bias[r * p.bias_stride_m + column * p.bias_stride_n];
        w = activate(w, p.activation);
        if (WRITES)
            reinterpret_cast<half_bits*>(y)[r * wide + column] = (half_bits)to_halves(column < p.n ? w : 0.0f, 0.0f);
        else
            y[(index_t)r * p.n + column] = w;
    }
}
