/*
op = "qconv"
rung = 3
name = "mma_tiles"
idea = "The matrix product of maps and windows on tensor cores: one instruction of a warp multiplies 16 × 32 numbers with 32 × 8."
launch = "qconv_warps"
[defines]
TILE_M = 64
TILE_N = 64
TILE_K = 64
WARPS_M = 2
WARPS_N = 2
KH = 3  # which the launch sets, as KW
KW = 3
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

// Rows of a tile are maps of the group blockIdx.z, columns outputs of any image; KH × KW is compiled in.
extern "C" __global__ void __launch_bounds__(THREADS)
    qconv(const void* __restrict__ x, const void* __restrict__ weight, const void* __restrict__ x_zero,
          const void* __restrict__ weight_zero, const int* __restrict__ bias, const double* __restrict__ scale,
          const double* __restrict__ shift, void* __restrict__ y, const QConvParams p) {
    __shared__ __align__(16) int left[TILE_M][PITCH], right[TILE_N][PITCH];
    const int maps = p.m / p.group, channels = p.c / p.group, all = channels * KH * KW;
    const int area = p.out_h * p.out_w;
    const index_t outputs = (index_t)p.n * area;
    const index_t across = (outputs + TILE_N - 1) / TILE_N;  // tiles side by side
    const int first_row = blockIdx.x / across * TILE_M, first_map = blockIdx.z * maps;
    const index_t first_column = blockIdx.x % across * TILE_N;
    const int zero = signed_byte(x_zero, 0, p.x_type);
    const auto own = [&](int row) {
        return signed_byte(weight_zero, p.weight_zeros > 1 && row < maps ? first_map + row : 0, p.weight_type);
    };
    const bool of_columns = p.weight_zeros > 1 || own(0) != 0, of_rows = zero != 0;
    const char* of_group = (const char*)weight + (index_t)first_map * all;
    const bool aligned = all % 16 == 0 && (size_t)of_group % 16 == 0;
    const auto of_x = [&](int i, int k) {
        const index_t column = first_column + i;
        if (column >= outputs || k >= all) return zero;
        const int place = column % area, tap = k % (KH * KW);
        const int iy = place / p.out_w * p.stride_h - p.pad_top + tap / KW * p.dilation_h;
        const int ix = place % p.out_w * p.stride_w - p.pad_left + tap % KW * p.dilation_w;
        if (iy < 0 || iy >= p.h || ix < 0 || ix >= p.w) return zero;
        const index_t channel = column / area * p.c + blockIdx.z * channels + k / (KH * KW);
        return signed_byte(x, (channel * p.h + iy) * p.w + ix, p.x_type);
    };
    WarpSums sums;
    int terms = 0;
    for (; terms < all; terms += TILE_K) {
        fetch_rows<TILE_M>(left, of_group, all, first_row, maps, terms, all, p.weight_type, aligned, own);
        gather_rows<TILE_N>(right, terms, of_x);
        __syncthreads();  // both tiles are whole before anybody multiplies
        sums.add(left, right, of_rows, of_columns);
        __syncthreads();  // all have multiplied before the next tiles are written over these
    }
    sums.each([&](int i, int j, int both, int of_row, int of_column) {
        const int row = first_row + i, map = first_map + row;
        const index_t column = first_column + j;
        if (row >= maps || column >= outputs) return;
        const int less = own(row), sum = both - less * of_column - zero * of_row + terms * zero * less;
        finish(p, y, (column / area * p.m + map) * area + column % area, sum, map, bias, scale, shift);
    });
}
