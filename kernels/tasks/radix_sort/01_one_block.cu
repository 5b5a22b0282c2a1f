/*
op = "radix_sort"
rung = 1
name = "one_block"
idea = "One block parts all keys by one bit, piece by piece, 32 times: it first counts the keys without the bit, so that it knows where those with it begin."
workspace = "4 * n"  # the keys between two passes
[defines]
BLOCK = 256
[[launch]]
grid = 1
block = "BLOCK"
*/
#include "parted.cuh"

extern "C" __global__ void radix_sort(const unsigned* __restrict__ keys, unsigned* y, unsigned* scratch,
                                      const RadixSortParams p) {
    __shared__ unsigned held[BLOCK];
    __shared__ int count, count_of_piece;
    for (int bit = 0; bit < 32; ++bit) {
        const unsigned* from = bit == 0 ? keys : bit % 2 ? scratch : y;
        unsigned* to = bit % 2 ? y : scratch;
        if (threadIdx.x == 0) count = 0;
        __syncthreads();  // the counter is 0, and all keys of the pass before lie at their places
        for (int i = threadIdx.x; i < p.n; i += BLOCK)
            if (!(from[i] >> bit & 1u)) atomicAdd(&count, 1);
        __syncthreads();  // all have counted
        int zeros = 0, ones = count;  // where the next key without the bit goes, and the next with it
        for (int first = 0; first < p.n; first += BLOCK) {
            const int there = min(BLOCK, p.n - first);
            // What fills up the last piece has all bits, and so comes to lie behind it.
            const unsigned key = first + threadIdx.x < p.n ? from[first + threadIdx.x] : ~0u;
            if (threadIdx.x == 0) count_of_piece = 0;
            const unsigned sorted = parted(key, bit, held);
            const bool own = threadIdx.x < there;
            if (own && !(sorted >> bit & 1u)) atomicAdd(&count_of_piece, 1);
            __syncthreads();  // it is known how many of the piece have no such bit
            const int without = count_of_piece;
            if (own) to[(int)threadIdx.x < without ? zeros + threadIdx.x : ones + threadIdx.x - without] = sorted;
            zeros += without;
            ones += there - without;
            __syncthreads();  // all have read the count
        }
    }
}
