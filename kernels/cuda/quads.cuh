// Four neighbours of an operand along the last axis of y, in one access of 16 bytes where they are four, and one number
// four times where the operand is broadcast along it.
#pragma once

__device__ __forceinline__ float4 four(const float* __restrict__ from, int step) {
    if (step) return *reinterpret_cast<const float4*>(from);
    const float v = *from;
    return make_float4(v, v, v, v);
}
