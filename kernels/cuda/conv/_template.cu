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
                                const float* __restrict__ bias, float* __restrict__ y, const ConvParams p) {
    const int channels = p.c / p.group;  // that one output reads
    const index_t total = (index_t)p.n * p.m * p.out_h * p.out_w;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int ox = i % p.out_w;
        const int oy = i / p.out_w % p.out_h;
        const int om = i / ((index_t)p.out_w * p.out_h) % p.m;
        const int image = i / ((index_t)p.out_w * p.out_h * p.m);
        const int first_channel = om / (p.m / p.group) * channels;
        const float* in = x + ((index_t)image * p.c + first_channel) * p.h * p.w;
        const float* filter = weight + (index_t)om * channels * p.kh * p.kw;
        float sum = 0.0f;
        for (int ci = 0; ci < channels; ++ci) {
            for (int r = 0; r < p.kh; ++r) {
                const int iy = oy * p.stride_h - p.pad_top + r * p.dilation_h;
                if (iy < 0 || iy >= p.h) continue;  // a row of padding adds nothing
                for (int s = 0; s < p.kw; ++s) {
                    const int ix = ox * p.stride_w - p.pad_left + s * p.dilation_w;
                    if (ix < 0 || ix >= p.w) continue;
                    sum += in[((index_t)ci * p.h + iy) * p.w + ix] * filter[((index_t)ci * p.kh + r) * p.kw + s];
                }
            }
        }
        y[i] = activate(bias ? sum + bias[om] : sum, p.activation);
    }
}
