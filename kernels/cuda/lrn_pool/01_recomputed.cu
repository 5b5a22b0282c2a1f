/*
op = "lrn_pool"
rung = 1
name = "recomputed"
idea = "One thread an output: it normalises every element of its window for itself, so that nothing is written in between."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// x is (N, C, H, W), y (N, C, OH, OW); `scale` is alpha / size.
extern "C" __global__ void lrn_pool(const float* __restrict__ x, float* __restrict__ y, int kind, int n, int c,
                                    int h, int w, int kh, int kw, int out_h, int out_w, int stride_h, int stride_w,
                                    int pad_top, int pad_left, int pad_bottom, int pad_right, int dilation_h,
                                    int dilation_w, int count_include_pad, int size, float scale, float beta,
                                    float bias) {
    const index_t total = (index_t)n * c * out_h * out_w, pixels = (index_t)h * w;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int ox = i % out_w;
        const int oy = i / out_w % out_h;
        const index_t plane = i / ((index_t)out_w * out_h);
        const int channel = plane % c;
        const int lowest = max(0, channel - (size - 1) / 2), highest = min(c - 1, channel + size / 2);
        float best = minus_infinity();
        float total_of_window = 0.0f;
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
                const float* in = x + plane * pixels + (index_t)iy * w + ix;
                float sum = 0.0f;
                for (int k = lowest; k <= highest; ++k) {
                    const float u = in[(k - channel) * pixels];
                    sum += u * u;
                }
                const float v = *in / powf(bias + scale * sum, beta);
                total_of_window += v;
                best = larger(best, v);
            }
        }
        y[i] = kind == POOL_MAX ? best : total_of_window / counted;
    }
}
