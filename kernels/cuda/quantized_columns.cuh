// A product of few rows of eight-bit numbers: a warp a column streams its weights, which is all that takes time, and keeps a
// sum for every row; WARPS warps of a block share a column where columns are few.
//
// b is (n, k), so that a column of the product reads a contiguous row of it, B_LEAD numbers apart. Numbers are made signed,
// and zero points come off behind the sums, as in quantized_tiles.cuh.
#pragma once
#include "overlap.cuh"
#include "quantized.cuh"
#include "warp.cuh"

#define ONES 0x01010101
#define LINE 128  // bytes that memory brings at once

__device__ __forceinline__ int sum_of_warp(int v) {
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) v += __shfl_xor_sync(ALL_LANES, v, d);
    return v;
}

// b_lead: from one column's weights to the next one's. EARLY: they are constants, and the rung may begin early.
template <bool EARLY>
__device__ __forceinline__ void warp_columns(const void* __restrict__ a, const void* __restrict__ b,
                                             const void* __restrict__ a_zero, const void* __restrict__ b_zero,
                                             const int* __restrict__ bias, const double* __restrict__ scale,
                                             const double* __restrict__ shift, void* __restrict__ y, index_t b_lead,
                                             const QGemmParams& p) {
    __shared__ int shares[BLOCK / LANES][2 * ROWS + 1];  // a warp's sums, for the first of those that share its column
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int share = warp % WARPS * LANES + lane;  // where this thread begins along k
    const index_t column = first_element() / (LANES * WARPS);
    const int last = column < p.n ? p.k : 0;  // with several warps everybody meets at the barrier
    const int a_flip = p.x_type == DTYPE_UINT8 ? 128 : 0, b_flip = p.weight_type == DTYPE_UINT8 ? 128 : 0;
    const unsigned a_flips = a_flip * ONES, b_flips = b_flip * ONES;  // of all four in a word
    const char* weights = (const char*)b + (column < p.n ? column : 0) * b_lead;
    if (EARLY) {  // what is read is on its way before the kernel in front has ended
        for (index_t at = (index_t)share * LINE; at < last; at += (index_t)LANES * WARPS * LINE)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(weights + at));
        wait_for_previous();
        a = written(a);
    }
    const char* rows = (const char*)a;

    int sum[ROWS] = {}, of_row[ROWS] = {}, of_column = 0;
    if (p.k % 16 == 0) {  // every row of a and b then begins on 16 bytes, as the tensors do
#pragma unroll 2
        for (int j = share; j < last / 16; j += LANES * WARPS) {
            const uint4 read = ((const uint4*)weights)[j];
            const unsigned v[4] = {read.x ^ b_flips, read.y ^ b_flips, read.z ^ b_flips, read.w ^ b_flips};
#pragma unroll
            for (int q = 0; q < 4; ++q) of_column = __dp4a((int)v[q], ONES, of_column);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const uint4 left = ((const uint4*)(rows + (index_t)r * p.k))[j];
                const unsigned u[4] = {left.x ^ a_flips, left.y ^ a_flips, left.z ^ a_flips, left.w ^ a_flips};
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    sum[r] = __dp4a((int)u[q], (int)v[q], sum[r]);
                    of_row[r] = __dp4a((int)u[q], ONES, of_row[r]);
                }
            }
        }
    } else {
        for (int j = share; j < last; j += LANES * WARPS) {
            const int v = whole(weights, j, p.weight_type) - b_flip;
            of_column += v;
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const int u = whole(rows, (index_t)r * p.k + j, p.x_type) - a_flip;
                sum[r] += u * v;
                of_row[r] += u;
            }
        }
    }
    of_column = sum_of_warp(of_column);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) sum[r] = sum_of_warp(sum[r]), of_row[r] = sum_of_warp(of_row[r]);
    if (WARPS > 1) {
        if (lane == 0) {
            shares[warp][2 * ROWS] = of_column;
#pragma unroll
            for (int r = 0; r < ROWS; ++r) shares[warp][r] = sum[r], shares[warp][ROWS + r] = of_row[r];
        }
        __syncthreads();  // the first warp of a column reads what the others have
        if (warp % WARPS) return;
#pragma unroll
        for (int w = 1; w < WARPS; ++w) {
            of_column += shares[warp + w][2 * ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) sum[r] += shares[warp + w][r], of_row[r] += shares[warp + w][ROWS + r];
        }
    }
    if (column >= p.n) return;
    const int zero = whole(a_zero, 0, p.x_type) - a_flip;
    const int own = whole(b_zero, p.weight_zeros > 1 ? column : 0, p.weight_type) - b_flip;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (lane != r) continue;  // a lane a row, which know all sums
        const int whole_sum = sum[r] - zero * of_column - own * of_row[r] + p.k * zero * own;
        finish(p, y, (index_t)r * p.n + column, whole_sum, column, bias, scale, shift);
    }
}
