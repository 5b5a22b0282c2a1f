// What the normalisations share.
#pragma once

// THREE_QUARTERS: whether that is the exponent β, as with the nets that normalise so, of sums that are never subnormal.
#ifndef THREE_QUARTERS
#define THREE_QUARTERS 0
#endif

// s^−3/4 is a reciprocal root times its own root, to 21 bits or so: no division and no power, of which the code of a thread
// with many elements would else be made. Where s is infinite it is 0.
__device__ __forceinline__ float inverse_roots(float s) {
    float root, its_own;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(s));
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(its_own) : "f"(root));
    return root * its_own;
}

// s^−beta.
__device__ __forceinline__ float inverse_power(float s, float beta) {
    return THREE_QUARTERS ? inverse_roots(s) : powf(s, -beta);
}
