// Sorts numbers in shared memory, the largest first, by all threads of a block. E. Batcher, "Sorting Networks and Their
// Applications", 1968. count: a power of two. Ends with a barrier.
#pragma once

__device__ __forceinline__ void sort_falling(float* of, int count) {
    for (int length = 2; length <= count; length *= 2) {
        for (int reach = length / 2; reach; reach /= 2) {
            __syncthreads();  // all exchanges of the step before are done
            for (int i = threadIdx.x; i < count; i += BLOCK) {
                const int other = i ^ reach;
                if (other <= i) continue;
                const float a = of[i], b = of[other];
                if ((a < b) == ((i & length) == 0)) of[i] = b, of[other] = a;
            }
        }
    }
    __syncthreads();
}
