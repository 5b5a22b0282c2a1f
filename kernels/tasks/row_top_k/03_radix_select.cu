/*
op = "row_top_k"
rung = 3
name = "radix_select"
idea = "A block a row: counts of the highest eight bits say in which bin the k-th largest lies, then the next eight among those, four times. Only what is larger is kept and sorted."
[defines]
BLOCK = 256
[needs]
require = ["k <= 1024"]
[[launch]]
grid = "m"
block = "BLOCK"
*/
#include "bitonic.cuh"
#include "common.cuh"

#define BINS 256
#define MOST 1024  // that are wanted

// Bits that are in the order of the numbers.
__device__ __forceinline__ unsigned in_order(float v) {
    const unsigned bits = __float_as_uint(v);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

extern "C" __global__ void row_top_k(const float* __restrict__ x, float* __restrict__ y, const RowTopKParams p) {
    __shared__ int counts[BINS];
    __shared__ unsigned chosen;
    __shared__ int left, kept;
    __shared__ float found[MOST];
    const float* of = x + (long long)blockIdx.x * p.n;
    unsigned prefix = 0;  // the bits of the k-th largest, as far as they are known
    int wanted = p.k;     // which of those that begin with these bits it is
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) counts[bin] = 0;
        __syncthreads();  // all counters are 0
        for (int i = threadIdx.x; i < p.n; i += BLOCK) {
            const unsigned bits = in_order(of[i]);
            const bool begins = shift == 24 || bits >> (shift + 8) == prefix >> (shift + 8);
            if (begins) atomicAdd(&counts[bits >> shift & (BINS - 1)], 1);
        }
        __syncthreads();  // all have counted
        if (threadIdx.x == 0) {
            int bin = BINS - 1, above = wanted;
            while (counts[bin] < above) above -= counts[bin--];
            chosen = prefix | (unsigned)bin << shift;
            left = above;
        }
        __syncthreads();  // the bin is chosen
        prefix = chosen;
        wanted = left;
    }
    if (threadIdx.x == 0) kept = 0;
    int count = 1;
    while (count < p.k) count *= 2;
    __syncthreads();
    // What is larger than the k-th largest; the places behind are filled by numbers that are equal to it.
    for (int i = threadIdx.x; i < p.n; i += BLOCK)
        if (in_order(of[i]) > prefix) found[atomicAdd(&kept, 1)] = of[i];
    __syncthreads();  // all that is larger is there
    const float last = __uint_as_float(prefix & 0x80000000u ? prefix & 0x7fffffffu : ~prefix);
    const int larger_ones = kept;
    for (int i = larger_ones + threadIdx.x; i < count; i += BLOCK) found[i] = i < p.k ? last : minus_infinity();
    sort_falling(found, count);
    for (int i = threadIdx.x; i < p.k; i += BLOCK) y[(long long)blockIdx.x * p.k + i] = found[i];
}
