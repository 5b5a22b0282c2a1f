/*
op = "pool"
rung = 2
name = "compiled_window"
idea = "All shapes are compiled in: the reads of a window are unrolled and in flight together, and finding an output's place takes multiplications instead of 64-bit divisions."
launch = "pool_compiled"
overlaps = true
[defines]
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
kernel_max = 16
*/
#include "overlap.cuh"
#include "pool.cuh"

extern "C" __global__ void pool(const float* __restrict__ x, float* __restrict__ y, const PoolParams p) {
    let_next_begin();
    wait_for_previous();
    x = written(x);
    const place_t total = (place_t)p.n * p.c * (OUT_H * OUT_W);
    const place_t i = (place_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    const int left = (int)(i % OUT_W) * STRIDE_W - PAD_LEFT;
    const int top = (int)(i / OUT_W % OUT_H) * STRIDE_H - PAD_TOP;
    const float* in = x + (index_t)(i / (OUT_H * OUT_W)) * (H * W);
    float best = minus_infinity();
    float sum = 0.0f;
    int counted = 0;
#pragma unroll
    for (int r = 0; r < KH; ++r) {
        float of_row = 0.0f;  // summed by itself: up to 256 pixels one after the other would lose digits
#pragma unroll
        for (int s = 0; s < KW; ++s) {
            const int iy = top + r * DILATION_H, ix = left + s * DILATION_W;
            const bool inside = iy >= 0 && iy < H && ix >= 0 && ix < W;
            counted += inside || (COUNT_PAD && iy < H + PAD_BOTTOM && ix < W + PAD_RIGHT);
            const float v = inside ? in[iy * W + ix] : start();
            of_row += v;
            best = larger(best, v);
        }
        sum += of_row;
    }
    y[i] = activate(KIND == POOL_MAX ? best : sum / counted, AFTER);
}
