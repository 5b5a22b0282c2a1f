/*
op = "qgemm"
rung = 2
name = "dp4a_tiles"
idea = "A block fetches tiles of a and b into shared memory, four numbers along the sum in a word; one instruction multiplies four pairs, and zero points come off behind the sums."
launch = "qgemm_tiles"
[defines]
TILE = 64
TILE_K = 32
[tune]
TILE = [32, 64]
TILE_K = [16, 32, 64]
[needs]
dtype = ["uint8", "int8"]
to = ["int32", "float32", "uint8", "int8"]
*/
#include "quantized_tiles.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    qgemm(const void* __restrict__ a, const void* __restrict__ b, const void* __restrict__ a_zero,
          const void* __restrict__ b_zero, const int* __restrict__ bias, const double* __restrict__ scale,
          const double* __restrict__ shift, void* __restrict__ y, const QGemmParams p) {
    __shared__ int left[QUADS][TILE + 1], right[QUADS][TILE + 1];
    const int across = (p.n + TILE - 1) / TILE;  // tiles side by side
    const int first_row = blockIdx.x / across * TILE, first_column = blockIdx.x % across * TILE;
    const int zero = signed_byte(a_zero, 0, p.x_type);
    for (int matrix = blockIdx.z; matrix < p.batch; matrix += gridDim.z) {
        const index_t from_a = matrix * p.stride_a, from_b = matrix * p.stride_b;
        const auto of_a = [&](int i, int k) {
            const index_t row = first_row + i;
            return row < p.m && k < p.k ? signed_byte(a, from_a + row * p.k + k, p.x_type) : zero;
        };
        const auto of_b = [&](int i, int k) {
            const index_t column = first_column + i;
            const index_t own = p.weight_zeros > 1 && column < p.n ? column : 0;
            if (column >= p.n || k >= p.k) return signed_byte(b_zero, own, p.weight_type);
            return signed_byte(b, from_b + (p.trans_b ? column * p.k + k : (index_t)k * p.n + column), p.weight_type);
        };
        Sums sums;
        int terms = 0;
        for (; terms < p.k; terms += TILE_K) {
            fetch<true>(left, terms, of_a);
            if (p.trans_b) fetch<true>(right, terms, of_b);
            else fetch<false>(right, terms, of_b);
            __syncthreads();  // both tiles are whole before anybody multiplies
            sums.add(left, right);
            __syncthreads();  // all have multiplied before the next tiles are written over these
        }
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const index_t row = first_row + threadIdx.x / SIDE + i * SIDE;
#pragma unroll
            for (int j = 0; j < EACH; ++j) {
                const int column = first_column + threadIdx.x % SIDE + j * SIDE;
                if (row >= p.m || column >= p.n) continue;
                const int own = signed_byte(b_zero, p.weight_zeros > 1 ? column : 0, p.weight_type);
                const index_t at = ((index_t)matrix * p.m + row) * p.n + column;
                finish(p, y, at, sums.of(i, j, zero, own, terms), column, bias, scale, shift);
            }
        }
    }
}
