/*
op = "spmv"
rung = 2
name = "warp_a_row"
idea = "A warp a row: its lanes read values and columns side by side and add their sums at the end. Rows shorter than a warp leave lanes idle."
[defines]
BLOCK = 128
[[launch]]
grid = "ceil(m, BLOCK // 32)"
block = "BLOCK"
*/
#include "warp.cuh"

extern "C" __global__ void spmv(const int* __restrict__ offsets, const int* __restrict__ places,
                                const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ y,
                                const SpmvParams p) {
    const int row = (blockIdx.x * BLOCK + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    if (row >= p.m) return;  // the whole warp does
    float sum = 0.0f;
    const int end = offsets[row + 1];
    for (int i = offsets[row] + lane; i < end; i += LANES) sum += values[i] * x[places[i]];
    sum = sum_of_lanes(sum);
    if (lane == 0) y[row] = sum;
}
