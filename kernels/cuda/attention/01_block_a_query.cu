/*
op = "attention"
rung = 1
name = "block_a_query"
idea = "A block a query: each thread finds the score of one key, then each sums a few elements of the values; the softmax is kept up key block by key block, so that the scores are never written."
launch = "attention_queries"
[defines]
BLOCK = 128  # threads, and keys at a time
*/
#include "common.cuh"
#include "attention.cuh"
#include "sums.cuh"

#define EACH 4  // elements of the answer that a thread sums at a time: of a longer answer the scores are found again

extern "C" __global__ void __launch_bounds__(BLOCK)
    attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
              const float* __restrict__ mask, float* __restrict__ y, const AttentionParams p) {
    __shared__ float scores[BLOCK];
    unpack(q, k, v, mask, p);
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

    for (int mine = threadIdx.x; mine - (int)threadIdx.x < p.depth_v; mine += EACH * BLOCK) {
        float largest = minus_infinity();
        Scaled weights, sum[EACH];
        for (int first = 0; first < p.keys; first += BLOCK) {
            const int count = min(BLOCK, p.keys - first);
            if (threadIdx.x < count) {
                const int key = first + threadIdx.x;
                const float* of = keys + key * of_k.row;
                LongSum product;
                for (int e = 0; e < p.depth; ++e) product.add(own[e] * of[e]);
                scores[threadIdx.x] = score_of(product.total(), query, key, of_mask, p);
            }
            __syncthreads();  // the scores are whole
            float now = largest;
            for (int j = 0; j < count; ++j) now = larger(now, scores[j]);
            const float base = base_of(now), kept = expf(largest - base);
            __syncthreads();  // everybody has read them
            if (threadIdx.x < count) scores[threadIdx.x] = expf(scores[threadIdx.x] - base);
            __syncthreads();  // they are weights
            LongSum added;
            for (int j = 0; j < count; ++j) added.add(scores[j]);
            weights.add(kept, added.total());
            largest = now;
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                const int e = mine + i * BLOCK;
                if (e >= p.depth_v) break;
                LongSum more;
                for (int j = 0; j < count; ++j) more.add(scores[j] * values[(first + j) * of_v.row + e]);
                sum[i].add(kept, more.total());
            }
            __syncthreads();  // and may be written over
        }
        const float by = divisor(weights.total(), p);
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (mine + i * BLOCK < p.depth_v) to[mine + i * BLOCK] = sum[i].total() / by;
    }
}
