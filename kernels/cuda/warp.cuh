// What the lanes of a warp do together.
#pragma once

#define LANES 32
#define ALL_LANES 0xffffffffu

// The sum of what the lanes have. Every lane ends with the same, added in the same order each time.
__device__ __forceinline__ float sum_of_lanes(float v) {
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) v += __shfl_xor_sync(ALL_LANES, v, d);
    return v;
}
