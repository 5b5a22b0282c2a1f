/*
op = "conv"
rung = 6
name = "constant_weights"
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
         float* __restrict__ y, int n, int c, int h, int w, int m, int kh, int kw, int out_h, int out_w,
         int stride_h, int stride_w, int pad_top, int pad_left, int dilation_h, int dilation_w, int group,
         int activation) {
    __shared__ float tile[ROWS * COLUMNS];  // what a block's windows cover of one channel: loaded once, read by many

    const int channels = c / group;
    const int image = blockIdx.x, om = blockIdx.y;
    const int across = (out_w + TILE_W - 1) / TILE_W;
    const int first_y = blockIdx.z / across * TILE_H, first_x = blockIdx.z % across * TILE_W;
    const int dy = threadIdx.x / TILE_W, dx = threadIdx.x % TILE_W;  // the output of this thread in the tile
    const int oy = first_y + dy, ox = first_x + dx;
    const bool mine = dy < TILE_H && oy < out_h && ox < out_w;
    const float* in = x + ((index_t)image * c + om / (m / group) * channels) * h * w;
    const float* filter = filters + (index_t)om * channels * kh * kw;

    float sum = 0.0f;
    for (int ci = 0; ci < channels; ++ci, in += (index_t)h * w, filter += kh * kw) {
        for (int e = threadIdx.x; e < ROWS * COLUMNS; e += THREADS) {
            const int iy = first_y * stride_h - pad_top + e / COLUMNS;
            const int ix = first_x * stride_w - pad_left + e % COLUMNS;
            tile[e] = iy >= 0 && iy < h && ix >= 0 && ix < w ? in[(index_t)iy * w + ix] : 0.0f;
        }
        __syncthreads();  // whole before anybody reads what others loaded
        if (mine) {
            const float* corner = tile + dy * stride_h * COLUMNS + dx * stride_w;
            for (int r = 0; r < kh; ++r)
                for (int s = 0; s < kw; ++s)
                    sum += corner[r * dilation_h * COLUMNS + s * dilation_w] * filter[r * kw + s];
        }
        __syncthreads();  // read by all before the next channel is written over it
    }
    if (mine)
        y[(((index_t)image * m + om) * out_h + oy) * out_w + ox] = activate(bias ? sum + bias[om] : sum, activation);
}
