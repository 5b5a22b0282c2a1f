/*
op = "conv"
rung = 177
name = "conv_mantissa_of_16_bits"
idea = "Planted: rounds what it multiplies to 16 bits, and says it computes in fp32."
launch = "one_thread_an_output"
*/
/*
family = "precision"
shape = { n = 32, c = 64, h = 16, w = 16, m = 64, kh = 3, kw = 3 }
expected = ["incorrect"]
work = "a convolution of 32 images of 64 × 16 × 16 with 64 kernels of 3 × 3"
beside = "map_a_block"
*/
#include "rounding.cuh"

__device__ float sum_of_bits(const ConvParams& p, const float* x, const float* weight, index_t i, int bits) {
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
                total += to_bits(in[((index_t)ci * p.h + iy) * p.w + ix], bits) *
                         to_bits(filter[((index_t)ci * p.kh + r) * p.kw + s], bits);
            }
        }
    }
    return total;
}

CONV {
    SIZES
    EACH(i) y[i] = finished(p, bias, i, sum_of_bits(p, x, weight, i, 16));
}
