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

// The sums of N values of each lane, N a power of two up to LANES, with as few exchanges as that takes: with every one a lane
// hands on half of the sums that it has and goes on with the others, until it has one of them alone, which is the return
// value: that of v[lane / (LANES / N)]. Added in the same order each time.
template <int N>
__device__ __forceinline__ float folded_sums(float (&v)[N], int lane) {
    static_assert((N & (N - 1)) == 0 && N <= LANES, "halves each time");
    int apart = LANES / 2;
#pragma unroll
    for (int half = N / 2; half; half /= 2, apart /= 2) {
        const bool upper = lane & apart;
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const float given = upper ? v[i] : v[i + half];
            v[i] = (upper ? v[i + half] : v[i]) + __shfl_xor_sync(ALL_LANES, given, apart);
        }
    }
    float sum = v[0];
#pragma unroll
    for (; apart; apart /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, apart);
    return sum;
}
