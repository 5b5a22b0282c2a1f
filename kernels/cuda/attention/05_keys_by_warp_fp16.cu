/*
op = "attention"
rung = 5
name = "keys_by_warp_fp16"
idea = "Warps of a block share 16 queries and divide the keys, of which they read into registers just what the tensor cores take of each lane; in the end they add up what they have."
launch = "attention_by_warp"
precision = ["fp16", "bf16"]
overlaps = true
reads = ["nchw float32", "nhwc float16"]
writes = ["nchw float32", "nhwc float16"]
[defines]
DEPTH = 64    # elements of a query and a key, filled up to sixteens; the launch sets these five
DEPTH_V = 64  # of a value, filled up to 32
WARPS = 4     # of a block
SHARES = 4    # of the keys, each a warp's: a power of two that divides WARPS
ALIGNED = 1     # whether rows begin at 16 bytes, so that four elements are read at once
READS = 0     # how q lies, packed with k and v in rows: by its place in `reads`
WRITES = 0    # and y
[needs]
compute_capability = "8.0"
*/
// The sums of a tensor core do not depend on which element of a key it calls the first, nor on which element of a value
// stands in which column. So a lane takes four neighbours where the instruction's own order has two and two: it reads 16
// bytes at once, and nothing goes through shared memory but what the warps have in the end. Warps that have other queries
// of the same head find the keys in the first cache. The softmax is kept up as in FlashAttention-2 (Dao 2023), and parts of
// the keys are joined as in Flash-Decoding (Dao et al. 2023). Rows that lie in 16 bits are filled up to whole chunks of
// eight elements, as those of images of one pixel (nhwc.cuh).
#include "common.cuh"
#include "attention.cuh"
#include "attention_by_warp.cuh"
#include "mma_sync.cuh"
#include "overlap.cuh"

#define ROWS 16   // queries of a warp
#define TILE 32   // keys of a warp at a time
#define ALL 0xffffffffu
#define STEPS (DEPTH / 16)    // instructions that a score takes
#define QUARTERS (DEPTH_V / 32)
#define GROUPS (WARPS / SHARES)  // of queries in a block
#define LOG2_E 1.4426950408889634f

__device__ __forceinline__ float power_of_two(float v) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));
    return y;
}

#if READS
typedef half_bits number;

// Two and two elements of a row from e on, as an instruction takes them; zeros where there is none.
__device__ __forceinline__ uint2 pairs(const number* row, bool there, int e, int elements) {
    return there && e < elements ? *reinterpret_cast<const uint2*>(row + e) : make_uint2(0, 0);
}

// Four elements of two neighbouring rows, each with the one below it.
__device__ __forceinline__ uint4 columns(const number* row, index_t next, bool there, bool also, int e, int elements) {
    const uint2 a = pairs(row, there, e, elements), b = pairs(row + next, also, e, elements);
    return {(a.x & 0xffffu) | b.x << 16, a.x >> 16 | (b.x & 0xffff0000u), (a.y & 0xffffu) | b.y << 16,
            a.y >> 16 | (b.y & 0xffff0000u)};
}
#else
typedef float number;

__device__ __forceinline__ uint2 pairs(const number* row, bool there, int e, int elements) {
    const float4 a = four(row, there, e, elements);
    return {to_halves(a.x, a.y), to_halves(a.z, a.w)};
}

__device__ __forceinline__ uint4 columns(const number* row, index_t next, bool there, bool also, int e, int elements) {
    const float4 a = four(row, there, e, elements), b = four(row + next, also, e, elements);
    return {to_halves(a.x, b.x), to_halves(a.y, b.y), to_halves(a.z, b.z), to_halves(a.w, b.w)};
}
#endif

