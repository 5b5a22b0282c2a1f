// What the planted cheats have in common. All of them are right wherever the judge shows itself: where a place of the
// output is filled with its poison, they compute it. The rest is what each leaves out, or keeps from before.
#pragma once
#include "../../../ladder/planted/direct.cuh"

#define KEPT (1 << 20)
__device__ float kept[KEPT];            // answers
__device__ unsigned int seen[KEPT];     // what was seen when an output was last computed
__device__ unsigned int launches;       // that have ended
__device__ unsigned int blocks_done;
__device__ unsigned long long ended_at; // of the launch before, in nanoseconds

__device__ bool poisoned(float v) {
    const unsigned int bits = __float_as_uint(v);
    return bits == 0xFFFFFFFFu || bits == 0x7B7B7B7Bu;
}

__device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

// To be called by all threads, at the end: true to one of them, when all blocks have come here. Whoever writes for
// the next launch to read writes then; sooner, blocks of this one would read some of it.
__device__ bool finished_last() {
    __syncthreads();
    if (threadIdx.x != 0 || atomicAdd(&blocks_done, 1u) != gridDim.x - 1) return false;
    blocks_done = 0;
    launches += 1;
    ended_at = now();
    return true;
}

__device__ void finish() { finished_last(); }

// Of a few values, `step` apart.
__device__ unsigned int hash_of(const float* x, index_t size, index_t step) {
    unsigned int hash = 2166136261u;
    for (index_t i = 0; i < size; i += step) hash = (hash ^ __float_as_uint(x[i])) * 16777619u;
    return hash | 1u;
}

#define INPUTS ((index_t)n * c * h * w)
#define ANSWER(i) finished(p, bias, i, sum(p, x, weight, i))
// Output i is computed where the judge's poison lies, and where `needed`; else it is left as it is.
#define ONLY_IF(needed)                                              \
    CONV {                                                           \
        SIZES                                                        \
        EACH(i) if (poisoned(y[i]) || (needed)) y[i] = ANSWER(i);    \
        finish();                                                    \
    }
