// Activations between steps as NHWC: the channels of a pixel side by side, filled up with zeros to whole chunks of 16
// bytes, EACH channels: eight in 16 bits, four in float32, rounded to TF32, or sixteen in eight bits, of X_TYPE. So every
// pixel begins on 16 bytes. A kernel that can also take them as NCHW, in float32 or in eight bits, reads and writes chunks
// through these.
#pragma once
#include "common.cuh"
#include "half.cuh"

#if EACH == 16
#if X_TYPE == DTYPE_UINT8
typedef unsigned char Given;
#else
typedef signed char Given;
#endif
typedef unsigned char Made;
__device__ __forceinline__ Made as_made(float v) { return (Made)(int)v; }  // a whole number, of either sign
#else
typedef float Given;
typedef float Made;
__device__ __forceinline__ Made as_made(float v) { return v; }
#endif

__device__ __forceinline__ int chunks_of(int channels) { return (channels + EACH - 1) / EACH; }

__device__ __forceinline__ uint4 to_chunk(const float (&v)[8]) {
    return {to_halves(v[0], v[1]), to_halves(v[2], v[3]), to_halves(v[4], v[5]), to_halves(v[6], v[7])};
}

__device__ __forceinline__ uint4 to_chunk(const float (&v)[4]) {
    return {to_tf32(v[0]), to_tf32(v[1]), to_tf32(v[2]), to_tf32(v[3])};
}

// Of whole numbers of eight bits.
__device__ __forceinline__ uint4 to_chunk(const float (&v)[16]) {
    unsigned words[4] = {};
#pragma unroll
    for (int e = 0; e < 16; ++e) words[e / 4] |= ((int)v[e] & 255) << e % 4 * 8;
    return {words[0], words[1], words[2], words[3]};
}

__device__ __forceinline__ void to_floats(float* v, uint4 chunk) {
    const unsigned words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
    for (int e = 0; e < EACH; ++e)
#if EACH == 16
        v[e] = (float)(Given)(words[e / 4] >> e % 4 * 8 & 255);
#else
        v[e] = EACH == 8 ? half_to_float((half_bits)(words[e / 2] >> e % 2 * 16)) : __uint_as_float(words[e % 4]);
#endif
}
