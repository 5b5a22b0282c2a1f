/*
op = "histogram"
rung = 2
name = "shared"
idea = "Each block counts in shared memory, whose atomics are near, and adds its counters to the answer once at the end."
[defines]
BLOCK = 256
BLOCKS = 512  # at most
[tune]
BLOCKS = [128, 256, 512, 1024]
[needs]
require = ["bins <= 8192"]
[[launch]]
kernel = "histogram_begin"
grid = "ceil(bins, BLOCK)"
block = "BLOCK"
[[launch]]
grid = "min(BLOCKS, ceil(n, BLOCK))"
block = "BLOCK"
shared = "4 * bins"
*/
#include "common.cuh"

extern "C" __global__ void histogram_begin(const int* values, int* counts, const HistogramParams p) {
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < p.bins) counts[i] = 0;
}

extern "C" __global__ void histogram(const int* __restrict__ values, int* __restrict__ counts,
                                     const HistogramParams p) {
    extern __shared__ int own[];
    for (int bin = threadIdx.x; bin < p.bins; bin += BLOCK) own[bin] = 0;
    __syncthreads();  // all counters are 0 before anybody counts
    for (index_t i = first_element(); i < p.n; i += grid_stride()) atomicAdd(&own[values[i]], 1);
    __syncthreads();  // all have counted
    for (int bin = threadIdx.x; bin < p.bins; bin += BLOCK)
        if (own[bin]) atomicAdd(&counts[bin], own[bin]);
}
