/*
op = "rms_norm"
rung = 3
name = "row_in_registers"
idea = "As rung 2, and each thread keeps its elements, four at a time, in registers: a row is read once. For rows of whole fours up to EACH · 4 · BLOCK."
[defines]
BLOCK = 256
EACH = 4  # times four elements of a thread
[needs]
multiple_of = {n = 4}
require = ["n <= 4096"]
[[launch]]
grid = "m"
block = "BLOCK"
*/
#include "warp.cuh"

#define EPSILON 1e-5f

extern "C" __global__ void rms_norm(const float* __restrict__ x, const float* __restrict__ weight,
                                    float* __restrict__ y, const RmsNormParams p) {
    __shared__ float sums[BLOCK / LANES];
    const int quads = p.n / 4;
    const float4* of = reinterpret_cast<const float4*>(x + (long long)blockIdx.x * p.n);
    float4 held[EACH];
    float squares = 0.0f;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const int i = e * BLOCK + threadIdx.x;
        held[e] = i < quads ? of[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        squares += held[e].x * held[e].x + held[e].y * held[e].y + held[e].z * held[e].z + held[e].w * held[e].w;
    }
    squares = sum_of_lanes(squares);
    if (threadIdx.x % LANES == 0) sums[threadIdx.x / LANES] = squares;
    __syncthreads();  // the sums of all warps are there
    squares = 0.0f;
    for (int warp = 0; warp < BLOCK / LANES; ++warp) squares += sums[warp];
    const float scale = rsqrtf(squares / p.n + EPSILON);
    float4* to = reinterpret_cast<float4*>(y + (long long)blockIdx.x * p.n);
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const int i = e * BLOCK + threadIdx.x;
        if (i >= quads) continue;
        const float4 w = reinterpret_cast<const float4*>(weight)[i];
        to[i] = make_float4(held[e].x * scale * w.x, held[e].y * scale * w.y, held[e].z * scale * w.z,
                            held[e].w * scale * w.w);
    }
}
