/*
op = "rms_norm"
rung = 2
name = "block_a_row"
idea = "A block a row: threads read side by side, and add their squares through the lanes of their warps and shared memory."
[defines]
BLOCK = 256
[tune]
BLOCK = [128, 256, 512]
[[launch]]
grid = "m"
block = "BLOCK"
*/
#include "warp.cuh"

#define EPSILON 1e-5f

extern "C" __global__ void rms_norm(const float* __restrict__ x, const float* __restrict__ weight,
                                    float* __restrict__ y, const RmsNormParams p) {
    __shared__ float sums[BLOCK / LANES];
    const float* of = x + (long long)blockIdx.x * p.n;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < p.n; i += BLOCK) squares += of[i] * of[i];
    squares = sum_of_lanes(squares);
    if (threadIdx.x % LANES == 0) sums[threadIdx.x / LANES] = squares;
    __syncthreads();  // the sums of all warps are there
    squares = 0.0f;
    for (int warp = 0; warp < BLOCK / LANES; ++warp) squares += sums[warp];
    const float scale = rsqrtf(squares / p.n + EPSILON);
    float* to = y + (long long)blockIdx.x * p.n;
    for (int i = threadIdx.x; i < p.n; i += BLOCK) to[i] = of[i] * scale * weight[i];
}
