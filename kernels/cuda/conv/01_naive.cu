/*
op = "conv"
rung = 1
name = "naive"
method = "plain"  # term after term: n equal terms are off by up to n / 3 · 2⁻²⁴ of their sum
idea = "A block an image: its threads, 32 × 32 as the picture has rows and columns, walk the maps and their pixels, and every addition goes to the output in global memory."
launch = "conv_image_a_block"
[defines]
BLOCK_X = 32
BLOCK_Y = 32
[tune]
BLOCK_X = [8, 16, 32, 64]
BLOCK_Y = [2, 4, 8, 16, 32]
*/
#include "common.cuh"

// x is (N, C, H, W), weight (M, C / group, KH, KW), y (N, M, OH, OW).
extern "C" __global__ void conv(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y, const ConvParams p) {
    const int channels = p.c / p.group;  // that one output reads
    const int image = blockIdx.x;
    for (int om = 0; om < p.m; ++om) {
        const float* in = x + ((index_t)image * p.c + om / (p.m / p.group) * channels) * p.h * p.w;
        const float* filter = weight + (index_t)om * channels * p.kh * p.kw;
        float* out = y + ((index_t)image * p.m + om) * p.out_h * p.out_w;
        for (int oy = threadIdx.y; oy < p.out_h; oy += blockDim.y) {
            for (int ox = threadIdx.x; ox < p.out_w; ox += blockDim.x) {
                // Volatile, or the compiler would keep the sum in a register of its own accord.
                volatile float* place = out + (index_t)oy * p.out_w + ox;
                *place = 0.0f;
                for (int ci = 0; ci < channels; ++ci) {
                    for (int r = 0; r < p.kh; ++r) {
                        const int iy = oy * p.stride_h - p.pad_top + r * p.dilation_h;
                        if (iy < 0 || iy >= p.h) continue;  // a row of padding adds nothing
                        for (int s = 0; s < p.kw; ++s) {
                            const int ix = ox * p.stride_w - p.pad_left + s * p.dilation_w;
                            if (ix < 0 || ix >= p.w) continue;
                            *place = *place + in[((index_t)ci * p.h + iy) * p.w + ix] *
                                              filter[((index_t)ci * p.kh + r) * p.kw + s];
                        }
                    }
                }
                *place = activate(bias ? *place + bias[om] : *place, p.activation);
            }
        }
    }
}
