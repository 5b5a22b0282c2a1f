/*
op = "attention"
rung = 1
name = "block_a_query"
idea = "A block a query: each thread finds the score of one key, then each sums one element of the values; the softmax is kept up key block by key block, so that the scores are never written."
launch = "attention_queries"
[defines]
BLOCK = 128  # threads, and keys at a time
*/
#include "common.cuh"
#include "attention.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK)
    attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
              const float* __restrict__ mask, float* __restrict__ y, const AttentionParams p) {
    __shared__ float scores[BLOCK];
    const Heads of_q = heads_of(p, 0), of_k = heads_of(p, 1), of_v = heads_of(p, 2), of_y = heads_of(p, 3);
    const int query = blockIdx.x % p.queries;
    const int head = blockIdx.x / p.queries % p.heads;
    const int image = blockIdx.x / p.queries / p.heads;
    const int shared = head / (p.heads / p.kv_heads);
    const float* own = q + image * of_q.image + head * of_q.head + query * of_q.row;
    const float* keys = k + image * of_k.image + shared * of_k.head;
    const float* values = v + image * of_v.image + shared * of_v.head;
    const float* of_mask = mask ? mask + image * p.mask_image + head * p.mask_head : mask;
    float* to = y + image * of_y.image + head * of_y.head + query * of_y.row;

    for (int e = threadIdx.x; e < p.depth_v; e += BLOCK) to[e] = 0.0f;
    float largest = minus_infinity(), weights = 0.0f;
    for (int first = 0; first < p.keys; first += BLOCK) {
        const int count = min(BLOCK, p.keys - first);
        if (threadIdx.x < count) {
            const int key = first + threadIdx.x;
            const float* of = keys + key * of_k.row;
            float product = 0.0f;
            for (int e = 0; e < p.depth; ++e) product += own[e] * of[e];
            scores[threadIdx.x] = score_of(product, query, key, of_mask, p);
        }
        __syncthreads();  // the scores are whole
        float now = largest;
        for (int j = 0; j < count; ++j) now = larger(now, scores[j]);
        const float base = base_of(now), kept = expf(largest - base);
        __syncthreads();  // everybody has read them
        if (threadIdx.x < count) scores[threadIdx.x] = expf(scores[threadIdx.x] - base);
        __syncthreads();  // they are weights
        float added = 0.0f;
        for (int j = 0; j < count; ++j) added += scores[j];
        weights = weights * kept + added;
        largest = now;
        for (int e = threadIdx.x; e < p.depth_v; e += BLOCK) {
            float sum = 0.0f;
            for (int j = 0; j < count; ++j) sum += scores[j] * values[(first + j) * of_v.row + e];
            to[e] = to[e] * kept + sum;
        }
        __syncthreads();  // and may be written over
    }
    const float by = divisor(weights, p);
    for (int e = threadIdx.x; e < p.depth_v; e += BLOCK) to[e] /= by;
}
