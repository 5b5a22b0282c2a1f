// Where the operands of attention lie, and what becomes of a score before it is a weight.
#pragma once

// Elements from one image, head and row to the next. The second and third axes are in the other order where the bit
// of p.swapped is set that is the operand's number: q, k, v, y. With the bit PACKED the first three lie side by side in
// the rows of one tensor.
#define PACKED 16

struct Heads {
    index_t image, head, row;
};

__device__ __forceinline__ Heads heads_of(const AttentionParams& p, int operand) {
    const index_t heads = operand == 1 || operand == 2 ? p.kv_heads : p.heads;
    const index_t rows = operand == 1 || operand == 2 ? p.keys : p.queries;
    const index_t elements = operand >= 2 ? p.depth_v : p.depth;
    const bool swapped = p.swapped >> operand & 1;
    Heads of;
    of.image = heads * rows * elements;
    of.head = swapped ? elements : rows * elements;
    of.row = swapped ? heads * elements : elements;
    if (p.swapped & PACKED && operand < 3) {
        of.row = p.heads * p.depth + p.kv_heads * (p.depth + p.depth_v);
        of.image = rows * of.row;
    }
    return of;
}

// Of one tensor that q, k and v lie in, where each of them begins. What comes behind it comes as k then: the mask.
__device__ __forceinline__ void unpack(const float* __restrict__& q, const float* __restrict__& k,
                                       const float* __restrict__& v, const float* __restrict__& mask,
                                       const AttentionParams& p) {
    if (!(p.swapped & PACKED)) return;
    mask = k;
    k = q + p.heads * p.depth;
    v = k + p.kv_heads * p.depth;
}

// The score of a query and a key from their product: scaled, capped, masked. mask: of the image and head, or null.
__device__ __forceinline__ float score_of(float product, int query, int key, const float* mask,
                                          const AttentionParams& p) {
    float s = product * p.scale;
    if (p.softcap > 0.0f) s = p.softcap * tanhf(s / p.softcap);
    if (mask) s += mask[query * p.mask_query + key * p.mask_key];
    const int away = key - query;
    return away < p.earliest || away > p.latest ? s + minus_infinity() : s;
}

// What is subtracted from scores of which this is the largest: nothing where all of them are -infinity.
__device__ __forceinline__ float base_of(float largest) { return largest == minus_infinity() ? 0.0f : largest; }

// What a query's sum is divided by.
__device__ __forceinline__ float divisor(float weights, const AttentionParams& p) {
    return p.guarded && weights == 0.0f ? 1.0f : weights;
}
