/*
op = "conv"
rung = 17
name = "im2col_gemm"
idea = "The patches of the image are written out by a kernel of their own, so that the convolution is a plain matrix product: simple and general, at the price of writing and reading a copy that, at stride 1, is about as many times as large as the image as the window has taps."
launch = "conv_im2col"
side = true
[defines]
TILE_M = 128
TILE_N = 128
THREAD_M = 8
THREAD_N = 8
TILE_K = 8
VECTOR_W = 4       # weights at once: 4 where every filter begins on 16 bytes, else 1
SCRATCH_MIB = 256  # of patches at a time; the images of a larger batch take turns
*/
#include "patches.cuh"
#include "product.cuh"

extern "C" __global__ void conv(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y,
                                float* __restrict__ workspace, const ConvParams p) {
    write_patches(x, workspace, p);
}

// weight is (channels M / group) × (taps C / group · KH · KW), `group` times.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    conv_product(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                 float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    __shared__ Factors tile;
    const int outputs = p.m / p.group, taps = p.c / p.group * p.kh * p.kw;
    const int area = p.out_h * p.out_w, pixels = p.n * area;
    const index_t lead = row_length(pixels);
    const int g = blockIdx.z, first_output = blockIdx.y * TILE_M, first_pixel = blockIdx.x * TILE_N;
    const int first_map = g * outputs + first_output;

    multiply<VECTOR_W>(tile, weight + (index_t)first_map * taps, taps, workspace + g * taps * lead + first_pixel, lead,
                       outputs - first_output, pixels - first_pixel, taps, [&](int row, int column, float sum) {
                           const int pixel = first_pixel + column, om = first_map + row;
                           y[((index_t)(pixel / area) * p.m + om) * area + pixel % area] =
                               activate(bias ? sum + bias[om] : sum, p.activation);
                       });
}
