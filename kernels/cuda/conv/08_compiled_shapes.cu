/*
op = "conv"
rung = 8
name = "compiled_shapes"
method = "plain"  # term after term: n equal terms are off by up to n / 3 · 2⁻²⁴ of their sum
idea = "All shapes are compiled in: places in the tile become constants added to one address, and divisions become multiplications."
launch = "conv_compiled"
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
[needs]
kernel_max = 16
*/
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    __shared__ float tile[ROWS * COLUMNS];  // what a block's windows cover of one channel: loaded once, read by many

    const int channels = C / GROUP;
    const int image = blockIdx.x, om = blockIdx.y;
    const int across = (OUT_W + TILE_W - 1) / TILE_W;
    const int first_y = blockIdx.z / across * TILE_H, first_x = blockIdx.z % across * TILE_W;
    const int dy = threadIdx.x / TILE_W, dx = threadIdx.x % TILE_W;  // the output of this thread in the tile
    const int oy = first_y + dy, ox = first_x + dx;
    const bool mine = dy < TILE_H && oy < OUT_H && ox < OUT_W;
    const float* in = x + ((index_t)image * C + om / (M / GROUP) * channels) * H * W;
    const float* filter = weight + (index_t)om * channels * KH * KW;

    float sum = 0.0f;
    for (int ci = 0; ci < channels; ++ci, in += (index_t)H * W, filter += KH * KW) {
        for (int e = threadIdx.x; e < ROWS * COLUMNS; e += THREADS) {
            const int iy = first_y * STRIDE_H - PAD_TOP + e / COLUMNS;
            const int ix = first_x * STRIDE_W - PAD_LEFT + e % COLUMNS;
            tile[e] = iy >= 0 && iy < H && ix >= 0 && ix < W ? in[(index_t)iy * W + ix] : 0.0f;
        }
        __syncthreads();  // whole before anybody reads what others loaded
        if (mine) {
            const float* corner = tile + dy * STRIDE_H * COLUMNS + dx * STRIDE_W;
#pragma unroll
            for (int r = 0; r < KH; ++r)
#pragma unroll
                for (int s = 0; s < KW; ++s)
                    sum += corner[r * DILATION_H * COLUMNS + s * DILATION_W] * filter[r * KW + s];
        }
        __syncthreads();  // read by all before the next channel is written over it
    }
    if (mine)
        y[(((index_t)image * M + om) * OUT_H + oy) * OUT_W + ox] = activate(bias ? sum + bias[om] : sum, p.activation);
}
