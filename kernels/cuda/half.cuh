// float16 as its 16 bits, through two instructions of its own: cuda_fp16.h would take longer to compile than
// everything else in a rung.
#pragma once

typedef unsigned short half_bits;

__device__ __forceinline__ float half_to_float(half_bits bits) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
    return v;
}

__device__ __forceinline__ half_bits double_to_half(double v) {  // rounded once, to nearest even
    half_bits bits;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(v));
    return bits;
}
