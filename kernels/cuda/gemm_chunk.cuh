// How the sums of a chunk of a product become y in the element type of the product, in the rung's Kind (mma.cuh).
#pragma once
#include "common.cuh"

// The sums of a chunk of columns from c on, as they become y; zeros behind the last column.
__device__ __forceinline__ void write_chunk(const float* sums, const float* bias, float* y, int r, int c,
                                            const GemmParams& p) {
    float v[Kind::CHUNK];
#pragma unroll
    for (int e = 0; e < Kind::CHUNK; ++e) {
        v[e] = 0.0f;
        if (c + e >= p.n) continue;
        v[e] = p.alpha * sums[e];
        if (bias) v[e] += p.beta * bias[r * p.bias_stride_m + (c + e) * p.bias_stride_n];
        v[e] = activate(v[e], p.activation);
    }
    const int chunks = (p.n + Kind::CHUNK - 1) / Kind::CHUNK;
    reinterpret_cast<uint4*>(y)[(index_t)r * chunks + c / Kind::CHUNK] = Kind::chunk(v);
}
