/*
op = "conv"
rung = 2
name = "register_sum"
idea = "The sum stays in a register and is written once."
launch = "conv_image_a_block"
[defines]
BLOCK_X = 32
BLOCK_Y = 32
*/
#include "common.cuh"

extern "C" __global__ void conv(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y, int n, int c, int h, int w,
                                int m, int kh, int kw, int out_h, int out_w, int stride_h, int stride_w,
                                int pad_top, int pad_left, int dilation_h, int dilation_w, int group,
                                int activation) {
    const int channels = c / group;  // that one output reads
    const int image = blockIdx.x;
    for (int om = 0; om < m; ++om) {
        const float* in = x + ((index_t)image * c + om / (m / group) * channels) * h * w;
        const float* filter = weight + (index_t)om * channels * kh * kw;
        float* out = y + ((index_t)image * m + om) * out_h * out_w;
        for (int oy = threadIdx.y; oy < out_h; oy += blockDim.y) {
            for (int ox = threadIdx.x; ox < out_w; ox += blockDim.x) {
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
                out[(index_t)oy * out_w + ox] = activate(bias ? sum + bias[om] : sum, activation);
            }
        }
    }
}
