/*
op = "reduction"
rung = 2
name = "shared_tree"
idea = "The threads of a block add their sums in shared memory, half of them at each step, and one block adds the blocks' sums: no atomics, and the same answer each time."
workspace = "4 * min(BLOCKS, ceil(n, BLOCK))"  # a sum a block
[defines]
BLOCK = 256
BLOCKS = 1024  # at most
[[launch]]
grid = "min(BLOCKS, ceil(n, BLOCK))"
block = "BLOCK"
[[launch]]
kernel = "reduction_blocks"
grid = 1
block = "BLOCK"
*/
#include "common.cuh"

// The sum of what the threads of a block have, in its first thread.
__device__ float sum_of_block(float own) {
    __shared__ float sums[BLOCK];
    sums[threadIdx.x] = own;
    for (int half = BLOCK / 2; half; half /= 2) {
        __syncthreads();  // the sums of the step before are there
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    return sums[0];
}

extern "C" __global__ void reduction(const float* __restrict__ x, float* __restrict__ sum, float* __restrict__ sums,
                                     const ReductionParams p) {
    float own = 0.0f;
    for (index_t i = first_element(); i < p.n; i += grid_stride()) own += x[i];
    own = sum_of_block(own);
    if (threadIdx.x == 0) sums[blockIdx.x] = own;
}

extern "C" __global__ void reduction_blocks(const float* __restrict__ x, float* __restrict__ sum,
                                            const float* __restrict__ sums, const ReductionParams p) {
    const int blocks = min((long long)BLOCKS, ((long long)p.n + BLOCK - 1) / BLOCK);
    float own = 0.0f;
    for (int i = threadIdx.x; i < blocks; i += BLOCK) own += sums[i];
    own = sum_of_block(own);
    if (threadIdx.x == 0) *sum = own;
}
