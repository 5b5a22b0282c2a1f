/*
op = "conv"
rung = 9
name = "several_maps"
method = "plain"  # term after term: n equal terms are off by up to n / 3 · 2⁻²⁴ of their sum
idea = "A thread computes its pixel in several maps, whose weights lie in shared memory too: a value of the image, once read, serves as many multiplications."
launch = "conv_several_maps"
[defines]
TILE_H = 8    # outputs a block; this line and those below: the launch fits them to the image
TILE_W = 8
ROWS = 16     # of the image that those outputs read
COLUMNS = 16
THREADS = 64
KH = 5        # the window
KW = 5
C = 1         # all the shapes
H = 12
W = 12
M = 1
OUT_H = 8
OUT_W = 8
STRIDE_H = 1
STRIDE_W = 1
PAD_TOP = 0
PAD_LEFT = 0
DILATION_H = 1
DILATION_W = 1
GROUP = 1
MAPS = 8      # maps a thread
[needs]
kernel_max = 16
*/
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    __shared__ float tile[ROWS * COLUMNS];  // what a block's windows cover of one channel: loaded once, read by many
    __shared__ __align__(16) float filters[KH * KW][MAPS];  // a tap's maps side by side

    const int channels = C / GROUP, outputs = M / GROUP;
    const int image = blockIdx.x;
    const int parts = (outputs + MAPS - 1) / MAPS;  // this many blocks do all maps together
    const int g = blockIdx.y / parts, first_map = blockIdx.y % parts * MAPS;
    const int across = (OUT_W + TILE_W - 1) / TILE_W;
    const int first_y = blockIdx.z / across * TILE_H, first_x = blockIdx.z % across * TILE_W;
    const int dy = threadIdx.x / TILE_W, dx = threadIdx.x % TILE_W;
    const int oy = first_y + dy, ox = first_x + dx;
    const bool mine = dy < TILE_H && oy < OUT_H && ox < OUT_W;
    const float* in = x + ((index_t)image * C + g * channels) * H * W;
    const float* filter = weight + (index_t)(g * outputs + first_map) * channels * KH * KW;

    float sum[MAPS] = {};
    for (int ci = 0; ci < channels; ++ci, in += (index_t)H * W, filter += KH * KW) {
        for (int e = threadIdx.x; e < ROWS * COLUMNS; e += THREADS) {
            const int iy = first_y * STRIDE_H - PAD_TOP + e / COLUMNS;
            const int ix = first_x * STRIDE_W - PAD_LEFT + e % COLUMNS;
            tile[e] = iy >= 0 && iy < H && ix >= 0 && ix < W ? in[(index_t)iy * W + ix] : 0.0f;
        }
        for (int e = threadIdx.x; e < MAPS * KH * KW; e += THREADS) {
            const int o = e / (KH * KW), tap = e % (KH * KW);
            filters[tap][o] = first_map + o < outputs ? filter[o * channels * KH * KW + tap] : 0.0f;
        }
        __syncthreads();  // whole before anybody reads what others loaded
        if (mine) {
            const float* corner = tile + dy * STRIDE_H * COLUMNS + dx * STRIDE_W;
#pragma unroll
            for (int r = 0; r < KH; ++r)
#pragma unroll
                for (int s = 0; s < KW; ++s) {
                    const float v = corner[r * DILATION_H * COLUMNS + s * DILATION_W];
#pragma unroll
                    for (int o = 0; o < MAPS; ++o) sum[o] += filters[r * KW + s][o] * v;
                }
        }
        __syncthreads();  // read by all before the next channel is written over them
    }
    if (!mine) return;
#pragma unroll
    for (int o = 0; o < MAPS; ++o) {
        if (first_map + o >= outputs) break;
        const int om = g * outputs + first_map + o;
        y[(((index_t)image * M + om) * OUT_H + oy) * OUT_W + ox] =
            activate(bias ? sum[o] + bias[om] : sum[o], p.activation);
    }
}
