/*
op = "conv"
rung = 4
name = "flat_block"
method = "plain"  # term after term: n equal terms are off by up to n / 3 · 2⁻²⁴ of their sum
idea = "A one-dimensional block of 1,024 threads takes the pixels of a map as one long row: where maps are narrower than 32, threads no longer idle at the end of every row, and at most one warp is partly idle."
launch = "conv_map_a_block"
[defines]
BLOCK_X = 1024
BLOCK_Y = 1
*/
#include "common.cuh"

extern "C" __global__ void conv(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y, const ConvParams p) {
    const int channels = p.c / p.group;
    const int image = blockIdx.x, om = blockIdx.y;
    const float* in = x + ((index_t)image * p.c + om / (p.m / p.group) * channels) * p.h * p.w;
    const float* filter = weight + (index_t)om * channels * p.kh * p.kw;
    float* out = y + ((index_t)image * p.m + om) * p.out_h * p.out_w;
    for (int pixel = threadIdx.x; pixel < p.out_h * p.out_w; pixel += blockDim.x) {
        const int oy = pixel / p.out_w, ox = pixel % p.out_w;
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
        out[pixel] = activate(bias ? sum + bias[om] : sum, p.activation);
    }
}
