/*
op = "lrn"
rung = 3
name = "reciprocal_root"
idea = "The power −3/4 is a reciprocal root times its own root, and x is multiplied by it: no division is left."
launch = "lrn_runs"
[defines]
RUN = 16   # channels a thread
SIZE = 5   # the launch sets it to the size of the window
THREE_QUARTERS = 0  # whether that is the exponent
[needs]
size_max = 9
*/
#include "common.cuh"
#include "lrn.cuh"

#define BEFORE ((SIZE - 1) / 2)

extern "C" __global__ void lrn(const float* __restrict__ x, float* __restrict__ y, const LrnParams p) {
    const int runs = (p.c + RUN - 1) / RUN;
    const int first = blockIdx.x % runs * RUN;
    const index_t pixel = (index_t)(blockIdx.x / runs) * blockDim.x + threadIdx.x;
    if (pixel >= (index_t)p.n * p.inner) return;
    const index_t base = (pixel / p.inner * p.c + first) * p.inner + pixel % p.inner;
    float v[RUN + SIZE - 1];
#pragma unroll
    for (int i = 0; i < RUN + SIZE - 1; ++i) {
        const int channel = first + i - BEFORE;
        v[i] = channel >= 0 && channel < p.c ? x[base + (i - BEFORE) * p.inner] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < RUN; ++i) {
        if (first + i >= p.c) break;
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < SIZE; ++k) sum += v[i + k] * v[i + k];
        y[base + i * p.inner] = v[i + BEFORE] * inverse_power(p.bias + p.scale * sum, p.beta);
    }
}
