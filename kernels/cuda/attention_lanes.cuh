// What a warp has of 16 queries whose two products the tensor cores do in 16 bits: scores of TILE keys, and what is summed
// of their values.
//
// The sums of a tensor core do not depend on which element of a key it calls the first, nor on which element of a value
// stands in which column. So a lane takes four neighbours where the instruction's own order has two and two, and reads
// them at once. Keys and values are float32, or with READS 16 bits: then q, k and v lie packed in rows, which are filled up
// to whole chunks of eight elements as those of images of one pixel (nhwc.cuh). With WRITES, so does y. The softmax is kept
// up as in FlashAttention-2 (Dao 2023).
#pragma once
#include "common.cuh"
#include "attention.cuh"
#include "attention_by_warp.cuh"
#include "mma_sync.cuh"

#define ROWS 16  // queries of a warp
#define TILE 32  // keys of a warp at a time
#define ALL 0xffffffffu
#define STEPS (DEPTH / 16)  // instructions that a score takes
#define QUARTERS (DEPTH_V / 32)
#define LOG2_E 1.4426950408889634f

// Two and two elements of a row from e on, as an instruction takes them. Beyond the last ones these are read again: queries
// have zeros there, and sums of what is no element of a value are not written. A choice of some lanes would be worse: the
// compiler makes a branch of it, and carries that on through instructions that all lanes have to meet together.
#if READS
typedef half_bits number;

__device__ __forceinline__ uint2 pairs(const number* row, int e, int elements) {
    return *reinterpret_cast<const uint2*>(row + min(e, elements - 4));
}

// Four elements of two rows, each with the one below it.
__device__ __forceinline__ uint4 columns(const number* above, const number* below, int e, int elements) {
    const uint2 a = pairs(above, e, elements), b = pairs(below, e, elements);
    return {(a.x & 0xffffu) | b.x << 16, a.x >> 16 | (b.x & 0xffff0000u), (a.y & 0xffffu) | b.y << 16,
            a.y >> 16 | (b.y & 0xffff0000u)};
}
#else
typedef float number;

__device__ __forceinline__ float4 four_from(const number* row, int e, int elements) {
    if (ALIGNED) return *reinterpret_cast<const float4*>(row + min(e, elements - 4));
    const int last = elements - 1;
    return make_float4(row[min(e, last)], row[min(e + 1, last)], row[min(e + 2, last)], row[min(e + 3, last)]);
}

__device__ __forceinline__ uint2 pairs(const number* row, int e, int elements) {
    const float4 a = four_from(row, e, elements);
    return {to_halves(a.x, a.y), to_halves(a.z, a.w)};
}

__device__ __forceinline__ uint4 columns(const number* above, const number* below, int e, int elements) {
    const float4 a = four_from(above, e, elements), b = four_from(below, e, elements);
    return {to_halves(a.x, b.x), to_halves(a.y, b.y), to_halves(a.z, b.z), to_halves(a.w, b.w)};
}
#endif

// The inputs of an image and a head, and how far apart their rows lie.
struct Inputs {
    const number *queries, *keys, *values;
    const float* mask;
    index_t row_q, row_k, row_v;
};

__device__ __forceinline__ Inputs inputs_of(const float* q, const float* k, const float* v, const float* mask,
                                            index_t image, int head, const AttentionParams& p) {
    const int shared = head / (p.heads / p.kv_heads);
    Heads of_q = heads_of(p, 0), of_k = heads_of(p, 1), of_v = heads_of(p, 2);
#if READS
    mask = k;
    of_q.row = of_k.row = of_v.row = (of_q.row + 7) / 8 * 8;
    of_q.image = of_k.image = of_v.image = p.queries * of_q.row;
    const number* first_q = reinterpret_cast<const number*>(q);
    const number* first_k = first_q + p.heads * p.depth;
    const number* first_v = first_k + p.kv_heads * p.depth;
#else
    unpack(q, k, v, mask, p);
    const number *first_q = q, *first_k = k, *first_v = v;
#endif
    return {first_q + image * of_q.image + head * of_q.head,
            first_k + image * of_k.image + shared * of_k.head,
            first_v + image * of_v.image + shared * of_v.head,
            mask ? mask + image * p.mask_image + head * p.mask_head : mask,
            of_q.row,
            of_k.row,
            of_v.row};
}

__device__ __forceinline__ float power_of_two(float v) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));
    return y;
}

// e to a score minus the largest, which is at most 1: right to about 1e-6 of it, a thousandth of what float16 rounds.
__device__ __forceinline__ float weight_of(float score, float base) { return power_of_two((score - base) * LOG2_E); }

// The bits of two numbers of which so many count.
__device__ __forceinline__ unsigned kept(int count) { return count > 1 ? 0xffffffffu : count > 0 ? 0xffffu : 0u; }

