/*
op = "pool"
rung = 4
name = "pairs"
idea = "Where windows of two columns lie side by side, both pixels of a row of a window are read in one access."
launch = "pool_runs"
overlaps = true
[defines]
RUN = 4   # outputs a thread, fewer where threads would be few
KIND = 0  # this line and those below: the launch sets them to the parameters
H = 8
W = 8
OUT_H = 4
OUT_W = 4
KH = 2
KW = 2
STRIDE_H = 2
STRIDE_W = 2
PAD_TOP = 0
PAD_LEFT = 0
PAD_BOTTOM = 0
PAD_RIGHT = 0
DILATION_H = 1
DILATION_W = 1
COUNT_PAD = 0
AFTER = 0  # the activation
WIDE = 0  # more outputs than 32 bits count
[needs]
side_by_side = 2
kernel_max = 8
*/
#include "overlap.cuh"
#include "pool_runs.cuh"

// The part of one row that lies in the window whose left edge is `left`.
__device__ __forceinline__ float reduced(const float* __restrict__ row, int left) {
    const float2 v = *reinterpret_cast<const float2*>(row + left);
    return joined(v.x, v.y);
}

extern "C" __global__ void pool(const float* __restrict__ x, float* __restrict__ y, const PoolParams p) {
    let_next_begin();
    const place_t i = (place_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (place_t)p.n * p.c * (RUNS * OUT_W)) return;
    const int ox = i % OUT_W, first = (int)(i / OUT_W % RUNS) * RUN;
    const int left = ox * STRIDE_W - PAD_LEFT, top = first * STRIDE_H - PAD_TOP;
    const index_t plane = i / (RUNS * OUT_W);
    wait_for_previous();
    x = written(x);
    const float* in = x + plane * (H * W);
    float found[RUN];
#pragma unroll
    for (int o = 0; o < RUN; ++o) found[o] = start();
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
        const int iy = top + row;
        const float part = iy >= 0 && iy < H ? reduced(in + iy * W, left) : start();
#pragma unroll
        for (int o = 0; o < RUN; ++o) {
            if (holds(o, row)) found[o] = joined(found[o], part);
        }
    }
    write_run(y + plane * (OUT_H * OUT_W) + first * OUT_W + ox, found, first, top, left);
}
