// A product with a few rows and its weights in 16 bits, bound by reading b: a warp streams the weights of a few columns at
// once. SCALED: a and y are float32, and each column's weights are scaled by a power of two; behind them all lies what
// brings the products of each back. BITS = 24: each weight has eight bits more, those that follow float16's.
#pragma once
#include "common.cuh"
#include "half.cuh"
#include "overlap.cuh"
#include "warp.cuh"

#define CHUNK 8  // halves in 16 bytes
#ifndef BITS
#define BITS 16  // of a weight
#endif
#define STEPS (BITS == 16 ? CHUNK : 2 * CHUNK)  // of the sum that a lane has of a column at once
#define PIECES (BITS == 16 ? 1 : 3)             // and 16 bytes of them
#define STRIDE (LANES * WARPS)                  // lanes that share a column
#define AHEAD 2                                 // turns of them whose weights are under way

#ifndef READS  // in the rung that knows a and y as float32 alone
#define READS 0
#define WRITES 0
#endif
#ifndef SCALED
#define SCALED 0
#endif

// A lane's weights of a column: PIECES times 16 bytes, of 24 bits two of halves and one of what follows these.
struct Weights {
    uint4 held[PIECES];

    // Of lane j of a column that begins here. So that lanes read side by side, each piece of as many as a warp has lies by
    // itself.
    __device__ __forceinline__ void fetch(const uint4* column, int j) {
#pragma unroll
        for (int i = 0; i < PIECES; ++i) held[i] = column[PIECES == 1 ? j : (j / LANES * PIECES + i) * LANES + j % LANES];
    }

    __device__ __forceinline__ void widen(float (&v)[STEPS]) const {
#pragma unroll
        for (int e = 0; e < STEPS; ++e) {
            const uint4 halves = held[e / CHUNK];
            const unsigned pairs[4] = {halves.x, halves.y, halves.z, halves.w};
            const half_bits half = pairs[e % CHUNK / 2] >> e % 2 * 16;
            const uint4 bytes = held[PIECES - 1];
            const unsigned fours[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
            v[e] = BITS == 16 ? half_to_float(half) : longer_to_float(half, fours[e / 4], e % 4 * 8);
        }
    }
};

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
    // Lanes that a column is for; and 16 bytes of it, with more bits those of whole warps.
    const int chunks = (p.k + STEPS - 1) / STEPS, last = first_column < p.n ? chunks : 0;
    const int each = PIECES == 1 ? chunks : (chunks + LANES - 1) / LANES * LANES * PIECES;
    const uint4* weights[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c)  // beyond the last column the last once more, to be thrown away
        weights[c] = reinterpret_cast<const uint4*>(b) + min(first_column + c, (index_t)p.n - 1) * each;

    auto fetch = [&](int j, Weights (&of_columns)[COLUMNS]) {
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) of_columns[c].fetch(weights[c], j);
    };
    // The first weights, which the kernel in front does not write, are on their way before it has ended.
    Weights held[AHEAD][COLUMNS];
    let_next_begin();
#pragma unroll
    for (int i = 0; i < AHEAD; ++i)
        if (share + i * STRIDE < last) fetch(share + i * STRIDE, held[i]);
    wait_for_previous();
    a = written(a);

    float sum[ROWS][COLUMNS] = {};
    auto add = [&](int j, const Weights (&of_columns)[COLUMNS]) {
        float v[COLUMNS][STEPS];
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) of_columns[c].widen(v[c]);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float* from = a + (index_t)r * p.k + j * STEPS;
            float u[STEPS];
            if (READS) {
                const uint4 halves = reinterpret_cast<const uint4*>(a)[(index_t)r * chunks + j];
                const unsigned pairs[4] = {halves.x, halves.y, halves.z, halves.w};
#pragma unroll
                for (int e = 0; e < CHUNK; ++e) u[e] = half_to_float((half_bits)(pairs[e / 2] >> e % 2 * 16));
            } else if (p.k % STEPS == 0) {  // every row of a then begins on 16 bytes, as the tensor does
#pragma unroll
                for (int e = 0; e < STEPS; e += 4) {
                    const float4 four = reinterpret_cast<const float4*>(from)[e / 4];
                    u[e] = four.x, u[e + 1] = four.y, u[e + 2] = four.z, u[e + 3] = four.w;
                }
            } else {
#pragma unroll
                for (int e = 0; e < STEPS; ++e) u[e] = j * STEPS + e < p.k ? from[e] : 0.0f;
            }
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
#pragma unroll
                for (int e = 0; e < STEPS; ++e) sum[r][c] += u[e] * v[c][e];
        }
    };
    for (int j = share; j < last; j += AHEAD * STRIDE) {
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const int lane_of_column = j + i * STRIDE, later = lane_of_column + AHEAD * STRIDE;
            if (lane_of_column < last) add(lane_of_column, held[i]);
            if (later < last) fetch(later, held[i]);
        }
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
        total *= reinterpret_cast<const float*>(reinterpret_cast<const uint4*>(b) + (index_t)p.n * each)[column];
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
