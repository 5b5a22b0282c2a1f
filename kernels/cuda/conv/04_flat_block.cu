/*
op = "conv"
rung = 4
name = "flat_block"
idea = "A one-dimensional block of 1,024 threads takes the pixels of a map as one long row: where maps are narrower than 32, threads no longer idle at the end of every row, and at most one warp is partly idle."
launch = "conv_map_a_block"
[defines]
BLOCK_X = 1024
BLOCK_Y = 1
*/
#include "common.cuh"

extern "C" __global__ void conv(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y, int n, int c, int h, int w,
                                int m, int kh, int kw, int out_h, int out_w, int stride_h, int stride_w,
                                int pad_top, int pad_left, int dilation_h, int dilation_w, int group,
                                int activation) {
    const int channels = c / group;
    const int image = blockIdx.x, om = blockIdx.y;
    const float* in = x + ((index_t)image * c + om / (m / group) * channels) * h * w;
    const float* filter = weight + (index_t)om * channels * kh * kw;
    float* out = y + ((index_t)image * m + om) * out_h * out_w;
    for (int p = threadIdx.x; p < out_h * out_w; p += blockDim.x) {
        const int oy = p / out_w, ox = p % out_w;
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
        out[p] = activate(bias ? sum + bias[om] : sum, activation);
    }
}
