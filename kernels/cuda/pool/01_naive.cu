/*
op = "pool"
rung = 1
name = "naive"
idea = "One thread an output: it walks its window."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// x is (N, C, H, W), y (N, C, OH, OW).
extern "C" __global__ void pool(const float* __restrict__ x, float* __restrict__ y, int kind, int n, int c, int h,
                                int w, int kh, int kw, int out_h, int out_w, int stride_h, int stride_w,
                                int pad_top, int pad_left, int pad_bottom, int pad_right, int dilation_h,
                                int dilation_w, int count_include_pad, int activation) {
    const index_t total = (index_t)n * c * out_h * out_w;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int ox = i % out_w;
        const int oy = i / out_w % out_h;
        const float* in = x + i / ((index_t)out_w * out_h) * h * w;
        float best = minus_infinity();
        float sum = 0.0f;
        int counted = 0;
        for (int r = 0; r < kh; ++r) {
            const int iy = oy * stride_h - pad_top + r * dilation_h;
            if (iy >= h + pad_bottom) break;  // beyond the padded image, where ceil_mode reaches
            for (int s = 0; s < kw; ++s) {
                const int ix = ox * stride_w - pad_left + s * dilation_w;
                if (ix >= w + pad_right) break;
                const bool inside = iy >= 0 && iy < h && ix >= 0 && ix < w;
                counted += inside || count_include_pad;
                if (!inside) continue;
                const float v = in[(index_t)iy * w + ix];
                sum += v;
                best = larger(best, v);
            }
        }
        y[i] = activate(kind == POOL_MAX ? best : sum / counted, activation);
    }
}