// e to a score minus the largest, which is at most 1: right to about 1e-6 of it, a thousandth of what float16 rounds.
__device__ __forceinline__ float weight_of(float score, float base) { return power_of_two((score - base) * LOG2_E); }

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
              const float* __restrict__ mask, float* __restrict__ y, const AttentionParams p) {
    let_next_begin();
    Heads of_q = heads_of(p, 0), of_k = heads_of(p, 1), of_v = heads_of(p, 2), of_y = heads_of(p, 3);
    const int groups = (p.queries + GROUPS * ROWS - 1) / (GROUPS * ROWS);
    const int head = blockIdx.x / groups % p.heads;
    const index_t image = blockIdx.x / groups / p.heads;
    const int shared = head / (p.heads / p.kv_heads);
    const int warp = threadIdx.x / 32, share = warp % SHARES, group = warp / SHARES;
    const int lane = threadIdx.x % 32, line = lane / 4, pair = lane % 4;
    const int top = (blockIdx.x % groups * GROUPS + group) * ROWS + line;  // and eight below
    wait_for_previous();
#if READS
    mask = k;
    of_q.row = of_k.row = of_v.row = (of_q.row + 7) / 8 * 8;
    of_q.image = of_k.image = of_v.image = p.queries * of_q.row;
    const number* first_q = reinterpret_cast<const number*>(written(q));
    const number* first_k = first_q + p.heads * p.depth;
    const number* first_v = first_k + p.kv_heads * p.depth;
#else
    unpack(q, k, v, mask, p);
    const number *first_q = written(q), *first_k = written(k), *first_v = written(v);
#endif
    const number* queries = first_q + image * of_q.image + head * of_q.head;
    const number* keys = first_k + image * of_k.image + shared * of_k.head;
    const number* values = first_v + image * of_v.image + shared * of_v.head;
    const float* of_mask = mask ? written(mask) + image * p.mask_image + head * p.mask_head : mask;

    uint4 own[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
        const int e = 16 * s + 4 * pair;
        const uint2 a = pairs(queries + top * of_q.row, top < p.queries, e, p.depth);
        const uint2 b = pairs(queries + (top + 8) * of_q.row, top + 8 < p.queries, e, p.depth);
        own[s] = {a.x, b.x, a.y, b.y};
    }
    float sum[DEPTH_V / 8][4] = {};
    float largest[2] = {minus_infinity(), minus_infinity()}, weights[2] = {};

    for (int first = share * TILE; first < p.keys; first += SHARES * TILE) {
        float score[TILE / 8][4] = {};  // of `top` and of the query eight below, two neighbouring keys each
#pragma unroll
        for (int j = 0; j < TILE / 8; ++j) {
            const int key = first + 8 * j + line;
#pragma unroll
            for (int s = 0; s < STEPS; ++s) {
                const uint2 a = pairs(keys + key * of_k.row, key < p.keys, 16 * s + 4 * pair, p.depth);
                mma_half(score[j], own[s], a.x, a.y);
            }
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = top + 8 * h;
            float now = largest[h];
#pragma unroll
            for (int j = 0; j < TILE / 8; ++j)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int key = first + 8 * j + 2 * pair + i;
                    float& one = score[j][2 * h + i];
                    one = row < p.queries && key < p.keys ? score_of(one, row, key, of_mask, p) : minus_infinity();
                    now = larger(now, one);
                }
            now = larger(now, __shfl_xor_sync(ALL, now, 1));
            now = larger(now, __shfl_xor_sync(ALL, now, 2));
            const float base = base_of(now), kept = weight_of(largest[h], base);
            largest[h] = now;
            float added = 0.0f;
#pragma unroll
            for (int j = 0; j < TILE / 8; ++j)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    float& one = score[j][2 * h + i];
                    one = weight_of(one, base);
                    added += one;
                }
            weights[h] = weights[h] * kept + added;  // of this lane's keys alone
#pragma unroll
            for (int n = 0; n < DEPTH_V / 8; ++n) {
                sum[n][2 * h] *= kept;
                sum[n][2 * h + 1] *= kept;
            }
        }
