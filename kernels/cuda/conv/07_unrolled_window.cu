/*
op = "conv"
rung = 7
name = "unrolled_window"
method = "plain"  # term after term: n equal terms are off by up to n / 3 · 2⁻²⁴ of their sum
idea = "The size of the window is compiled in and its loops are unrolled: no counters and no branches between the multiplications, and all reads of a window in flight."
launch = "conv_unrolled"
[defines]
TILE_H = 8    # outputs a block; this line and those below: the launch fits them to the image
TILE_W = 8
ROWS = 16     # of the image that those outputs read
COLUMNS = 16
THREADS = 64
KH = 5        # the window
KW = 5
[needs]
kernel_max = 16
*/
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    __shared__ float tile[ROWS * COLUMNS];  // what a block's windows cover of one channel: loaded once, read by many

    const int channels = p.c / p.group;
    const int image = blockIdx.x, om = blockIdx.y;
    const int across = (p.out_w + TILE_W - 1) / TILE_W;
    const int first_y = blockIdx.z / across * TILE_H, first_x = blockIdx.z % across * TILE_W;
    const int dy = threadIdx.x / TILE_W, dx = threadIdx.x % TILE_W;  // the output of this thread in the tile
    const int oy = first_y + dy, ox = first_x + dx;
    const bool mine = dy < TILE_H && oy < p.out_h && ox < p.out_w;
    const float* in = x + ((index_t)image * p.c + om / (p.m / p.group) * channels) * p.h * p.w;
    const float* filter = weight + (index_t)om * channels * KH * KW;

    float sum = 0.0f;
    for (int ci = 0; ci < channels; ++ci, in += (index_t)p.h * p.w, filter += KH * KW) {
        for (int e = threadIdx.x; e < ROWS * COLUMNS; e += THREADS) {
            const int iy = first_y * p.stride_h - p.pad_top + e / COLUMNS;
            const int ix = first_x * p.stride_w - p.pad_left + e % COLUMNS;
            tile[e] = iy >= 0 && iy < p.h && ix >= 0 && ix < p.w ? in[(index_t)iy * p.w + ix] : 0.0f;
        }
        __syncthreads();  // whole before anybody reads what others loaded
        if (mine) {
            const float* corner = tile + dy * p.stride_h * COLUMNS + dx * p.stride_w;
#pragma unroll
            for (int r = 0; r < KH; ++r)
#pragma unroll
                for (int s = 0; s < KW; ++s)
                    sum += corner[r * p.dilation_h * COLUMNS + s * p.dilation_w] * filter[r * KW + s];
        }
        __syncthreads();  // read by all before the next channel is written over it
    }
    if (mine)
        y[(((index_t)image * p.m + om) * p.out_h + oy) * p.out_w + ox] =
            activate(bias ? sum + bias[om] : sum, p.activation);
}
