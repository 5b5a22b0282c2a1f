// The patches of images written out: what each output multiplies, tap by tap, so that a convolution is a product of
// two matrices that lie in memory.
#pragma once
#include "common.cuh"

// patches is (taps C · KH · KW) × (pixels N · OH · OW); a thread writes a pixel of the taps blockIdx.y, blockIdx.y +
// gridDim.y, … The channels of a group are neighbours, and so are then its taps.
__device__ __forceinline__ void write_patches(const float* __restrict__ x, float* __restrict__ patches, int n, int c,
                                              int h, int w, int kh, int kw, int out_h, int out_w, int stride_h,
                                              int stride_w, int pad_top, int pad_left, int dilation_h,
                                              int dilation_w) {
    const int area = out_h * out_w, pixels = n * area;
    const index_t pixel = first_element();
    if (pixel >= pixels) return;
    const int image = (int)pixel / area, place = (int)pixel % area;
    const int top = place / out_w * stride_h - pad_top;
    const int left = place % out_w * stride_w - pad_left;
    for (int tap = blockIdx.y; tap < c * kh * kw; tap += gridDim.y) {
        const int ci = tap / (kh * kw), r = tap / kw % kh, s = tap % kw;
        const int iy = top + r * dilation_h, ix = left + s * dilation_w;
        const bool inside = iy >= 0 && iy < h && ix >= 0 && ix < w;
        patches[tap * row_length(pixels) + pixel] =
            inside ? x[(((index_t)image * c + ci) * h + iy) * w + ix] : 0.0f;
    }
}
