/*
op = "conv"
rung = 12
name = "shared_tiles"
idea = "The convolution as a matrix product, channels × pixels: a block gathers a tile of both operands into shared memory once, and each thread keeps the sums of four channels of its pixel in registers."
launch = "conv_tiles"
[defines]
TILE_M = 16  # channels a block
TILE_N = 64  # pixels a block, of the whole batch laid end to end
TILE_K = 16  # taps (channel, row, column of the filter) a step
ROWS = 4     # channels a thread
*/
#include "common.cuh"
#include "sums.cuh"

#define THREADS (TILE_M / ROWS * TILE_N)
static_assert(TILE_M % ROWS == 0 && TILE_M * TILE_K % THREADS == 0 && TILE_N * TILE_K % THREADS == 0,
              "the threads of a block must share both tiles evenly");

// The weights of a group are a matrix (channels M / group) × (taps K = C / group · KH · KW) as they lie; the image
// patches, taps × pixels (N · OH · OW), are never written out: tap and pixel say where in x an element is.
extern "C" __global__ void __launch_bounds__(THREADS)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    __shared__ float weights[TILE_K][TILE_M];
    __shared__ float patches[TILE_K][TILE_N];  // tap by tap: a warp reads neighbouring pixels

    const int channels = p.c / p.group, outputs = p.m / p.group;
    const int taps = channels * p.kh * p.kw;
    const int area = p.out_h * p.out_w;
    const int pixels = p.n * area;
    const int g = blockIdx.z;
    const int first_output = blockIdx.y * TILE_M;  // within the group

    // The pixel of this thread: it gathers this column of the patches, and computes ROWS channels of it.
    const int column = threadIdx.x % TILE_N;
    const int row = threadIdx.x / TILE_N;
    const int pixel = blockIdx.x * TILE_N + column;
    const int image = pixel / area, place = pixel % area;
    const int top = place / p.out_w * p.stride_h - p.pad_top;
    const int left = place % p.out_w * p.stride_w - p.pad_left;
    const float* in = x + ((index_t)image * p.c + g * channels) * p.h * p.w;
    const float* filters = weight + (index_t)(g * outputs + first_output) * taps;

    float sum[ROWS] = {};
    Wholes<ROWS> wholes(p.c);
    for (int k0 = 0; k0 < taps; k0 += TILE_K) {
        for (int e = threadIdx.x; e < TILE_M * TILE_K; e += THREADS) {
            const int k = e % TILE_K, o = e / TILE_K;
            const bool inside = k0 + k < taps && first_output + o < outputs;
            weights[k][o] = inside ? filters[(index_t)o * taps + k0 + k] : 0.0f;
        }
        for (int k = row; k < TILE_K; k += THREADS / TILE_N) {
            const int tap = k0 + k;
            const int ci = tap / (p.kh * p.kw), r = tap / p.kw % p.kh, s = tap % p.kw;
            const int iy = top + r * p.dilation_h, ix = left + s * p.dilation_w;
            const bool inside = tap < taps && pixel < pixels && iy >= 0 && iy < p.h && ix >= 0 && ix < p.w;
            patches[k][column] = inside ? in[(ci * p.h + iy) * p.w + ix] : 0.0f;
        }
        __syncthreads();  // both tiles are whole before anybody multiplies
#pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            const float v = patches[k][column];
#pragma unroll
            for (int i = 0; i < ROWS; ++i) sum[i] += weights[k][row * ROWS + i] * v;
        }
        __syncthreads();  // all have multiplied before the next tiles are written over these
        if ((k0 + TILE_K) % wholes.TERMS == 0) wholes.take(sum, k0 / wholes.TERMS);
    }
    wholes.give(sum, (taps + TILE_K - 1) / wholes.TERMS);
    if (pixel >= pixels) return;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int o = first_output + row * ROWS + i;
        if (o >= outputs) break;
        const int om = g * outputs + o;
        y[((index_t)image * p.m + om) * area + place] = activate(bias ? sum[i] + bias[om] : sum[i], p.activation);
    }
}