struct Sixteen {
    uint4 own[STEPS];  // of the queries
    float sum[DEPTH_V / 8][4] = {};
    float largest[2] = {minus_infinity(), minus_infinity()}, weights[2] = {};
    const int line = threadIdx.x % 32 / 4, pair = threadIdx.x % 4;
    const int top;  // this lane's first query; its second is eight below

    __device__ __forceinline__ Sixteen(int first, const Inputs& of, const AttentionParams& p)
        : top(first + threadIdx.x % 32 / 4) {
#pragma unroll
        for (int s = 0; s < STEPS; ++s) {
            const int e = 16 * s + 4 * pair;
            const uint2 a = pairs(of.queries + min(top, p.queries - 1) * of.row_q, e, p.depth);
            const uint2 b = pairs(of.queries + min(top + 8, p.queries - 1) * of.row_q, e, p.depth);
            // Pairs that have one element or none, as bits to keep.
            const unsigned near = kept(p.depth - e), far = kept(p.depth - e - 2);
            own[s] = {a.x & near, b.x & near, a.y & far, b.y & far};
        }
    }

    // The keys from `first` on. key(j, e): of the one j behind it, two and two elements from e on; value(j, e): four elements of
    // the values j and j + 1 behind it, in pairs.
    template <class Key, class Value>
    __device__ __forceinline__ void add(int first, const float* mask, const AttentionParams& p, Key key, Value value) {
        float score[TILE / 8][4] = {};  // of both queries, two neighbouring keys each
#pragma unroll
        for (int j = 0; j < TILE / 8; ++j)
#pragma unroll
            for (int s = 0; s < STEPS; ++s) {
                const uint2 a = key(8 * j + line, 16 * s + 4 * pair);
                mma_half(score[j], own[s], a.x, a.y);
            }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = min(top + 8 * h, p.queries - 1);  // what is beyond is worked out and left
            float now = largest[h];
#pragma unroll
            for (int j = 0; j < TILE / 8; ++j)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int at = first + 8 * j + 2 * pair + i;
                    float& one = score[j][2 * h + i];
                    one = at < p.keys ? score_of(one, row, at, mask, p) : minus_infinity();
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
#pragma unroll
            for (int n = 0; n < QUARTERS; ++n) {
                const int e = 32 * n + 4 * line;
                const uint4 above = value(16 * b + 2 * pair, e), below = value(16 * b + 2 * pair + 8, e);
                mma_half(sum[4 * n], left, above.x, below.x);
                mma_half(sum[4 * n + 1], left, above.y, below.y);
                mma_half(sum[4 * n + 2], left, above.z, below.z);
                mma_half(sum[4 * n + 3], left, above.w, below.w);
            }
        }
    }

    // The weights of all lanes of a query.
    __device__ __forceinline__ void add_weights() {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            weights[h] += __shfl_xor_sync(ALL, weights[h], 1);
            weights[h] += __shfl_xor_sync(ALL, weights[h], 2);
        }
    }

    // Of query h (0 or 1) of this lane, which has column i (0 or 1) of two in each eight: four elements of quarter n.
    __device__ __forceinline__ float4 four_of(int h, int n, int i) const {
        return make_float4(sum[4 * n][2 * h + i], sum[4 * n + 1][2 * h + i], sum[4 * n + 2][2 * h + i],
                           sum[4 * n + 3][2 * h + i]);
    }
    __device__ __forceinline__ int element_of(int n, int i) const { return 32 * n + 4 * (2 * pair + i); }

    // Writes what the lane has: the sums are whole.
    __device__ __forceinline__ void write(float* y, const Heads& of_y, index_t image, int head,
                                          const AttentionParams& p) const;
};

// Elements e to e + 3 of a query's answer.
__device__ __forceinline__ void write_four(float* y, const Heads& of_y, index_t image, int head, int query, int e,
                                           float4 whole, float total, const AttentionParams& p) {
    if (query >= p.queries) return;
    const float by = divisor(total, p);
    const index_t place = image * of_y.image + head * of_y.head + query * of_y.row;
    if (!WRITES)
        give(y + place, e, whole, by, p.depth_v);
    else if (e < p.depth_v)  // of eights a row: nothing to fill up
        *reinterpret_cast<uint2*>(reinterpret_cast<half_bits*>(y) + place + e) =
            make_uint2(to_halves(whole.x / by, whole.y / by), to_halves(whole.z / by, whole.w / by));
}

__device__ __forceinline__ void Sixteen::write(float* y, const Heads& of_y, index_t image, int head,
                                               const AttentionParams& p) const {
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int n = 0; n < QUARTERS; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i)
                write_four(y, of_y, image, head, top + 8 * h, element_of(n, i), four_of(h, n, i), weights[h], p);
}
