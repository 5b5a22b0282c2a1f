/*
op = "qconv"
rung = 1
name = "naive"
idea = "One thread an output: it walks its window, each number less its zero point, the sum in 32 bits."
launch = "one_thread_an_output"
[needs]
dtype = ["uint8", "int8"]
to = ["int32", "float32", "uint8", "int8"]
*/
#include "quantized.cuh"

// x (n, c, h, w), weight (m, c / group, kh, kw), y (n, m, out_h, out_w). Outside the image x is its zero point.
extern "C" __global__ void qconv(const void* __restrict__ x, const void* __restrict__ weight,
                                 const void* __restrict__ x_zero, const void* __restrict__ weight_zero,
                                 const int* __restrict__ bias, const double* __restrict__ scale,
                                 const double* __restrict__ shift, void* __restrict__ y, const QConvParams p) {
    const int channels = p.c / p.group;
    const index_t total = (index_t)p.n * p.m * p.out_h * p.out_w;
    const int zero = whole(x_zero, 0, p.x_type);
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int left = i % p.out_w * p.stride_w - p.pad_left;
        const int top = i / p.out_w % p.out_h * p.stride_h - p.pad_top;
        const index_t map = i / p.out_w / p.out_h;
        const int om = map % p.m;
        const index_t first = map / p.m * p.c + om / (p.m / p.group) * channels;  // the first channel that it reads
        const int own = whole(weight_zero, p.weight_zeros > 1 ? om : 0, p.weight_type);
        index_t tap = (index_t)om * channels * p.kh * p.kw;
        int sum = 0;
        for (int ci = 0; ci < channels; ++ci) {
            for (int r = 0; r < p.kh; ++r) {
                const int iy = top + r * p.dilation_h;
                const index_t row = ((first + ci) * p.h + iy) * p.w;
                for (int s = 0; s < p.kw; ++s, ++tap) {
                    const int ix = left + s * p.dilation_w;
                    if (iy < 0 || iy >= p.h || ix < 0 || ix >= p.w) continue;
                    sum += (whole(x, row + ix, p.x_type) - zero) * (whole(weight, tap, p.weight_type) - own);
                }
            }
        }
        finish(p, y, i, sum, om, bias, scale, shift);
    }
}
