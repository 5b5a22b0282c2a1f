/*
op = "reduction"
rung = 3
name = "warps"
idea = "Lanes of a warp hand their sums to each other without memory or barrier, so a block needs shared memory for one sum a warp only; four floats are read at once."
workspace = "4 * min(BLOCKS, ceil(n, 4 * BLOCK))"  # a sum a block
[defines]
BLOCK = 256
BLOCKS = 1024  # at most
[[launch]]
grid = "min(BLOCKS, ceil(n, 4 * BLOCK))"
block = "BLOCK"
[[launch]]
kernel = "reduction_blocks"
grid = 1
block = "BLOCK"
*/
#include "common.cuh"
#include "warp.cuh"

// The sum of what the threads of a block have, in its first warp.
__device__ float sum_of_block(float own) {
    __shared__ float sums[BLOCK / LANES];
    own = sum_of_lanes(own);
    if (threadIdx.x % LANES == 0) sums[threadIdx.x / LANES] = own;
    __syncthreads();  // the sums of all warps are there
    return sum_of_lanes(threadIdx.x < BLOCK / LANES ? sums[threadIdx.x] : 0.0f);
}

extern "C" __global__ void reduction(const float* __restrict__ x, float* __restrict__ sum, float* __restrict__ sums,
                                     const ReductionParams p) {
    float own = 0.0f;
    const int quads = p.n / 4;
    for (index_t i = first_element(); i < quads; i += grid_stride()) {
        const float4 v = reinterpret_cast<const float4*>(x)[i];
        own += (v.x + v.y) + (v.z + v.w);
    }
    const index_t last = 4LL * quads + first_element();  // at most three make no four
    if (last < p.n) own += x[last];
    own = sum_of_block(own);
    if (threadIdx.x == 0) sums[blockIdx.x] = own;
}

extern "C" __global__ void reduction_blocks(const float* __restrict__ x, float* __restrict__ sum,
                                            const float* __restrict__ sums, const ReductionParams p) {
    const int blocks = min((long long)BLOCKS, ((long long)p.n + 4 * BLOCK - 1) / (4 * BLOCK));
    float own = 0.0f;
    for (int i = threadIdx.x; i < blocks; i += BLOCK) own += sums[i];
    own = sum_of_block(own);
    if (threadIdx.x == 0) *sum = own;
}
