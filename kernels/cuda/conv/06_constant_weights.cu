/*
op = "conv"
rung = 6
name = "constant_weights"
method = "plain"  # term after term: n equal terms are off by up to n / 3 · 2⁻²⁴ of their sum
idea = "The weights lie in constant memory, whose cache hands a word to all threads of a warp at once, as they all want the same one."
launch = "conv_constant_weights"
side = true
[defines]
TILE_H = 8    # outputs a block; this line and those below: the launch fits them to the image
TILE_W = 8
ROWS = 16     # of the image that those outputs read
COLUMNS = 16
THREADS = 64
WEIGHTS = 1   # elements of the weights
[needs]
weights_max = 16384  # 64 KB, all the constant memory there is
*/
#include "common.cuh"

extern "C" {
__constant__ float filters[WEIGHTS];  // a copy of the weights, made before each launch
}

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
    const float* filter = filters + (index_t)om * channels * p.kh * p.kw;

    float sum = 0.0f;
    for (int ci = 0; ci < channels; ++ci, in += (index_t)p.h * p.w, filter += p.kh * p.kw) {
        for (int e = threadIdx.x; e < ROWS * COLUMNS; e += THREADS) {
            const int iy = first_y * p.stride_h - p.pad_top + e / COLUMNS;
            const int ix = first_x * p.stride_w - p.pad_left + e % COLUMNS;
            tile[e] = iy >= 0 && iy < p.h && ix >= 0 && ix < p.w ? in[(index_t)iy * p.w + ix] : 0.0f;
        }
        __syncthreads();  // whole before anybody reads what others loaded
        if (mine) {
            const float* corner = tile + dy * p.stride_h * COLUMNS + dx * p.stride_w;
            for (int r = 0; r < p.kh; ++r)
                for (int s = 0; s < p.kw; ++s)
                    sum += corner[r * p.dilation_h * COLUMNS + s * p.dilation_w] * filter[r * p.kw + s];
        }
        __syncthreads();  // read by all before the next channel is written over it
    }
    if (mine)
        y[(((index_t)image * p.m + om) * p.out_h + oy) * p.out_w + ox] =
            activate(bias ? sum + bias[om] : sum, p.activation);
}
