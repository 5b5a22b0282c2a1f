// Numbers of 16 bits, and float32 rounded to TF32, through instructions of their own: cuda_fp16.h would take longer to
// compile than everything else in a rung. They are float16, or bfloat16 where a rung is compiled with BF16 = 1: what tensor
// cores take of either lies in the same way and goes at the same rate.
#pragma once

#ifndef BF16
#define BF16 0
#endif
#if BF16
#define HALF_TYPE ".bf16"  // in the name of an instruction
#else
#define HALF_TYPE ".f16"
#endif

typedef unsigned short half_bits;

__device__ __forceinline__ float half_to_float(half_bits bits) {
#if BF16
    return __uint_as_float((unsigned)bits << 16);  // the upper half of a float32
#else
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
    return v;
#endif
}

// A normal float16, never bfloat16, and the eight bits that follow its own, which lie from a place of a word on (packing.longer).
__device__ __forceinline__ float longer_to_float(half_bits bits, unsigned word, int place) {
    const int to = 5;  // bits of a float32 behind them
    const unsigned more = place < to ? word << to - place : word >> place - to;
    return __uint_as_float(__float_as_uint(half_to_float(bits)) | (more & 0xffu << to));
}

__device__ __forceinline__ half_bits double_to_half(double v) {  // float16, rounded once, to nearest even
    half_bits bits;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(v));
    return bits;
}

// Rounded to nearest even, the first in the lower half.
__device__ __forceinline__ unsigned to_halves(float first, float second) {
#if __CUDA_ARCH__ >= 800
    unsigned bits;
    asm("cvt.rn" HALF_TYPE "x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
    return bits;
#elif !BF16  // older devices round one at a time
    auto rounded = [](float v) {
        half_bits bits;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
        return (unsigned)bits;
    };
    return rounded(second) << 16 | rounded(first);
#else        // and have no instruction for it
    auto upper = [](float v) {
        const unsigned bits = __float_as_uint(v);
        return v != v ? 0x7fffu : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    };
    return upper(second) << 16 | upper(first);
#endif
}

__device__ __forceinline__ unsigned to_tf32(float v) {  // rounded to 10 bits behind the point
#if __CUDA_ARCH__ >= 800
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
    return bits;
#else
    const unsigned bits = __float_as_uint(v);
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;  // halves away from zero
#endif
}
