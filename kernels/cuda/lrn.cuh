// What the normalisations share.
#pragma once

// THREE_QUARTERS: whether that is the exponent β, as with the nets that normalise so.
#ifndef THREE_QUARTERS
#define THREE_QUARTERS 0
#endif

// s^−beta. With three quarters it is a reciprocal root times its own root: no division and no power, of which the code
// of a thread with many elements would else be made. Where s is infinite it is 0, where s is 0 infinite, as the division
// would have it.
__device__ __forceinline__ float inverse_power(float s, float beta) {
    if (!THREE_QUARTERS) return powf(s, -beta);
    float root = rsqrtf(s), its_own;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(its_own) : "f"(root));  // to 23 bits; a root of a finite float32 is no subnormal
    return root * its_own;
}
