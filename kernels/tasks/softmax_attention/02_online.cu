/*
op = "softmax_attention"
rung = 2
name = "online"
idea = "A warp a query, with the online softmax: the largest score and the sum so far are kept, and what was added is scaled down when a larger score comes. No scores are kept, however many keys there are."
[defines]
BLOCK = 128
[needs]
multiple_of = {d = 32}
require = ["d <= 128"]
[[launch]]
grid = "ceil(h * n, BLOCK // 32)"
block = "BLOCK"
*/
#include "common.cuh"
#include "warp.cuh"

#define MOST 4  // elements of a lane

extern "C" __global__ void softmax_attention(const float* __restrict__ q, const float* __restrict__ k,
                                             const float* __restrict__ v, float* __restrict__ y,
                                             const SoftmaxAttentionParams p) {
    const int row = (blockIdx.x * BLOCK + threadIdx.x) / LANES, lane = threadIdx.x % LANES, each = p.d / LANES;
    if (row >= p.h * p.n) return;  // the whole warp does
    const long long head = (long long)row / p.n * p.n * p.d;
    float query[MOST], sums[MOST];
#pragma unroll
    for (int e = 0; e < MOST; ++e) {
        query[e] = e < each ? q[(long long)row * p.d + e * LANES + lane] * rsqrtf((float)p.d) : 0.0f;
        sums[e] = 0.0f;
    }
    float top = minus_infinity(), powers = 0.0f;
    for (int key = 0; key < p.n; ++key) {
        const long long at = head + (long long)key * p.d + lane;
        float score = 0.0f;
#pragma unroll
        for (int e = 0; e < MOST; ++e)
            if (e < each) score += query[e] * k[at + e * LANES];
        score = sum_of_lanes(score);
        const float higher = larger(top, score);
        const float less = expf(top - higher), power = expf(score - higher);  // less: 0 at the first key
        powers = powers * less + power;
#pragma unroll
        for (int e = 0; e < MOST; ++e)
            if (e < each) sums[e] = sums[e] * less + power * v[at + e * LANES];
        top = higher;
    }
#pragma unroll
    for (int e = 0; e < MOST; ++e)
        if (e < each) y[(long long)row * p.d + e * LANES + lane] = sums[e] / powers;
}
