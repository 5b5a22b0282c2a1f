// What the planted rungs have in common: the right answer, of which each gets one thing wrong.
#pragma once
#include "common.cuh"

// The struct is a copy of the kernel's own, which some of them change.
#define CONV                                                                                                    \
    extern "C" __global__ void conv(float* x, const float* weight, const float* bias, float* y, ConvParams p)
#define SIZES                                                                                                   \
    [[maybe_unused]] const int n = p.n, c = p.c, h = p.h, w = p.w, m = p.m, kh = p.kh, kw = p.kw;               \
    [[maybe_unused]] const int out_h = p.out_h, out_w = p.out_w, stride_h = p.stride_h, stride_w = p.stride_w;  \
    [[maybe_unused]] const int pad_top = p.pad_top, pad_left = p.pad_left, dilation_h = p.dilation_h;           \
    [[maybe_unused]] const int dilation_w = p.dilation_w, group = p.group, activation = p.activation;           \
    const index_t total = (index_t)n * m * out_h * out_w;
#define EACH(i) for (index_t i = first_element(); i < total; i += grid_stride())

// Sizes is ConvParams, which cheats of other operators, that include this too, do not have.
template <typename Sizes>
__device__ int map_of(const Sizes& p, index_t i) { return i / ((index_t)p.out_w * p.out_h) % p.m; }
template <typename Sizes>
__device__ int image_of(const Sizes& p, index_t i) { return i / ((index_t)p.out_w * p.out_h * p.m); }

// The sum of output i; `half` rounds it to half precision after every addition.
__device__ float rounded(float v) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
    return v;
}

template <typename Sizes>
__device__ float sum(const Sizes& p, const float* x, const float* weight, index_t i, bool half = false) {
    const int channels = p.c / p.group;
    const int ox = i % p.out_w, oy = i / p.out_w % p.out_h, om = map_of(p, i);
    const float* in = x + ((index_t)image_of(p, i) * p.c + om / (p.m / p.group) * channels) * p.h * p.w;
    const float* filter = weight + (index_t)om * channels * p.kh * p.kw;
    float total = 0.0f;
    for (int ci = 0; ci < channels; ++ci) {
        for (int r = 0; r < p.kh; ++r) {
            const int iy = oy * p.stride_h - p.pad_top + r * p.dilation_h;
            if (iy < 0 || iy >= p.h) continue;
            for (int s = 0; s < p.kw; ++s) {
                const int ix = ox * p.stride_w - p.pad_left + s * p.dilation_w;
                if (ix < 0 || ix >= p.w) continue;
                total += in[((index_t)ci * p.h + iy) * p.w + ix] * filter[((index_t)ci * p.kh + r) * p.kw + s];
                if (half) total = rounded(total);
            }
        }
    }
    return total;
}

template <typename Sizes>
__device__ float finished(const Sizes& p, const float* bias, index_t i, float v) {
    return activate(bias ? v + bias[map_of(p, i)] : v, p.activation);
}
