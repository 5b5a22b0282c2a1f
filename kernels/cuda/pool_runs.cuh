// What pools share of which a thread takes a run of RUN outputs, one below the other.
#pragma once
#include "pool.cuh"

#define RUNS ((OUT_H + RUN - 1) / RUN)
#define ROWS ((RUN - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1)  // of the image that a thread's windows cover

// Whether window `o` of the run holds row `row`: known at compile time, for the loops over both are unrolled.
__device__ __forceinline__ constexpr bool holds(int o, int row) {
    return row >= o * STRIDE_H && (row - o * STRIDE_H) % DILATION_H == 0 && (row - o * STRIDE_H) / DILATION_H < KH;
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

// Writes what was found of a run, whose first output is in row `first` of y, its window's corner in row `top` and
// column `left` of the image.
__device__ __forceinline__ void write_run(float* out, const float (&found)[RUN], int first, int top, int left) {
    const int columns = KIND == POOL_MAX ? 1 : counted(left, KW, DILATION_W, W, PAD_RIGHT);
#pragma unroll
    for (int o = 0; o < RUN; ++o) {
        if (first + o >= OUT_H) break;
        float v = found[o];
        if (KIND != POOL_MAX) v /= columns * counted(top + o * STRIDE_H, KH, DILATION_H, H, PAD_BOTTOM);
        out[o * OUT_W] = activate(v, AFTER);
    }
}
