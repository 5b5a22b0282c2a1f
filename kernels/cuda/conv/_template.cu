/*
op = "conv"
rung = 0
name = "template"
idea = "One thread an output: it walks its window and its channels, the sum in a register."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// x is (N, C, H, W), weight (M, C / group, KH, KW), y (N, M, OH, OW).
extern "C" __global__ void conv(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y, int n, int c, int h, int w,
                                int m, int kh, int kw, int out_h, int out_w, int stride_h, int stride_w,
                                int pad_top, int pad_left, int dilation_h, int dilation_w, int group,
                                int activation) {
    const int channels = c / group;  // that one output reads
    const index_t total = (index_t)n * m * out_h * out_w;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int ox = i % out_w;
        const int oy = i / out_w % out_h;
        const int om = i / ((index_t)out_w * out_h) % m;
        const int image = i / ((index_t)out_w * out_h * m);
        const int first_channel = om / (m / group) * channels;
        const float* in = x + ((index_t)image * c + first_channel) * h * w;
        const float* filter = weight + (index_t)om * channels * kh * kw;
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
        y[i] = activate(bias ? sum + bias[om] : sum, activation);
    }
}
