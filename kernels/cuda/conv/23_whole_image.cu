/*
op = "conv"
rung = 23
name = "whole_image"
idea = "A small image fits into shared memory with its border and all its channels, and so do the weights: a block reads both once, waits once, and then only multiplies. Where images are few, their rows, their maps and the channels of a sum are shared among more blocks and threads."
launch = "conv_whole_image"
packs = true
overlaps = true
[defines]
BAND = 10    # rows of y a block; this line and those below: the launch fits them to the shapes
ROWS = 14    # of the padded image that they read
COLUMNS = 14
THREADS = 128
DOWN = 4     # outputs a thread, one below the other, in FOUR maps
MAPS = 16    # maps a block, a multiple of FOUR
SHARES = 1   # threads that share the channels of a sum
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

#if SHARES > 1 && DOWN > 1
#error "sums that are shared have one output a thread"
#endif

#define FOUR 4
#define CHANNELS (C / GROUP)
#define OUTPUTS (M / GROUP)
#define TAPS (CHANNELS * KH * KW)
#define PARTS ((OUTPUTS + MAPS - 1) / MAPS)  // blocks that share the maps of a group
#define STRIPS ((BAND + DOWN - 1) / DOWN * OUT_W)
#define WORK (STRIPS * (MAPS / FOUR))
#define OF_EACH ((CHANNELS + SHARES - 1) / SHARES)  // channels
#define REACH ((DOWN - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1)  // rows that a thread's outputs see

// weight is packed: (GROUP, PARTS, TAPS, MAPS), zero where a map is beyond the last.
extern "C" __global__ void __launch_bounds__(THREADS)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, int n, int c, int h, int w, int m, int kh, int kw, int out_h, int out_w,
         int stride_h, int stride_w, int pad_top, int pad_left, int dilation_h, int dilation_w, int group,
         int activation) {
    __shared__ float pixels[CHANNELS][ROWS][COLUMNS];
    __shared__ float4 filters[TAPS][MAPS / FOUR];
#if SHARES > 1
    __shared__ float4 parts[SHARES][WORK];
#endif

    const int g = blockIdx.y / PARTS, first_map = blockIdx.y % PARTS * MAPS, first_row = blockIdx.z * BAND;
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
            const int iy = first_row * STRIDE_H + row - PAD_TOP, ix = column - PAD_LEFT;
            const bool inside = (unsigned)iy < (unsigned)H && (unsigned)ix < (unsigned)W;
            pixels[ci][row][column] = inside ? in[(ci * H + iy) * W + ix] : 0.0f;
        }
        __syncthreads();
        for (int e = threadIdx.x; e < WORK * SHARES; e += THREADS) {
            const int share = e / WORK, quad = e % WORK / STRIPS, strip = e % STRIPS;
            const int oy = strip / OUT_W * DOWN, ox = strip % OUT_W;
            float sum[DOWN][FOUR] = {};
#pragma unroll 1
            for (int ci = share * OF_EACH; ci < min(CHANNELS, (share + 1) * OF_EACH); ++ci) {
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
#if SHARES > 1
            parts[share][e % WORK] = make_float4(sum[0][0], sum[0][1], sum[0][2], sum[0][3]);
        }
        __syncthreads();
        for (int e = threadIdx.x; e < WORK; e += THREADS) {
            const int quad = e / STRIPS, strip = e % STRIPS;
            const int oy = strip / OUT_W, ox = strip % OUT_W;
            float sum[1][FOUR] = {};
#pragma unroll
            for (int share = 0; share < SHARES; ++share) {  // in the same order each time
                const float4 part = parts[share][e];
                sum[0][0] += part.x;
                sum[0][1] += part.y;
                sum[0][2] += part.z;
                sum[0][3] += part.w;
            }
#endif
#pragma unroll
            for (int o = 0; o < FOUR; ++o) {
                const int map = first_map + quad * FOUR + o;
                if (map >= OUTPUTS) break;
                const float shift = bias ? bias[g * OUTPUTS + map] : 0.0f;
                const int row = first_row + oy;
                float* out = y + (((index_t)image * M + g * OUTPUTS + map) * OUT_H + row) * OUT_W + ox;
#pragma unroll
                for (int d = 0; d < DOWN; ++d)
                    if (oy + d < BAND && row + d < OUT_H)
                        out[d * OUT_W] = activate(sum[d][o] + shift, activation);
            }
        }
        __syncthreads();  // before the next image takes the place of this one
    }
}
