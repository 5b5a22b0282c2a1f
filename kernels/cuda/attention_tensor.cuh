// Attention whose two products the tensor cores do, in 16 bits (HALF is 1) or TF32: a warp keeps 16 queries, the scores of
// a tile of keys and what is summed of the values in registers. Keys and values are rounded on their way to shared memory,
// scores and sums stay float32. FlashAttention-2 (Dao 2023): what a lane has of the scores is what it has to give to the
// second product, so that the weights never leave the registers.
#pragma once
#include "common.cuh"
#include "attention.cuh"
#include "half.cuh"
#include "mma_sync.cuh"

#define WARPS 4
#define ROWS 16                             // queries of a warp
#define ALL 0xffffffffu
#define STEP (HALF ? 16 : 8)                // elements that an instruction sums
#define WORDS (HALF ? DEPTH / 2 : DEPTH)    // of a key, 32 bits each
#define LINE (WORDS + 4)                    // eight lines, four words of each, then lie in different banks
#define LINE_V ((HALF ? KEYS / 2 : DEPTH_V) + 4)  // 16 bits: by element, pairs of keys side by side; TF32: by key
#define LINES_V (HALF ? DEPTH_V : KEYS)

__device__ __forceinline__ unsigned rounded(float first, float second) {
    return HALF ? to_halves(first, second) : to_tf32(first);
}

__device__ __forceinline__ void multiply(float (&sum)[4], uint4 left, unsigned near, unsigned far) {
    if constexpr (HALF)
        mma_half(sum, left, near, far);
    else
        mma_tf32(sum, left, near, far);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
              const float* __restrict__ mask, float* __restrict__ y, const AttentionParams p) {
    __shared__ __align__(16) unsigned some_k[KEYS * LINE];
    __shared__ __align__(16) unsigned some_v[LINES_V * LINE_V];
    unpack(q, k, v, mask, p);
    const Heads of_q = heads_of(p, 0), of_k = heads_of(p, 1), of_v = heads_of(p, 2), of_y = heads_of(p, 3);
    const int tiles = (p.queries + WARPS * ROWS - 1) / (WARPS * ROWS);
    const int head = blockIdx.x / tiles % p.heads;
    const int image = blockIdx.x / tiles / p.heads;
    const int shared = head / (p.heads / p.kv_heads);
    const int lane = threadIdx.x % 32, line = lane / 4, pair = lane % 4;
    const int top = blockIdx.x % tiles * (WARPS * ROWS) + threadIdx.x / 32 * ROWS + line;  // and eight below
    const float* queries = q + image * of_q.image + head * of_q.head;
    const float* keys = k + image * of_k.image + shared * of_k.head;
    const float* values = v + image * of_v.image + shared * of_v.head;
    const float* of_mask = mask ? mask + image * p.mask_image + head * p.mask_head : mask;

    auto query = [&](int row, int e) { return row < p.queries && e < p.depth ? queries[row * of_q.row + e] : 0.0f; };
    uint4 own[DEPTH / STEP];
#pragma unroll
    for (int s = 0; s < DEPTH / STEP; ++s) {
        const int near = s * STEP + (HALF ? 2 * pair : pair), far = near + STEP / 2;
        own[s] = {rounded(query(top, near), query(top, near + 1)), rounded(query(top + 8, near), query(top + 8, near + 1)),
                  rounded(query(top, far), query(top, far + 1)), rounded(query(top + 8, far), query(top + 8, far + 1))};
    }
    float sum[DEPTH_V / 8][4] = {};
    float largest[2] = {minus_infinity(), minus_infinity()}, weights[2] = {};

    for (int first = 0; first < p.keys; first += KEYS) {
        const int count = min(KEYS, p.keys - first);
        auto key = [&](int row, int e) { return row < count && e < p.depth ? keys[(first + row) * of_k.row + e] : 0.0f; };
        auto value = [&](int row, int e) {
            return row < count && e < p.depth_v ? values[(first + row) * of_v.row + e] : 0.0f;
        };
        __syncthreads();  // those before have been read
        for (int i = threadIdx.x; i < KEYS * WORDS; i += 32 * WARPS) {
            const int e = i % WORDS * (HALF ? 2 : 1), row = i / WORDS;
            some_k[row * LINE + i % WORDS] = rounded(key(row, e), HALF ? key(row, e + 1) : 0.0f);
        }
        for (int i = threadIdx.x; i < DEPTH_V * (HALF ? KEYS / 2 : KEYS); i += 32 * WARPS) {
            const int e = i % DEPTH_V, row = i / DEPTH_V;
            if constexpr (HALF)
                some_v[e * LINE_V + row] = rounded(value(2 * row, e), value(2 * row + 1, e));
            else
                some_v[row * LINE_V + e] = rounded(value(row, e), 0.0f);
        }
        __syncthreads();  // keys and values are there

        float score[KEYS / 8][4] = {};  // of `top` and of the query eight below, two neighbouring keys each
#pragma unroll
        for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
            for (int s = 0; s < DEPTH / STEP; ++s) {
                const unsigned* at = some_k + (8 * j + line) * LINE + 8 * s + pair;
                multiply(score[j], own[s], at[0], at[4]);
            }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = top + 8 * h;
            float now = largest[h];
#pragma unroll
            for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int place = 8 * j + 2 * pair + i;
                    float& one = score[j][2 * h + i];
                    one = row < p.queries && place < count ? score_of(one, row, first + place, of_mask, p)
                                                           : minus_infinity();
                    now = larger(now, one);
                }
            now = larger(now, __shfl_xor_sync(ALL, now, 1));
            now = larger(now, __shfl_xor_sync(ALL, now, 2));
            const float base = base_of(now), kept = expf(largest[h] - base);
            largest[h] = now;
            float added = 0.0f;
#pragma unroll
            for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    float& one = score[j][2 * h + i];
                    one = expf(one - base);
                    added += one;
                }
            added += __shfl_xor_sync(ALL, added, 1);
            added += __shfl_xor_sync(ALL, added, 2);
            weights[h] = weights[h] * kept + added;