#pragma unroll
        for (int b = 0; b < TILE / 16; ++b) {
            const float(&near)[4] = score[2 * b], (&far)[4] = score[2 * b + 1];
            const uint4 left = {to_halves(near[0], near[1]), to_halves(near[2], near[3]), to_halves(far[0], far[1]),
                                to_halves(far[2], far[3])};
            const int key = first + 16 * b + 2 * pair;
            const number* row = values + key * of_v.row;
#pragma unroll
            for (int n = 0; n < QUARTERS; ++n) {
                const int e = 32 * n + 4 * line;
                const uint4 a = columns(row, of_v.row, key < p.keys, key + 1 < p.keys, e, p.depth_v);
                const uint4 b = columns(row + 8 * of_v.row, of_v.row, key + 8 < p.keys, key + 9 < p.keys, e, p.depth_v);
                mma_half(sum[4 * n], left, a.x, b.x);
                mma_half(sum[4 * n + 1], left, a.y, b.y);
                mma_half(sum[4 * n + 2], left, a.z, b.z);
                mma_half(sum[4 * n + 3], left, a.w, b.w);
            }
        }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        weights[h] += __shfl_xor_sync(ALL, weights[h], 1);
        weights[h] += __shfl_xor_sync(ALL, weights[h], 2);
    }

    // Of a query: column 2 · pair + i of eight, which is four elements of the answer, of each quarter.
#if SHARES > 1
    __shared__ float tops[WARPS][ROWS], totals[WARPS][ROWS];
    __shared__ __align__(16) float parts[WARPS][ROWS][DEPTH_V];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if (pair == 0) tops[warp][line + 8 * h] = largest[h];
    }
    __syncthreads();  // the largest score of each warp is known
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = line + 8 * h;
        float most = minus_infinity();
#pragma unroll
        for (int s = 0; s < SHARES; ++s) most = larger(most, tops[group * SHARES + s][row]);
        const float kept = weight_of(largest[h], base_of(most));
        if (pair == 0) totals[warp][row] = weights[h] * kept;
#pragma unroll
        for (int n = 0; n < QUARTERS; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i)
                *reinterpret_cast<float4*>(&parts[warp][row][32 * n + 4 * (2 * pair + i)]) =
                    make_float4(sum[4 * n][2 * h + i] * kept, sum[4 * n + 1][2 * h + i] * kept,
                                sum[4 * n + 2][2 * h + i] * kept, sum[4 * n + 3][2 * h + i] * kept);
    }
    __syncthreads();  // what each warp has is there
    for (int i = share * 32 + lane; i < ROWS * DEPTH_V / 4; i += 32 * SHARES) {
        const int row = i / (DEPTH_V / 4), e = i % (DEPTH_V / 4) * 4;
        const int of_all = top - line + row;
        float total = 0.0f;
        float4 whole = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int s = 0; s < SHARES; ++s) {
            const float4 part = *reinterpret_cast<const float4*>(&parts[group * SHARES + s][row][e]);
            whole = make_float4(whole.x + part.x, whole.y + part.y, whole.z + part.z, whole.w + part.w);
            total += totals[group * SHARES + s][row];
        }
#else
#pragma unroll
    for (int i = 0; i < 4 * QUARTERS; ++i) {
        const int h = i % 2, n = i / 4, column = i / 2 % 2;
        const int e = 32 * n + 4 * (2 * pair + column), of_all = top + 8 * h;
        const float total = weights[h];
        const float4 whole = make_float4(sum[4 * n][2 * h + column], sum[4 * n + 1][2 * h + column],
                                         sum[4 * n + 2][2 * h + column], sum[4 * n + 3][2 * h + column]);
#endif
        if (of_all >= p.queries) continue;
        const float by = divisor(total, p);
        const index_t place = image * of_y.image + head * of_y.head + of_all * of_y.row;
        if (!WRITES)
            give(y + place, e, whole, by, p.depth_v);
        else if (e < p.depth_v)  // of eights a row: nothing to fill up
            *reinterpret_cast<uint2*>(reinterpret_cast<half_bits*>(y) + place + e) =
                make_uint2(to_halves(whole.x / by, whole.y / by), to_halves(whole.z / by, whole.w / by));
    }
}
