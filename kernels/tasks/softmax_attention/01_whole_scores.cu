/*
op = "softmax_attention"
rung = 1
name = "whole_scores"
idea = "A block a query: all its scores lie in shared memory, then their largest, their sum, and each thread adds up some elements of the answer."
[defines]
BLOCK = 128
[needs]
require = ["n <= 8192"]
[[launch]]
grid = "h * n"
block = "BLOCK"
shared = "4 * n"
*/
#include "common.cuh"
#include "warp.cuh"

// What the threads of a block have, together: their sum, or the largest.
__device__ float of_block(float own, bool sum) {
    __shared__ float held[BLOCK / LANES];
    for (int d = LANES / 2; d; d /= 2) {
        const float other = __shfl_xor_sync(ALL_LANES, own, d);
        own = sum ? own + other : larger(own, other);
    }
    __syncthreads();  // nobody still reads what was held before
    if (threadIdx.x % LANES == 0) held[threadIdx.x / LANES] = own;
    __syncthreads();  // what the warps have is there
    own = held[0];
    for (int warp = 1; warp < BLOCK / LANES; ++warp) own = sum ? own + held[warp] : larger(own, held[warp]);
    return own;
}

extern "C" __global__ void softmax_attention(const float* __restrict__ q, const float* __restrict__ k,
                                             const float* __restrict__ v, float* __restrict__ y,
                                             const SoftmaxAttentionParams p) {
    extern __shared__ float scores[];
    const long long head = (long long)blockIdx.x / p.n * p.n * p.d;
    const float* query = q + (long long)blockIdx.x * p.d;
    const float scale = rsqrtf((float)p.d);
    float top = minus_infinity();
    for (int key = threadIdx.x; key < p.n; key += BLOCK) {
        float score = 0.0f;
        for (int i = 0; i < p.d; ++i) score += query[i] * k[head + (long long)key * p.d + i];
        scores[key] = score * scale;
        top = larger(top, score * scale);
    }
    top = of_block(top, false);
    float sum = 0.0f;
    for (int key = threadIdx.x; key < p.n; key += BLOCK) {
        scores[key] = expf(scores[key] - top);
        sum += scores[key];
    }
    sum = of_block(sum, true);  // behind it all scores are there for all threads
    for (int i = threadIdx.x; i < p.d; i += BLOCK) {
        float own = 0.0f;
        for (int key = 0; key < p.n; ++key) own += scores[key] * v[head + (long long)key * p.d + i];
        y[(long long)blockIdx.x * p.d + i] = own / sum;
    }
}
