/*
op = "qconv"
rung = 2
name = "dp4a_tiles"
idea = "The convolution as a matrix product whose columns are windows, read where they lie: tiles in shared memory, four numbers along the sum in a word, which one instruction multiplies with four others."
launch = "qconv_tiles"
[defines]
TILE = 64
TILE_K = 32
KH = 3  # which the launch sets, as KW
KW = 3
[tune]
TILE = [32, 64]
TILE_K = [16, 32, 64]
[needs]
dtype = ["uint8", "int8"]
to = ["int32", "float32", "uint8", "int8"]
*/
#include "quantized_tiles.cuh"

// Rows of a tile are maps of the group blockIdx.z, columns outputs of any image; KH × KW is compiled in.
extern "C" __global__ void __launch_bounds__(THREADS)
    qconv(const void* __restrict__ x, const void* __restrict__ weight, const void* __restrict__ x_zero,
          const void* __restrict__ weight_zero, const int* __restrict__ bias, const double* __restrict__ scale,
          const double* __restrict__ shift, void* __restrict__ y, const QConvParams p) {
    __shared__ int left[QUADS][TILE + 1], right[QUADS][TILE + 1];
    const int maps = p.m / p.group, channels = p.c / p.group, all = channels * KH * KW;
    const int area = p.out_h * p.out_w;
    const index_t outputs = (index_t)p.n * area;
    const index_t across = (outputs + TILE - 1) / TILE;  // tiles side by side
    const int first_row = blockIdx.x / across * TILE, first_map = blockIdx.z * maps;
    const index_t first_column = blockIdx.x % across * TILE;
    const int zero = signed_byte(x_zero, 0, p.x_type);
    const auto of_weight = [&](int i, int k) {
        const int row = first_row + i;
        const index_t map = first_map + (row < maps ? row : 0);
        if (row >= maps || k >= all) return signed_byte(weight_zero, p.weight_zeros > 1 ? map : 0, p.weight_type);
        return signed_byte(weight, map * all + k, p.weight_type);
    };
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
    Sums sums;
    int terms = 0;
    for (; terms < all; terms += TILE_K) {
        fetch<true>(left, terms, of_weight);
        fetch<false>(right, terms, of_x);
        __syncthreads();  // both tiles are whole before anybody multiplies
        sums.add(left, right);
        __syncthreads();  // all have multiplied before the next tiles are written over these
    }
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int row = first_row + threadIdx.x / SIDE + i * SIDE, map = first_map + row;
#pragma unroll
        for (int j = 0; j < EACH; ++j) {
            const index_t column = first_column + threadIdx.x % SIDE + j * SIDE;
            if (row >= maps || column >= outputs) continue;
            const int own = signed_byte(weight_zero, p.weight_zeros > 1 ? map : 0, p.weight_type);
            const index_t at = (column / area * p.m + map) * area + column % area;
            finish(p, y, at, sums.of(i, j, own, zero, terms), map, bias, scale, shift);
        }
    }
}
