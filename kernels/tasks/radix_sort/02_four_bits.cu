/*
op = "radix_sort"
rung = 2
name = "four_bits"
idea = "All blocks sort, four bits a pass: each counts its digits, one block works out where each digit of each block begins, and each block sorts its keys by the digit and moves them there, side by side."
workspace = "4 * (1 + n + 16 * ceil(n, BLOCK))"  # the number of the pass, the keys between passes, and the counts
[defines]
BLOCK = 256
[[launch]]
kernel = "radix_sort_begin"
grid = 1
block = 1
[[launch]]
kernel = "radix_sort_count"
grid = "ceil(n, BLOCK)"
block = "BLOCK"
repeat = 8
[[launch]]
kernel = "radix_sort_places"
grid = 1
block = "BLOCK"
repeat = 8
[[launch]]
grid = "ceil(n, BLOCK)"
block = "BLOCK"
repeat = 8
[[launch]]
kernel = "radix_sort_next"
grid = 1
block = 1
repeat = 8
*/
#include "parted.cuh"

#define DIGITS 16

// Passes are counted in scratch memory: all launches of a kernel are alike.
struct Pass {
    const unsigned* from;
    unsigned* to;
    int* counts;  // of each digit those of all blocks, then of the next
    int shift, blocks;
};

__device__ __forceinline__ Pass pass_of(const unsigned* keys, unsigned* y, unsigned* scratch, int n) {
    const int pass = scratch[0];
    unsigned* between = scratch + 1;
    return {pass == 0 ? keys : pass % 2 ? between : y, pass % 2 ? y : between, (int*)between + n, 4 * pass,
            (n - 1) / BLOCK + 1};
}

extern "C" __global__ void radix_sort_begin(const unsigned* keys, unsigned* y, unsigned* scratch,
                                            const RadixSortParams p) {
    scratch[0] = 0;
}

extern "C" __global__ void radix_sort_next(const unsigned* keys, unsigned* y, unsigned* scratch,
                                           const RadixSortParams p) {
    scratch[0] += 1;
}

extern "C" __global__ void radix_sort_count(const unsigned* keys, unsigned* y, unsigned* scratch,
                                            const RadixSortParams p) {
    __shared__ int own[DIGITS];
    const Pass pass = pass_of(keys, y, scratch, p.n);
    if (threadIdx.x < DIGITS) own[threadIdx.x] = 0;
    __syncthreads();  // all counters are 0
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < p.n) atomicAdd(&own[pass.from[i] >> pass.shift & (DIGITS - 1)], 1);
    __syncthreads();  // all have counted
    if (threadIdx.x < DIGITS) pass.counts[threadIdx.x * pass.blocks + blockIdx.x] = own[threadIdx.x];
}

// Of each count the sum of all before it.
extern "C" __global__ void radix_sort_places(const unsigned* keys, unsigned* y, unsigned* scratch,
                                             const RadixSortParams p) {
    __shared__ int sums[BLOCK];
    const Pass pass = pass_of(keys, y, scratch, p.n);
    int before = 0;
    for (int first = 0; first < DIGITS * pass.blocks; first += BLOCK) {
        const int i = first + threadIdx.x;
        const int own = i < DIGITS * pass.blocks ? pass.counts[i] : 0;
        sums[threadIdx.x] = own;
        __syncthreads();  // all counts are there
        for (int reach = 1; reach < BLOCK; reach *= 2) {
            const int add = threadIdx.x >= reach ? sums[threadIdx.x - reach] : 0;
            __syncthreads();  // all have read
            sums[threadIdx.x] += add;
            __syncthreads();  // all have added
        }
        if (i < DIGITS * pass.blocks) pass.counts[i] = before + sums[threadIdx.x] - own;
        before += sums[BLOCK - 1];
        __syncthreads();  // all have read the last sum
    }
}

extern "C" __global__ void radix_sort(const unsigned* keys, unsigned* y, unsigned* scratch, const RadixSortParams p) {
    __shared__ unsigned held[BLOCK];
    __shared__ int begins[DIGITS];
    const Pass pass = pass_of(keys, y, scratch, p.n);
    const int first = blockIdx.x * BLOCK, there = min(BLOCK, p.n - first);
    // What fills up the last block has the highest digit, and so comes to lie behind it.
    unsigned key = (int)threadIdx.x < there ? pass.from[first + threadIdx.x] : ~0u;
    for (int bit = 0; bit < 4; ++bit) key = parted(key, pass.shift + bit, held);
    const int digit = key >> pass.shift & (DIGITS - 1);
    // The keys of the block are in order: a digit begins where the one before it is another.
    if (threadIdx.x == 0 || digit != (int)(held[threadIdx.x - 1] >> pass.shift & (DIGITS - 1))) begins[digit] = threadIdx.x;
    __syncthreads();  // it is known where each digit begins
    if ((int)threadIdx.x < there) pass.to[pass.counts[digit * pass.blocks + blockIdx.x] + threadIdx.x - begins[digit]] = key;
}
