/*
op = "gemm"
rung = 2
name = "shared_tiles"
idea = "A block fetches a tile of a and of b into shared memory once for all its outputs, in whichever order they lie contiguous; each thread keeps the sums of four rows of its column in registers."
launch = "gemm_tiles"
[defines]
TILE_M = 32
TILE_N = 32
TILE_K = 32
ROWS = 4  # rows of y a thread
[tune]
TILE_M = [16, 32, 64]
TILE_N = [32, 64]
TILE_K = [16, 32, 64]
ROWS = [2, 4, 8]
*/
#include "common.cuh"
#include "sums.cuh"

#define THREADS (TILE_M / ROWS * TILE_N)
static_assert(TILE_M % ROWS == 0, "a thread takes ROWS whole rows");

// The parameter is a constant of the grid, for that costs fewer registers here than one that is merely passed by value.
extern "C" __global__ void __launch_bounds__(THREADS)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, const __grid_constant__ GemmParams p) {
    // One longer than the tile: a tile is written along k or across it, and read across it.
    __shared__ float left[TILE_K][TILE_M + 1];
    __shared__ float right[TILE_K][TILE_N + 1];

    const int across = (p.n + TILE_N - 1) / TILE_N;  // tiles side by side
    const int first_row = blockIdx.x / across * TILE_M;
    const int first_column = blockIdx.x % across * TILE_N;
    const int column = threadIdx.x % TILE_N;
    const int row = threadIdx.x / TILE_N * ROWS;

    for (int matrix = blockIdx.z; matrix < p.batch; matrix += gridDim.z) {
        const float* pa = a + matrix * p.stride_a;
        const float* pb = b + matrix * p.stride_b;
        float sum[ROWS] = {};
        Wholes<ROWS> wholes(p.k);
        for (int k0 = 0; k0 < p.k; k0 += TILE_K) {
            for (int e = threadIdx.x; e < TILE_M * TILE_K; e += THREADS) {
                const int i = p.trans_a ? e % TILE_M : e / TILE_K, j = p.trans_a ? e / TILE_M : e % TILE_K;
                const index_t r = first_row + i, kk = k0 + j;
                left[j][i] = r < p.m && kk < p.k ? pa[p.trans_a ? kk * p.m + r : r * p.k + kk] : 0.0f;
            }
            for (int e = threadIdx.x; e < TILE_N * TILE_K; e += THREADS) {
                const int i = p.trans_b ? e / TILE_K : e % TILE_N, j = p.trans_b ? e % TILE_K : e / TILE_N;
                const index_t c = first_column + i, kk = k0 + j;
                right[j][i] = c < p.n && kk < p.k ? pb[p.trans_b ? c * p.k + kk : kk * p.n + c] : 0.0f;
            }
            __syncthreads();  // both tiles are whole before anybody multiplies
#pragma unroll
            for (int j = 0; j < TILE_K; ++j) {
                const float v = right[j][column];
#pragma unroll
                for (int i = 0; i < ROWS; ++i) sum[i] += left[j][row + i] * v;
            }
            __syncthreads();  // all have multiplied before the next tiles are written over these
            if ((k0 + TILE_K) % wholes.TERMS == 0) wholes.take(sum, k0 / wholes.TERMS);
        }
        wholes.give(sum, (p.k + TILE_K - 1) / wholes.TERMS);
        const int c = first_column + column;
        if (c >= p.n) continue;
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const int r = first_row + row + i;
            if (r >= p.m) break;
            float v = p.alpha * sum[i];
            if (bias) v += p.beta * bias[r * p.bias_stride_m + c * p.bias_stride_n];
            y[((index_t)matrix * p.m + r) * p.n + c] = activate(v, p.activation);
        }
    }
}
