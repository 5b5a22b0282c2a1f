// What the kernels of products of eight-bit numbers share: a number of either type, and the answer out of a sum.
#pragma once
#include "common.cuh"

__device__ __forceinline__ int whole(const void* __restrict__ from, index_t i, int type) {
    if (type == DTYPE_UINT8) return ((const unsigned char*)from)[i];
    return ((const signed char*)from)[i];
}

// y[i] out of a sum, in double precision: the sum is exact in it, and only what is a tie there is one here.
template <typename P>
__device__ __forceinline__ void finish(const P& p, void* __restrict__ y, index_t i, int sum, int channel,
                                       const int* __restrict__ bias, const double* __restrict__ scale,
                                       const double* __restrict__ shift) {
    if (p.to == DTYPE_INT32) {
        ((int*)y)[i] = sum;
        return;
    }
    double real = ((double)sum + (double)bias[channel]) * scale[channel];
    if (shift) real += shift[channel];
    if (p.to == DTYPE_FLOAT32) {
        ((float*)y)[i] = (float)real;
        return;
    }
    double q = rint(real / (double)p.out_scale) + (double)p.out_zero;  // halves to even
    q = q < p.low ? p.low : q > p.high ? p.high : q;
    if (p.to == DTYPE_UINT8) ((unsigned char*)y)[i] = (unsigned char)(int)q;
    else ((signed char*)y)[i] = (signed char)(int)q;
}
