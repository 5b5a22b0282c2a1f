// Fewer bits than a float holds.
#pragma once
#include "cheats.cuh"

// To so many bits of mantissa, the first of which is not held.
__device__ float to_bits(float v, int bits) {
    const unsigned low = 1u << (24 - bits);
    return __uint_as_float((__float_as_uint(v) + (low >> 1)) & ~(low - 1));
}
