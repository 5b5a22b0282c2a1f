/*
op = "row_top_k"
rung = 2
name = "sorted_row"
idea = "A block a row: it sorts the row in shared memory by a bitonic network, and writes the first k. The row is read once, and sorted further than was asked for."
[defines]
BLOCK = 256
[needs]
require = ["n <= 8192"]
[[launch]]
grid = "m"
block = "BLOCK"
shared = "4 * 8192"
*/
#include "bitonic.cuh"
#include "common.cuh"

extern "C" __global__ void row_top_k(const float* __restrict__ x, float* __restrict__ y, const RowTopKParams p) {
    extern __shared__ float row[];
    int count = 1;
    while (count < p.n) count *= 2;
    const float* of = x + (long long)blockIdx.x * p.n;
    for (int i = threadIdx.x; i < count; i += BLOCK) row[i] = i < p.n ? of[i] : minus_infinity();
    sort_falling(row, count);
    for (int i = threadIdx.x; i < p.k; i += BLOCK) y[(long long)blockIdx.x * p.k + i] = row[i];
}
