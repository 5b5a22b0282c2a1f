// What pools share that take runs of outputs below each other; the shapes are defines of kernels/launch/windows.py.
#pragma once

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

// How many of `taps` places from `first` on count in an average, along an axis of `size` with `after` behind it.
__device__ __forceinline__ int counted(int first, int taps, int dilation, int size, int after) {
    int found = 0;
    for (int k = 0; k < taps; ++k) {
        const int place = first + k * dilation;
        found += COUNT_PAD ? place < size + after : place >= 0 && place < size;
    }
    return found;
}
