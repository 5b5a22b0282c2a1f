// The inclusive scan of what the threads of a block have, one number each, and the sum of all of them.
#pragma once
#include "warp.cuh"

#define WARPS (BLOCK / LANES)

// Of a warp: after d steps each lane has the sum of the 2^d lanes up to its own.
__device__ __forceinline__ float scan_of_lanes(float v) {
#pragma unroll
    for (int d = 1; d < LANES; d *= 2) {
        const float before = __shfl_up_sync(ALL_LANES, v, d);
        if (threadIdx.x % LANES >= d) v += before;
    }
    return v;
}

// total: the sum of the block, for all its threads. All threads of the block have to call it.
__device__ __forceinline__ float scan_of_block(float v, float& total) {
    __shared__ float sums[WARPS];
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    v = scan_of_lanes(v);
    __syncthreads();  // nobody still reads the sums of a scan before
    if (lane == LANES - 1) sums[warp] = v;
    __syncthreads();  // the sums of all warps are there
    float before = 0.0f;
    total = 0.0f;
    for (int w = 0; w < WARPS; ++w) {
        if (w == warp) before = total;
        total += sums[w];
    }
    return v + before;
}
