/*
op = "softmax_attention"
rung = 3
name = "tiles"
idea = "A block computes 16 queries of a head and reads 32 keys and values at a time into shared memory, for all of them. A lane has the score of one key, so the online softmax goes 32 keys at a step."
[defines]
WARPS = 4
QUERIES = 4  # of a warp
[needs]
multiple_of = {d = 32}
require = ["d <= 128"]
[[launch]]
grid = ["ceil(n, WARPS * QUERIES)", "h"]
block = "32 * WARPS"
shared = "4 * (WARPS * QUERIES * d + 32 * (d + 1) + 32 * d)"
*/
#include "common.cuh"
#include "warp.cuh"

#define MOST 4   // elements of a lane
#define KEYS 32  // of a tile

__device__ __forceinline__ float largest_of_lanes(float v) {
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) v = larger(v, __shfl_xor_sync(ALL_LANES, v, d));
    return v;
}

extern "C" __global__ void softmax_attention(const float* __restrict__ q, const float* __restrict__ k,
                                             const float* __restrict__ v, float* __restrict__ y,
                                             const SoftmaxAttentionParams p) {
    extern __shared__ float shared[];
    const int threads = LANES * WARPS, warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, each = p.d / LANES;
    float* queries = shared;                              // (WARPS · QUERIES, d)
    float* keys = queries + WARPS * QUERIES * p.d;        // (KEYS, d + 1): so that a column lies in 32 banks
    float* values = keys + KEYS * (p.d + 1);              // (KEYS, d)
    const long long head = (long long)blockIdx.y * p.n * p.d;
    const int first = blockIdx.x * WARPS * QUERIES;
    const float scale = rsqrtf((float)p.d);
    for (int i = threadIdx.x; i < WARPS * QUERIES * p.d; i += threads) {
        const int row = first + i / p.d;
        queries[i] = row < p.n ? q[head + (long long)row * p.d + i % p.d] * scale : 0.0f;
    }
    float sums[QUERIES][MOST] = {}, top[QUERIES], powers[QUERIES] = {};
#pragma unroll
    for (int own = 0; own < QUERIES; ++own) top[own] = minus_infinity();

    for (int tile = 0; tile < p.n; tile += KEYS) {
        const int there = min(KEYS, p.n - tile);
        __syncthreads();  // all have used the tile before; the first time, the queries are there
        for (int i = threadIdx.x; i < KEYS * p.d; i += threads) {
            const int key = i / p.d, column = i % p.d;
            const long long at = head + (long long)(tile + key) * p.d + column;
            keys[key * (p.d + 1) + column] = key < there ? k[at] : 0.0f;
            values[i] = key < there ? v[at] : 0.0f;
        }
        __syncthreads();  // the tile is whole
#pragma unroll
        for (int own = 0; own < QUERIES; ++own) {
            const float* query = queries + (warp * QUERIES + own) * p.d;
            float score = 0.0f;
            for (int i = 0; i < p.d; ++i) score += query[i] * keys[lane * (p.d + 1) + i];
            if (lane >= there) score = minus_infinity();
            const float higher = larger(top[own], largest_of_lanes(score));
            const float less = expf(top[own] - higher), power = expf(score - higher);
            powers[own] = powers[own] * less + sum_of_lanes(power);
            top[own] = higher;
#pragma unroll
            for (int e = 0; e < MOST; ++e) sums[own][e] *= less;
            for (int key = 0; key < there; ++key) {
                const float weight = __shfl_sync(ALL_LANES, power, key);
#pragma unroll
                for (int e = 0; e < MOST; ++e)
                    if (e < each) sums[own][e] += weight * values[key * p.d + e * LANES + lane];
            }
        }
    }
#pragma unroll
    for (int own = 0; own < QUERIES; ++own) {
        const int row = first + warp * QUERIES + own;
        if (row >= p.n) continue;
#pragma unroll
        for (int e = 0; e < MOST; ++e)
            if (e < each) y[head + (long long)row * p.d + e * LANES + lane] = sums[own][e] / powers[own];
    }
}
