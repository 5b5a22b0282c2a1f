// Float32 as the sum of two float16, `big` and `small`: 22 bits of it; or as the big one alone, which has as many bits as
// TF32. So that none is too large for float16, and few are so small that bits are lost, numbers are first multiplied by a
// power of two, chosen by the largest of them.
#pragma once
#include "half.cuh"
#include "warp.cuh"

#define LARGEST_EXPONENT 14  // of the largest number by then: it lies in [2^14, 2^15)

// Of the largest finite magnitude of some numbers, the power of two that they are multiplied by, as its exponent's bits.
__device__ __forceinline__ unsigned scale_bits(float largest) {
    const int bits = 2 * 127 + LARGEST_EXPONENT - (int)(__float_as_uint(largest) >> 23);
    return largest > 0.0f ? (unsigned)(bits < 253 ? bits : 253) : 127u;
}
__device__ __forceinline__ float scale_by(float largest) { return __uint_as_float(scale_bits(largest) << 23); }
// And what brings a sum of such numbers back.
__device__ __forceinline__ float scale_back(float largest) { return __uint_as_float(254u - scale_bits(largest) << 23); }

// The magnitude of a finite number, else 0: what is not finite has no say in the others' scale.
__device__ __forceinline__ float finite_magnitude(float v) {
    const float magnitude = fabsf(v);
    return magnitude < __uint_as_float(0x7f800000u) ? magnitude : 0.0f;
}

// Eight numbers as two chunks of float16.
__device__ __forceinline__ void split_chunk(const float (&v)[8], float scale, uint4& big, uint4& small) {
    unsigned high[4], low[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const float first = v[2 * e] * scale, second = v[2 * e + 1] * scale;
        high[e] = to_halves(first, second);
        low[e] = to_halves(first - half_to_float((half_bits)high[e]), second - half_to_float((half_bits)(high[e] >> 16)));
    }
    big = {high[0], high[1], high[2], high[3]};
    small = {low[0], low[1], low[2], low[3]};
}

// Eight numbers where they are to lie; of sums of two (OPERANDS) the small ones so many chunks behind the big ones.
__device__ __forceinline__ void put_scaled(const float (&v)[8], float scale, uint4* to, int beside) {
#if OPERANDS > 1
    split_chunk(v, scale, to[0], to[beside]);
#else
    *to = {to_halves(v[0] * scale, v[1] * scale), to_halves(v[2] * scale, v[3] * scale),
           to_halves(v[4] * scale, v[5] * scale), to_halves(v[6] * scale, v[7] * scale)};
#endif
}

// The largest of what the threads of a block have; every thread calls it, and the first of them is told.
__device__ __forceinline__ float largest_of_block(float v) {
    __shared__ float of_warp[LANES];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) v = fmaxf(v, __shfl_xor_sync(ALL_LANES, v, d));
    if (lane == 0) of_warp[warp] = v;
    __syncthreads();
    v = lane < (blockDim.x + LANES - 1) / LANES ? of_warp[lane] : 0.0f;
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) v = fmaxf(v, __shfl_xor_sync(ALL_LANES, v, d));
    return v;
}
