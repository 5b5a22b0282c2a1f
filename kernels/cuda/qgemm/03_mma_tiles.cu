/*
op = "qgemm"
rung = 3
name = "mma_tiles"
idea = "Tiles on tensor cores: one instruction of a warp multiplies 16 × 32 numbers with 32 × 8."
launch = "qgemm_warps"
[defines]
TILE_M = 64
TILE_N = 64
TILE_K = 64
WARPS_M = 2
WARPS_N = 2
[tune]
TILE_M = [32, 64, 128]
TILE_N = [32, 64, 128]
TILE_K = [64, 128]
[needs]
compute_capability = "8.0"
dtype = ["uint8", "int8"]
to = ["int32", "float32", "uint8", "int8"]
*/
#include "quantized_mma.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    qgemm(const void* __restrict__ a, const void* __restrict__ b, const void* __restrict__ a_zero,
          const void* __restrict__ b_zero, const int* __restrict__ bias, const double* __restrict__ scale,
          const double* __restrict__ shift, void* __restrict__ y, const QGemmParams p) {
    __shared__ __align__(16) int left[TILE_M][PITCH], right[TILE_N][PITCH];
    const int across = (p.n + TILE_N - 1) / TILE_N;  // tiles side by side
    const int first_row = blockIdx.x / across * TILE_M, first_column = blockIdx.x % across * TILE_N;
    const int zero = signed_byte(a_zero, 0, p.x_type);
    const auto own = [&](int column) {
        return signed_byte(b_zero, p.weight_zeros > 1 && column < p.n ? column : 0, p.weight_type);
    };
    const bool of_rows = p.weight_zeros > 1 || own(0) != 0, of_columns = zero != 0;
    for (int matrix = blockIdx.z; matrix < p.batch; matrix += gridDim.z) {
        const char *from_a = (const char*)a + matrix * p.stride_a, *from_b = (const char*)b + matrix * p.stride_b;
        const bool a_aligned = p.k % 16 == 0 && (size_t)from_a % 16 == 0;
        const bool b_aligned = p.k % 16 == 0 && (size_t)from_b % 16 == 0;
        WarpSums sums;
        int terms = 0;
        for (; terms < p.k; terms += TILE_K) {
            fetch_rows<TILE_M>(left, from_a, p.k, first_row, p.m, terms, p.k, p.x_type, a_aligned,
                               [&](int) { return zero; });
            if (p.trans_b) {
                fetch_rows<TILE_N>(right, from_b, p.k, first_column, p.n, terms, p.k, p.weight_type, b_aligned, own);
            } else {
                gather_rows<TILE_N>(right, terms, [&](int i, int k) {
                    const int column = first_column + i;
                    return column < p.n && k < p.k ? signed_byte(from_b, (index_t)k * p.n + column, p.weight_type)
                                                   : own(column);
                });
            }
            __syncthreads();  // both tiles are whole before anybody multiplies
            sums.add(left, right, of_rows, of_columns);
            __syncthreads();  // all have multiplied before the next tiles are written over these
        }
        sums.each([&](int i, int j, int both, int of_row, int of_column) {
            const index_t row = first_row + i;
            const int column = first_column + j;
            if (row >= p.m || column >= p.n) return;
            const int less = own(column);
            const int sum = both - zero * of_column - less * of_row + terms * zero * less;
            finish(p, y, ((index_t)matrix * p.m + row) * p.n + column, sum, column, bias, scale, shift);
        });
    }
}
