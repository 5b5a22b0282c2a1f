/*
op = "conv"
rung = 27
name = "texture"
method = "plain"  # term after term: n equal terms are off by up to n / 3 · 2⁻²⁴ of their sum
idea = "Rung 4 with x read as a texture: the texture units fetch and keep what neighbouring threads ask for, by an index alone. It is what a read-only pointer (const, __restrict__) has got by itself since both share one cache."
launch = "conv_texture"
side = true
[defines]
BLOCK_X = 1024
BLOCK_Y = 1
*/
#include "common.cuh"

// x is bound as a linear texture of its elements, all images in a row; its handle stands where the pointer does.
extern "C" __global__ void conv(const cudaTextureObject_t x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y, const ConvParams p) {
    const int channels = p.c / p.group;
    const int image = blockIdx.x, om = blockIdx.y;
    const int first = (image * p.c + om / (p.m / p.group) * channels) * p.h * p.w;  // below 2^27
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
                    sum += tex1Dfetch<float>(x, first + (ci * p.h + iy) * p.w + ix) *
                           filter[((index_t)ci * p.kh + r) * p.kw + s];
                }
            }
        }
        out[pixel] = activate(bias ? sum + bias[om] : sum, p.activation);
    }
}
