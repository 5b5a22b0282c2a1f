/*
op = "pool"
rung = 3
name = "output_runs"
idea = "A thread takes RUN outputs one below the other: a row of the image is reduced once for all windows that it lies in, and where windows do not overlap it is read in one access a window."
launch = "pool_runs"
overlaps = true
[defines]
RUN = 4    # outputs a thread, fewer where threads would be few
VECTOR = 1  # columns of a window in one access; this line and those below: the launch sets them
KIND = 0
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
kernel_max = 8
*/
#include "common.cuh"
#include "overlap.cuh"

#if WIDE
typedef index_t place_t;
#else
typedef unsigned place_t;
#endif

#define RUNS ((OUT_H + RUN - 1) / RUN)
#define ROWS ((RUN - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1)  // of the image that a thread's windows cover

// Whether window `o` of the run holds row `row`: known at compile time, for the loops over both are unrolled.
__device__ __forceinline__ constexpr bool holds(int o, int row) {
    return row >= o * STRIDE_H && (row - o * STRIDE_H) % DILATION_H == 0 && (row - o * STRIDE_H) / DILATION_H < KH;
}

__device__ __forceinline__ float start() { return KIND == POOL_MAX ? minus_infinity() : 0.0f; }
__device__ __forceinline__ float joined(float a, float b) { return KIND == POOL_MAX ? larger(a, b) : a + b; }

// The part of one row that lies in the windows whose left edge is `left`.
__device__ __forceinline__ float reduced(const float* __restrict__ row, int left) {
#if VECTOR == 4
    const float4 v = *reinterpret_cast<const float4*>(row + left);
    return joined(joined(v.x, v.y), joined(v.z, v.w));
#elif VECTOR == 2
    const float2 v = *reinterpret_cast<const float2*>(row + left);
    return joined(v.x, v.y);
#else
    float found = start();
#pragma unroll
    for (int s = 0; s < KW; ++s) {
        const int ix = left + s * DILATION_W;
        if (ix >= 0 && ix < W) found = joined(found, row[ix]);
    }
    return found;
#endif
}

// How many of `taps` places from `first` on count in an average, along an axis of `size` with `after` behind it.
__device__ __forceinline__ int counted(int first, int taps, int dilation, int size, int after) {
    int found = 0;
    for (int k = 0; k < taps; ++k) {
        const int place = first + k * dilation;
        found += COUNT_PAD ? place < size + after : place >= 0 && place < size;
    }
    return found;
}

extern "C" __global__ void pool(const float* __restrict__ x, float* __restrict__ y, int kind, int n, int c, int h,
                                int w, int kh, int kw, int out_h, int out_w, int stride_h, int stride_w,
                                int pad_top, int pad_left, int pad_bottom, int pad_right, int dilation_h,
                                int dilation_w, int count_include_pad, int activation) {
    let_next_begin();
    const place_t i = (place_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (place_t)n * c * (RUNS * OUT_W)) return;
    const int ox = i % OUT_W, first = (int)(i / OUT_W % RUNS) * RUN;
    const int left = ox * STRIDE_W - PAD_LEFT, top = first * STRIDE_H - PAD_TOP;
    const index_t plane = i / (RUNS * OUT_W);
    wait_for_previous();
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
    float* out = y + plane * (OUT_H * OUT_W) + first * OUT_W + ox;
    const int columns = KIND == POOL_MAX ? 1 : counted(left, KW, DILATION_W, W, PAD_RIGHT);
#pragma unroll
    for (int o = 0; o < RUN; ++o) {
        if (first + o >= OUT_H) break;
        float v = found[o];
        if (KIND != POOL_MAX) v /= columns * counted(top + o * STRIDE_H, KH, DILATION_H, H, PAD_BOTTOM);
        out[o * OUT_W] = activate(v, AFTER);
    }
}
