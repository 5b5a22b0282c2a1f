/*
op = "resize"
rung = 1
name = "naive"
idea = "One thread an output: it finds its place in the image on both axes, and sums the elements beside it."
launch = "one_thread_an_output"
*/
#include "common.cuh"

#define MOST_TAPS 4

// The elements along one axis that an output is a sum of, and their weights.
struct Taps {
    int index[MOST_TAPS];
    float weight[MOST_TAPS];
};

// Of a place, the nearest element. What lacks the last bit of a whole number, or of a half, is one.
__device__ __forceinline__ int rounded(double at, int rounding) {
    const double near = (float)at;
    if (rounding == ROUNDING_FLOOR) return (int)floor(near);
    if (rounding == ROUNDING_CEIL) return (int)ceil(near);
    return (int)(rounding == ROUNDING_ROUND_PREFER_FLOOR ? ceil(near - 0.5) : floor(near + 0.5));
}

// The weight of an element so far away, by Keys's polynomials.
__device__ __forceinline__ float cubic(float away, float a) {
    if (away <= 1.0f) return ((a + 2.0f) * away - (a + 3.0f)) * away * away + 1.0f;
    return ((a * away - 5.0f * a) * away + 8.0f * a) * away - 4.0f * a;
}

// Along an axis of `size` elements, for a place on it: how many taps there are.
__device__ __forceinline__ int find(Taps& taps, double at, int size, const ResizeParams& p) {
    if (p.mode == RESIZE_NEAREST) {
        taps.index[0] = min(max(rounded(at, p.rounding), 0), size - 1);
        taps.weight[0] = 1.0f;
        return 1;
    }
    const int first = (int)floor(at), count = p.mode == RESIZE_LINEAR ? 2 : 4;
    const float part = (float)(at - first);
    float total = 0.0f;
#pragma unroll
    for (int t = 0; t < MOST_TAPS; ++t) {
        const int place = first + t - (count == 4);
        float weight = count == 2 ? (t == 0 ? 1.0f - part : part) : cubic(fabsf(part - (t - 1)), p.cubic_a);
        if (t >= count || (p.exclude_outside && (place < 0 || place >= size))) weight = 0.0f;
        taps.index[t] = min(max(place, 0), size - 1);  // the edge goes on
        taps.weight[t] = weight;
        total += weight;
    }
    if (p.exclude_outside) {
#pragma unroll
        for (int t = 0; t < MOST_TAPS; ++t) taps.weight[t] /= total;
    }
    return count;
}

// x is (OUTER, H, W, INNER), y (OUTER, OH, OW, INNER). Places are counted in double precision: along a thousand pixels
// a float has but four digits left for the part between two of them.
extern "C" __global__ void resize(const float* __restrict__ x, float* __restrict__ y, const ResizeParams p) {
    const index_t total = p.outer * p.out_h * p.out_w * p.inner;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int inner = i % p.inner, column = i / p.inner % p.out_w, row = i / p.inner / p.out_w % p.out_h;
        const float* in = x + i / p.inner / p.out_w / p.out_h * p.h * p.w * p.inner + inner;
        const double at_row = ((double)row * p.times_h + p.plus_h) / p.over_h + p.shift_h;
        const double at_column = ((double)column * p.times_w + p.plus_w) / p.over_w + p.shift_w;
        if (p.crops && (at_row < 0 || at_row > p.h - 1 || at_column < 0 || at_column > p.w - 1)) {
            y[i] = p.value;
            continue;
        }
        Taps rows, columns;
        const int count = find(rows, at_row, p.h, p);
        find(columns, at_column, p.w, p);
        if (count == 1) {
            y[i] = in[((index_t)rows.index[0] * p.w + columns.index[0]) * p.inner];
            continue;
        }
        float sum = 0.0f;
#pragma unroll
        for (int a = 0; a < MOST_TAPS; ++a) {
            if (a >= count) break;
            float along = 0.0f;
#pragma unroll
            for (int b = 0; b < MOST_TAPS; ++b) {
                if (b >= count) break;
                along += columns.weight[b] * in[((index_t)rows.index[a] * p.w + columns.index[b]) * p.inner];
            }
            sum += rows.weight[a] * along;
        }
        y[i] = sum;
    }
}
