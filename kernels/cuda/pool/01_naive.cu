/*
op = "pool"
rung = 1
name = "naive"
idea = "One thread an output: it walks its window."
launch = "one_thread_an_output"
*/
#include "common.cuh"
#include "sums.cuh"

// x is (N, C, H, W), y (N, C, OH, OW).
extern "C" __global__ void pool(const float* __restrict__ x, float* __restrict__ y, const PoolParams p) {
    const index_t total = (index_t)p.n * p.c * p.out_h * p.out_w;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int ox = i % p.out_w;
        const int oy = i / p.out_w % p.out_h;
        const float* in = x + i / ((index_t)p.out_w * p.out_h) * p.h * p.w;
        float best = minus_infinity();
        LongSum sum;
        int counted = 0;
        for (int r = 0; r < p.kh; ++r) {
            const int iy = oy * p.stride_h - p.pad_top + r * p.dilation_h;
            if (iy >= p.h + p.pad_bottom) break;  // beyond the padded image, where ceil_mode reaches
            for (int s = 0; s < p.kw; ++s) {
                const int ix = ox * p.stride_w - p.pad_left + s * p.dilation_w;
                if (ix >= p.w + p.pad_right) break;
                const bool inside = iy >= 0 && iy < p.h && ix >= 0 && ix < p.w;
                counted += inside || p.count_include_pad;
                if (!inside) continue;
                const float v = in[(index_t)iy * p.w + ix];
                sum.add(v);
                best = larger(best, v);
            }
        }
        y[i] = activate(p.kind == POOL_MAX ? best : sum.total() / counted, p.activation);
    }
}
