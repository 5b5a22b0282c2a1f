/*
op = "softmax"
rung = 3
name = "one_read"
idea = "The lanes of a row keep it in registers: x is read once and each exponential taken once; short rows share a warp."
launch = "softmax_lanes"
[defines]
LANES = 32  # of a row, a power of two; the launch sets these two
VALUES = 4  # of a lane
[needs]
axis_max = 1024
*/
#include "common.cuh"

#define ALL 0xffffffffu

// x and y are (outer, axis, inner); a row runs along the middle one.
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, const SoftmaxParams p) {
    const int lane = threadIdx.x % LANES;
    const index_t row = first_element() / LANES;
    const bool there = row < p.outer * p.inner;  // all lanes of a warp take part in its shuffles
    const index_t base = there ? row / p.inner * p.axis * p.inner + row % p.inner : 0;
    float v[VALUES];
    float top = minus_infinity();
#pragma unroll
    for (int k = 0; k < VALUES; ++k) {
        const int i = lane + k * LANES;
        v[k] = there && i < p.axis ? x[base + i * p.inner] : minus_infinity();
        top = larger(top, v[k]);
    }
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) top = larger(top, __shfl_xor_sync(ALL, top, d));
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < VALUES; ++k) {
        v[k] -= top;
        const float power = expf(v[k]);
        sum += power;
        if (!p.log_of_it) v[k] = power;
    }
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) sum += __shfl_xor_sync(ALL, sum, d);
    const float log_sum = p.log_of_it ? logf(sum) : 0.0f;
#pragma unroll
    for (int k = 0; k < VALUES; ++k) {
        const int i = lane + k * LANES;
        if (there && i < p.axis) y[base + i * p.inner] = p.log_of_it ? v[k] - log_sum : v[k] / sum;
    }
}
