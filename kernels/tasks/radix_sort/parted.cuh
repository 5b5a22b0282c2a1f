// The keys of a block parted by one bit, those without it first, in their order otherwise.
#pragma once
#include "warp.cuh"

#define WARPS (BLOCK / LANES)

// key: of this thread; held: BLOCK keys in shared memory. The key that comes to lie at this thread's place.
__device__ __forceinline__ unsigned parted(unsigned key, int bit, unsigned* held) {
    __shared__ int zeros[WARPS];
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const bool zero = !(key >> bit & 1u);
    const unsigned with_zero = __ballot_sync(ALL_LANES, zero);
    __syncthreads();  // nobody still reads what was held before
    if (lane == 0) zeros[warp] = __popc(with_zero);
    __syncthreads();  // the counts of all warps are there
    int before = __popc(with_zero & ((1u << lane) - 1u)), all = 0;
    for (int w = 0; w < WARPS; ++w) {
        if (w < warp) before += zeros[w];
        all += zeros[w];
    }
    held[zero ? before : all + (int)threadIdx.x - before] = key;
    __syncthreads();  // all keys lie at their places
    return held[threadIdx.x];
}
