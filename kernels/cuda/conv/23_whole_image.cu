/*
op = "conv"
rung = 23
name = "whole_image"
idea = "A small image fits into shared memory whole, with its border and all its channels, and so do the weights: a block reads both once, waits once, and then only multiplies, a few rows and four maps a thread."
launch = "conv_whole_image"
packs = true
overlaps = true
[defines]
ROWS = 14    # of the padded image; this line and those below: the launch fits them to the shapes
COLUMNS = 14
THREADS = 128
DOWN = 4     # outputs a thread, one below the other, in FOUR maps
MAPS = 16    # maps a block, a multiple of FOUR
KH = 5       # the window
KW = 5
C = 6        # all the shapes
H = 14
W = 14
M = 16
OUT_H = 10
OUT_W = 10
STRIDE_H = 1
STRIDE_W = 1
PAD_TOP = 0
PAD_LEFT = 0
DILATION_H = 1
DILATION_W = 1
GROUP = 1
[needs]
kernel_max = 16
image_max = 16384
weights_max = 65536
*/
#include "common.cuh"
#include "overlap.cuh"

#define FOUR 4
#define CHANNELS (C / GROUP)
#define OUTPUTS (M / GROUP)
#define TAPS (CHANNELS * KH * KW)
#define PARTS ((OUTPUTS + MAPS - 1) / MAPS)  // blocks that share the maps of a group
#define STRIPS ((OUT_H + DOWN - 1) / DOWN * OUT_W)
#define REACH ((DOWN - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1)  // rows that a thread's outputs see

// weight is packed: (GROUP, PARTS, TAPS, MAPS), zero where a map is beyond the last.
extern "C" __global__ void __launch_bounds__(THREADS)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, int n, int c, int h, int w, int m, int kh, int kw, int out_h, int out_w,
         int stride_h, int stride_w, int pad_top, int pad_left, int dilation_h, int dilation_w, int group,
         int activation) {
    __shared__ float pixels[CHANNELS][ROWS][COLUMNS];
    __shared__ float4 filters[TAPS][MAPS / FOUR];

    const int g = blockIdx.y / PARTS, first_map = blockIdx.y % PARTS * MAPS;
    const float4* packed = reinterpret_cast<const float4*>(weight) + blockIdx.y * (TAPS * MAPS / FOUR);
    float4* flat = &filters[0][0];
#pragma unroll 4
    for (int e = threadIdx.x; e < TAPS * MAPS / FOUR; e += THREADS) flat[e] = packed[e];
    let_next_begin();
    wait_for_previous();

    for (int image = blockIdx.x; image < n; image += gridDim.x) {
        const float* in = x + ((index_t)image * C + g * CHANNELS) * (H * W);
#pragma unroll 4
        for (int e = threadIdx.x; e < CHANNELS * ROWS * COLUMNS; e += THREADS) {
            const int ci = e / (ROWS * COLUMNS), row = e / COLUMNS % ROWS, column = e % COLUMNS;
            const int iy = row - PAD_TOP, ix = column - PAD_LEFT;
            const bool inside = (unsigned)iy < (unsigned)H && (unsigned)ix < (unsigned)W;
            pixels[ci][row][column] = inside ? in[(ci * H + iy) * W + ix] : 0.0f;
        }
        __syncthreads();
        for (int e = threadIdx.x; e < STRIPS * (MAPS / FOUR); e += THREADS) {
            const int quad = e / STRIPS, strip = e % STRIPS;
            const int oy = strip / OUT_W * DOWN, ox = strip % OUT_W;
            float sum[DOWN][FOUR] = {};
#pragma unroll 1
            for (int ci = 0; ci < CHANNELS; ++ci) {
#pragma unroll
                for (int s = 0; s < KW; ++s) {
                    const float* corner = &pixels[ci][oy * STRIDE_H][ox * STRIDE_W + s * DILATION_W];
                    float v[REACH];
#pragma unroll
                    for (int i = 0; i < REACH; ++i) v[i] = corner[i * COLUMNS];
#pragma unroll
                    for (int r = 0; r < KH; ++r) {
                        const float4 u = filters[(ci * KH + r) * KW + s][quad];
#pragma unroll
                        for (int d = 0; d < DOWN; ++d) {
                            const float p = v[d * STRIDE_H + r * DILATION_H];
                            sum[d][0] += u.x * p;
                            sum[d][1] += u.y * p;
                            sum[d][2] += u.z * p;
                            sum[d][3] += u.w * p;
                        }
                    }
                }
            }
#pragma unroll
            for (int o = 0; o < FOUR; ++o) {
                const int map = first_map + quad * FOUR + o;
                if (map >= OUTPUTS) break;
                const float shift = bias ? bias[g * OUTPUTS + map] : 0.0f;
                float* out = y + (((index_t)image * M + g * OUTPUTS + map) * OUT_H + oy) * OUT_W + ox;
#pragma unroll
                for (int d = 0; d < DOWN; ++d)
                    if (oy + d < OUT_H) out[d * OUT_W] = activate(sum[d][o] + shift, activation);
            }
        }
        __syncthreads();  // before the next image takes the place of this one
    }
}
