/*
op = "spmv"
rung = 3
name = "lanes_that_fit"
idea = "As many lanes a row as an average row has elements, a power of two: short rows share a warp, long ones still read side by side."
[defines]
BLOCK = 128
[[launch]]
grid = "ceil(m, BLOCK // 32)"
block = "BLOCK"
*/
#include "warp.cuh"

// Lanes that share a row: no more than its average length, and a power of two.
__device__ __forceinline__ int lanes_of_a_row(const SpmvParams& p) {
    int lanes = 1;
    while (lanes < LANES && (long long)2 * lanes * p.m <= p.nnz) lanes *= 2;
    return lanes;
}

extern "C" __global__ void spmv(const int* __restrict__ offsets, const int* __restrict__ places,
                                const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ y,
                                const SpmvParams p) {
    const int lanes = lanes_of_a_row(p), lane = threadIdx.x % lanes;
    const int together = BLOCK / lanes;  // rows of a block at a time
    // All lanes of a warp stay to the end: they hand sums to each other.
    for (int first = blockIdx.x * together; first < p.m; first += gridDim.x * together) {
        const int row = first + threadIdx.x / lanes;
        float sum = 0.0f;
        if (row < p.m) {
            const int end = offsets[row + 1];
            for (int i = offsets[row] + lane; i < end; i += lanes) sum += values[i] * x[places[i]];
        }
        for (int d = lanes / 2; d; d /= 2) sum += __shfl_down_sync(ALL_LANES, sum, d, lanes);
        if (row < p.m && lane == 0) y[row] = sum;
    }
}
