// float16 as its 16 bits, and float32 rounded to TF32, through instructions of their own: cuda_fp16.h would take longer
// to compile than everything else in a rung.
#pragma once

typedef unsigned short half_bits;

__device__ __forceinline__ float half_to_float(half_bits bits) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
    return v;
}

// A normal float16 and the eight bits that follow its own, which lie from a place of a word on (packing.longer).
__device__ __forceinline__ float longer_to_float(half_bits bits, unsigned word, int place) {
    const int to = 5;  // bits of a float32 behind them
    const unsigned more = place < to ? word << to - place : word >> place - to;
    return __uint_as_float(__float_as_uint(half_to_float(bits)) | (more & 0xffu << to));
}

__device__ __forceinline__ half_bits double_to_half(double v) {  // rounded once, to nearest even
    half_bits bits;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(v));
    return bits;
}

__device__ __forceinline__ unsigned to_halves(float first, float second) {  // the first in the lower half
    unsigned bits;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
    return bits;
}

__device__ __forceinline__ unsigned to_tf32(float v) {  // rounded to 10 bits behind the point
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
    return bits;
}