#pragma unroll
            for (int n = 0; n < DEPTH_V / 8; ++n) {
                sum[n][2 * h] *= kept;
                sum[n][2 * h + 1] *= kept;
            }
        }
#pragma unroll
        for (int b = 0; b < KEYS / STEP; ++b) {
            uint4 left;
            if constexpr (HALF) {
                const float(&near)[4] = score[2 * b], (&far)[4] = score[2 * b + 1];
                left = {to_halves(near[0], near[1]), to_halves(near[2], near[3]), to_halves(far[0], far[1]),
                        to_halves(far[2], far[3])};
            } else {  // the sum takes the even keys of eight first, then the odd ones: so the lanes have them
                const float(&w)[4] = score[b];
                left = {to_tf32(w[0]), to_tf32(w[2]), to_tf32(w[1]), to_tf32(w[3])};
            }
#pragma unroll
            for (int n = 0; n < DEPTH_V / 8; ++n) {
                const unsigned* at = HALF ? some_v + (8 * n + line) * LINE_V + 8 * b + pair
                                          : some_v + (8 * b + 2 * pair) * LINE_V + 8 * n + line;
                multiply(sum[n], left, at[0], at[HALF ? 4 : LINE_V]);
            }
        }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = top + 8 * h;
        if (row >= p.queries) continue;
        float* to = y + image * of_y.image + head * of_y.head + row * of_y.row;
        const float by = divisor(weights[h], p);
#pragma unroll
        for (int n = 0; n < DEPTH_V / 8; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int e = 8 * n + 2 * pair + i;
                if (e < p.depth_v) to[e] = sum[n][2 * h + i] / by;
            }
    }
}
