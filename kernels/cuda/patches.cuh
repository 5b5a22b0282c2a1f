// The patches of images written out: what each output multiplies, tap by tap, so that a convolution is a product of
// two matrices that lie in memory.
#pragma once
#include "common.cuh"

// patches is (taps C · KH · KW) × (pixels N · OH · OW); a thread writes a pixel of the taps blockIdx.y, blockIdx.y +
// gridDim.y, … The channels of a group are neighbours, and so are then its taps.
__device__ __forceinline__ void write_patches(const float* __restrict__ x, float* __restrict__ patches,
                                              const ConvParams& p) {
    const int area = p.out_h * p.out_w, pixels = p.n * area;
    const index_t pixel = first_element();
    if (pixel >= pixels) return;
    const int image = (int)pixel / area, place = (int)pixel % area;
    const int top = place / p.out_w * p.stride_h - p.pad_top;
    const int left = place % p.out_w * p.stride_w - p.pad_left;
    for (int tap = blockIdx.y; tap < p.c * p.kh * p.kw; tap += gridDim.y) {
        const int ci = tap / (p.kh * p.kw), r = tap / p.kw % p.kh, s = tap % p.kw;
        const int iy = top + r * p.dilation_h, ix = left + s * p.dilation_w;
        const bool inside = iy >= 0 && iy < p.h && ix >= 0 && ix < p.w;
        patches[tap * row_length(pixels) + pixel] =
            inside ? x[(((index_t)image * p.c + ci) * p.h + iy) * p.w + ix] : 0.0f;
    }
}
