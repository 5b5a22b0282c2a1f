// What the normalisations share.
#pragma once

// s^−beta. Three quarters, the exponent of the nets that normalise so, is a reciprocal root times its own root:
// no division and no power. Where s is infinite it is 0, where s is 0 infinite, as the division would have it.
__device__ __forceinline__ float inverse_power(float s, float beta) {
    if (beta != 0.75f) return powf(s, -beta);
    const float root = rsqrtf(s);
    return root * sqrtf(root);
}
