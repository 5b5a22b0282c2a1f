// How the sums of a chunk of a product become y in the element type of the product, in the rung's Kind (mma.cuh).
#pragma once
#include "common.cuh"

// The sums of a chunk of columns from c on, as they become y; zeros behind the last column.
__device__ __forceinline__ void write_chunk(const float* sums, const float* bias, float* y, int r, int c,
                                            const GemmParams& p) {
    float v[Kind::CHUNK];
    if (p.n % Kind::CHUNK == 0 && (!bias || (p.bias_stride_m == 0 && p.bias_stride_n == 1))) {
#pragma unroll
        for (int e = 0; e < Kind::CHUNK; e += 4) {
            const float4 shift =
                bias ? *reinterpret_cast<const float4*>(bias + c + e) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            const float of[4] = {shift.x, shift.y, shift.z, shift.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
                v[e + i] = activate(p.alpha * sums[e + i] + p.beta * of[i], p.activation);
        }
    } else {
#pragma unroll
        for (int e = 0; e < Kind::CHUNK; ++e) {
            v[e] = 0.0f;
            if (c + e >= p.n) continue;
            v[e] = p.alpha * sums[e];
            if (bias) v[e] += p.beta * bias[r * p.bias_stride_m + (c + e) * p.bias_stride_n];
            v[e] = activate(v[e], p.activation);
        }
    }
    const int chunks = (p.n + Kind::CHUNK - 1) / Kind::CHUNK;
    reinterpret_cast<uint4*>(y)[(index_t)r * chunks + c / Kind::CHUNK] = Kind::chunk(v);
}
