/*
op = "pool_index"
rung = 1
name = "naive"
idea = "One thread an output: it walks its window and notes where a larger value was found."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// x is (N, C, H, W), y (N, C, OH, OW).
extern "C" __global__ void pool_index(const float* __restrict__ x, index_t* __restrict__ y, const PoolIndexParams p) {
    const index_t total = (index_t)p.n * p.c * p.out_h * p.out_w;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int ox = i % p.out_w;
        const int oy = i / p.out_w % p.out_h;
        const index_t image = i / ((index_t)p.out_w * p.out_h) * p.h * p.w;
        float best = minus_infinity();
        index_t place = -1;
        for (int r = 0; r < p.kh; ++r) {
            const int iy = oy * p.stride_h - p.pad_top + r * p.dilation_h;
            if (iy < 0 || iy >= p.h) continue;
            for (int s = 0; s < p.kw; ++s) {
                const int ix = ox * p.stride_w - p.pad_left + s * p.dilation_w;
                if (ix < 0 || ix >= p.w) continue;
                const float v = x[image + (index_t)iy * p.w + ix];
                if (place < 0 || v > best) {
                    best = v;
                    place = p.by_columns ? (index_t)ix * p.h + iy : (index_t)iy * p.w + ix;
                }
            }
        }
        y[i] = image + place;
    }
}
