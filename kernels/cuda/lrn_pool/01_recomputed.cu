/*
op = "lrn_pool"
rung = 1
name = "recomputed"
idea = "One thread an output: it normalises every element of its window for itself, so that nothing is written in between."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// x is (N, C, H, W), y (N, C, OH, OW); `scale` is alpha / size.
extern "C" __global__ void lrn_pool(const float* __restrict__ x, float* __restrict__ y, const LrnPoolParams p) {
    const index_t total = (index_t)p.n * p.c * p.out_h * p.out_w, pixels = (index_t)p.h * p.w;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int ox = i % p.out_w;
        const int oy = i / p.out_w % p.out_h;
        const index_t plane = i / ((index_t)p.out_w * p.out_h);
        const int channel = plane % p.c;
        const int lowest = max(0, channel - (p.size - 1) / 2), highest = min(p.c - 1, channel + p.size / 2);
        float best = minus_infinity();
        float total_of_window = 0.0f;
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
                const float* in = x + plane * pixels + (index_t)iy * p.w + ix;
                float sum = 0.0f;
                for (int k = lowest; k <= highest; ++k) {
                    const float u = in[(k - channel) * pixels];
                    sum += u * u;
                }
                const float v = *in / powf(p.bias + p.scale * sum, p.beta);
                total_of_window += v;
                best = larger(best, v);
            }
        }
        y[i] = p.kind == POOL_MAX ? best : total_of_window / counted;
    }
}
