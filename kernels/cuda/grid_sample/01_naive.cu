/*
op = "grid_sample"
rung = 1
name = "naive"
idea = "One thread an output: it turns the grid's place into one of x, and adds up the elements round it by their weights."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// A place beyond x, reflected at its middles (corners) or edges as often as it takes.
__device__ __forceinline__ float reflected(float v, float low, float high) {
    const float range = high - low;
    if (range <= 0.0f) return low;
    if (v >= low && v <= high) return v;
    const float off = v < low ? low - v : v - high;
    const float times = floorf(off / range), rest = off - times * range;
    const bool even = fmodf(times, 2.0f) == 0.0f;
    return (v < low) == even ? low + rest : high - rest;
}

__device__ __forceinline__ int clamped(int i, int size) { return i < 0 ? 0 : i >= size ? size - 1 : i; }

// The element that tap i of an axis reads; -1 for a zero.
__device__ __forceinline__ int tap(int i, int size, const GridSampleParams& p) {
    if (i >= 0 && i < size) return i;
    if (p.padding == BEYOND_ZEROS) return -1;
    if (p.padding == BEYOND_BORDER) return clamped(i, size);
    const float edge = p.corners ? 0.0f : 0.5f;
    return clamped((int)reflected((float)i, -edge, size - 1 + edge), size);
}

// The weights of the taps from floor(place) on (linear), or from the one before (cubic, Keys' with a = -0.75).
__device__ __forceinline__ void weigh(float t, int mode, float* w) {
    if (mode == GRID_NEAREST) {
        w[0] = 1.0f;
    } else if (mode == GRID_LINEAR) {
        w[0] = 1.0f - t, w[1] = t;
    } else {
        const float a = -0.75f;
        for (int i = 0; i < 4; ++i) {
            const float s = fabsf(t - (i - 1));
            w[i] = s <= 1.0f ? ((a + 2.0f) * s - (a + 3.0f)) * s * s + 1.0f
                             : ((a * s - 5.0f * a) * s + 8.0f * a) * s - 4.0f * a;
        }
    }
}

// x is (n, c, size), grid (n, out, dims), y (n, c, out); the grid's numbers are of the last axis first.
extern "C" __global__ void grid_sample(const float* __restrict__ x, const float* __restrict__ grid,
                                       float* __restrict__ y, const GridSampleParams p) {
    const index_t outs = (index_t)p.out[0] * p.out[1] * p.out[2];
    const index_t image = (index_t)p.size[0] * p.size[1] * p.size[2];
    const int taps = p.mode == GRID_NEAREST ? 1 : p.mode == GRID_LINEAR ? 2 : 4;
    for (index_t i = first_element(); i < (index_t)p.n * p.c * outs; i += grid_stride()) {
        const index_t plane = i / outs, n = plane / p.c;
        const float* at = grid + (n * outs + i % outs) * p.dims;
        int from[3] = {0, 0, 0}, count[3] = {1, 1, 1};
        float weights[3][4] = {{1.0f}, {1.0f}, {1.0f}};
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
            if (axis < 3 - p.dims) continue;
            const int size = p.size[axis];
            const float g = at[2 - axis], edge = p.corners ? 0.0f : 0.5f;
            float v = p.corners ? (g + 1.0f) / 2.0f * (size - 1) : ((g + 1.0f) * size - 1.0f) / 2.0f;
            if (p.mode == GRID_NEAREST) v = rintf(v);
            if (p.padding == BEYOND_BORDER && p.mode != GRID_CUBIC && (v < -edge || v > size - 1 + edge)) {
                v = v < 0.0f ? 0.0f : size - 1;  // of a cubic one each tap is held within x by itself
            }
            if (p.padding == BEYOND_REFLECTION) v = reflected(v, -edge, size - 1 + edge);
            // Far beyond x, and NaN, are as good as just beyond it: a whole number holds them.
            v = v > -4.0f ? v < size + 4.0f ? v : size + 4.0f : -4.0f;
            const float whole = p.mode == GRID_NEAREST ? truncf(v) : floorf(v);
            from[axis] = (int)whole - (p.mode == GRID_CUBIC);
            count[axis] = taps;
            weigh(v - whole, p.mode, weights[axis]);
        }
        float sum = 0.0f;
        for (int a = 0; a < count[0]; ++a) {
            const int z = tap(from[0] + a, p.size[0], p);
            for (int b = 0; b < count[1]; ++b) {
                const int row = tap(from[1] + b, p.size[1], p);
                float along = 0.0f;
                for (int c = 0; c < count[2]; ++c) {
                    const int column = tap(from[2] + c, p.size[2], p);
                    const bool inside = z >= 0 && row >= 0 && column >= 0;
                    const float v =
                        inside ? x[plane * image + ((index_t)z * p.size[1] + row) * p.size[2] + column] : 0.0f;
                    along += weights[2][c] * v;
                }
                sum += weights[0][a] * weights[1][b] * along;
            }
        }
        y[i] = sum;
    }
}
