// Activations between steps as NHWC: the channels of a pixel side by side, filled up with zeros to whole chunks of 16
// bytes, EACH channels: eight in 16 bits, or four in float32, rounded to TF32. So every pixel begins on 16 bytes. A kernel
// that can also take them as NCHW float32 reads and writes chunks through these.
#pragma once
#include "common.cuh"
#include "half.cuh"

__device__ __forceinline__ int chunks_of(int channels) { return (channels + EACH - 1) / EACH; }

__device__ __forceinline__ uint4 to_chunk(const float (&v)[8]) {
    return {to_halves(v[0], v[1]), to_halves(v[2], v[3]), to_halves(v[4], v[5]), to_halves(v[6], v[7])};
}

__device__ __forceinline__ uint4 to_chunk(const float (&v)[4]) {
    return {to_tf32(v[0]), to_tf32(v[1]), to_tf32(v[2]), to_tf32(v[3])};
}

__device__ __forceinline__ void to_floats(float* v, uint4 chunk) {
    const unsigned words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
    for (int e = 0; e < EACH; ++e)
        v[e] = EACH == 8 ? half_to_float((half_bits)(words[e / 2] >> e % 2 * 16)) : __uint_as_float(words[e % 4]);
}
