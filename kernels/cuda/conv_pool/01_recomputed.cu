/*
op = "conv_pool"
rung = 1
name = "recomputed"
idea = "One thread an output: it computes every output of the convolution in its window for itself, so that nothing is written in between."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// x is (N, C, H, W), weight (M, C / group, KH, KW), y (N, M, POOL_OUT_H, POOL_OUT_W); the pool reads (OH, OW).
extern "C" __global__ void conv_pool(const float* __restrict__ x, const float* __restrict__ weight,
                                     const float* __restrict__ bias, float* __restrict__ y, int n, int c, int h,
                                     int w, int m, int kh, int kw, int out_h, int out_w, int stride_h,
                                     int stride_w, int pad_top, int pad_left, int dilation_h, int dilation_w,
                                     int group, int activation, int pool_kind, int pool_kh, int pool_kw,
                                     int pool_out_h, int pool_out_w, int pool_stride_h, int pool_stride_w,
                                     int pool_pad_top, int pool_pad_left, int pool_pad_bottom,
                                     int pool_pad_right, int pool_dilation_h, int pool_dilation_w,
                                     int count_include_pad, int pool_activation) {
    const int channels = c / group;  // that one output reads
    const index_t total = (index_t)n * m * pool_out_h * pool_out_w;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int px = i % pool_out_w;
        const int py = i / pool_out_w % pool_out_h;
        const index_t plane = i / ((index_t)pool_out_w * pool_out_h);
        const int om = plane % m;
        const float* in = x + (plane / m * c + om / (m / group) * channels) * h * w;
        const float* filter = weight + (index_t)om * channels * kh * kw;
        float best = minus_infinity();
        float total_of_window = 0.0f;
        int counted = 0;
        for (int a = 0; a < pool_kh; ++a) {
            const int oy = py * pool_stride_h - pool_pad_top + a * pool_dilation_h;
            if (oy >= out_h + pool_pad_bottom) break;  // beyond the padded image, where ceil_mode reaches
            for (int b = 0; b < pool_kw; ++b) {
                const int ox = px * pool_stride_w - pool_pad_left + b * pool_dilation_w;
                if (ox >= out_w + pool_pad_right) break;
                const bool inside = oy >= 0 && oy < out_h && ox >= 0 && ox < out_w;
                counted += inside || count_include_pad;
                if (!inside) continue;
                float sum = 0.0f;
                for (int ci = 0; ci < channels; ++ci) {
                    for (int r = 0; r < kh; ++r) {
                        const int iy = oy * stride_h - pad_top + r * dilation_h;
                        if (iy < 0 || iy >= h) continue;  // a row of padding adds nothing
                        for (int s = 0; s < kw; ++s) {
                            const int ix = ox * stride_w - pad_left + s * dilation_w;
                            if (ix < 0 || ix >= w) continue;
                            sum += in[((index_t)ci * h + iy) * w + ix] * filter[((index_t)ci * kh + r) * kw + s];
                        }
                    }
                }
                const float v = activate(bias ? sum + bias[om] : sum, activation);
                total_of_window += v;
                best = larger(best, v);
            }
        }
        y[i] = activate(pool_kind == POOL_MAX ? best : total_of_window / counted, pool_activation);
    }
}
