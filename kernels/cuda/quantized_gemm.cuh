// A matrix product as the product over chunks that quantized_chunks.cuh knows: rows of a are images of one pixel, its steps
// their channels. What is known here is known to the compiler.
#pragma once

struct AsImages {
    int n, c, m;
    static constexpr int h = 1, w = 1, kh = 1, kw = 1, out_h = 1, out_w = 1, stride_h = 1, stride_w = 1, pad_top = 0,
                         pad_left = 0, dilation_h = 1, dilation_w = 1, group = 1;
    int weight_zeros, to;
    float out_scale;
    int out_zero, low, high;
    __device__ __forceinline__ AsImages(const QGemmParams& p)
        : n(p.m), c(p.k), m(p.n), weight_zeros(p.weight_zeros), to(p.to), out_scale(p.out_scale), out_zero(p.out_zero),
          low(p.low), high(p.high) {}
};
