/*
op = "lrn"
rung = 4
name = "quads"
idea = "Four neighbouring pixels a thread, read and written in one access of 16 bytes: a quarter of the instructions for addresses."
launch = "lrn_runs"
[defines]
RUN = 8     # channels a thread
PIXELS = 4  # pixels a thread
SIZE = 5    # the launch sets it to the size of the window
THREE_QUARTERS = 0  # whether that is the exponent
[needs]
size_max = 9
multiple_of = {inner = 4}
*/
#include "common.cuh"
#include "lrn.cuh"

#define BEFORE ((SIZE - 1) / 2)

extern "C" __global__ void lrn(const float* __restrict__ x, float* __restrict__ y, const LrnParams p) {
    const int runs = (p.c + RUN - 1) / RUN;
    const int first = blockIdx.x % runs * RUN;
    const index_t quads = p.inner / 4;  // of a channel
    const index_t quad = (index_t)(blockIdx.x / runs) * blockDim.x + threadIdx.x;
    if (quad >= (index_t)p.n * quads) return;
    const index_t base = (quad / quads * p.c + first) * quads + quad % quads;
    const float4* in = reinterpret_cast<const float4*>(x) + base;
    float4* out = reinterpret_cast<float4*>(y) + base;
    float4 v[RUN + SIZE - 1];
#pragma unroll
    for (int i = 0; i < RUN + SIZE - 1; ++i) {
        const int channel = first + i - BEFORE;
        v[i] = channel >= 0 && channel < p.c ? in[(i - BEFORE) * quads] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
#pragma unroll
    for (int i = 0; i < RUN; ++i) {
        if (first + i >= p.c) break;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int k = 0; k < SIZE; ++k) {
            const float4 u = v[i + k];
            sum.x += u.x * u.x;
            sum.y += u.y * u.y;
            sum.z += u.z * u.z;
            sum.w += u.w * u.w;
        }
        float4 result = v[i + BEFORE];
        result.x *= inverse_power(p.bias + p.scale * sum.x, p.beta);
        result.y *= inverse_power(p.bias + p.scale * sum.y, p.beta);
        result.z *= inverse_power(p.bias + p.scale * sum.z, p.beta);
        result.w *= inverse_power(p.bias + p.scale * sum.w, p.beta);
        out[i * quads] = result;
    }
}
