/*
op = "histogram"
rung = 3
name = "a_copy_a_warp"
idea = "Each warp of a block has counters of its own, so equal values queue within a warp only; four values are read at once."
[defines]
BLOCK = 256
BLOCKS = 512  # at most
[needs]
require = ["bins <= 1024"]
[[launch]]
kernel = "histogram_begin"
grid = "ceil(bins, BLOCK)"
block = "BLOCK"
[[launch]]
grid = "min(BLOCKS, ceil(n, 4 * BLOCK))"
block = "BLOCK"
shared = "4 * (BLOCK // 32) * bins"
*/
#include "common.cuh"

#define WARPS (BLOCK / 32)

extern "C" __global__ void histogram_begin(const int* values, int* counts, const HistogramParams p) {
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < p.bins) counts[i] = 0;
}

extern "C" __global__ void histogram(const int* __restrict__ values, int* __restrict__ counts,
                                     const HistogramParams p) {
    extern __shared__ int copies[];
    for (int i = threadIdx.x; i < WARPS * p.bins; i += BLOCK) copies[i] = 0;
    __syncthreads();  // all counters are 0 before anybody counts
    int* own = copies + threadIdx.x / 32 * p.bins;
    const int quads = p.n / 4;
    for (index_t i = first_element(); i < quads; i += grid_stride()) {
        const int4 four = reinterpret_cast<const int4*>(values)[i];
        atomicAdd(&own[four.x], 1);
        atomicAdd(&own[four.y], 1);
        atomicAdd(&own[four.z], 1);
        atomicAdd(&own[four.w], 1);
    }
    const index_t last = 4LL * quads + first_element();  // at most three make no four
    if (last < p.n) atomicAdd(&own[values[last]], 1);
    __syncthreads();  // all have counted
    for (int bin = threadIdx.x; bin < p.bins; bin += BLOCK) {
        int sum = 0;
        for (int warp = 0; warp < WARPS; ++warp) sum += copies[warp * p.bins + bin];
        if (sum) atomicAdd(&counts[bin], sum);
    }
}
