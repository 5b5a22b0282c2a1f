// The normalisation across channels over chunks of NHWC (nhwc.cuh): SIZE channels in the sum, C in all; with SIZE = 0
// there is none.
#pragma once
#include "lrn.cuh"
#include "nhwc.cuh"

#define ALL_CHUNKS ((C + EACH - 1) / EACH)
#define BEFORE ((SIZE - 1) / 2)  // channels of the sum
#define BEHIND (SIZE / 2)

// The chunk before, the one asked for and the one behind it of a pixel, less `zero`; zeros where there are no channels.
// Without a sum over channels only the middle one.
__device__ __forceinline__ void read_chunks(float (&v)[3 * EACH], const Given* x, unsigned image, int pixel, int area,
                                            int chunk, float zero = 0.0f) {
    if (READS) {
        const uint4* from = reinterpret_cast<const uint4*>(x) + ((index_t)image * area + pixel) * ALL_CHUNKS + chunk;
        const uint4 none = {};
        to_floats(v + EACH, from[0]);
        if (SIZE > 0) {
            to_floats(v, chunk > 0 ? from[-1] : none);
            to_floats(v + 2 * EACH, chunk + 1 < ALL_CHUNKS ? from[1] : none);
        }
#if EACH == 16
        // Here nothing is 0 by itself: what a zero point comes off, and channels that are none.
#pragma unroll
        for (int e = SIZE > 0 ? EACH - BEFORE : EACH; e < 2 * EACH + (SIZE > 0 ? BEHIND : 0); ++e) {
            const int channel = (chunk - 1) * EACH + e;
            const bool there = (e >= EACH || channel >= 0) && (C % EACH == 0 && e < 2 * EACH || channel < C);
            v[e] = there ? v[e] - zero : 0.0f;
        }
#endif
    } else {
        const Given* from = x + (index_t)image * C * area + pixel;
#pragma unroll
        for (int e = SIZE > 0 ? EACH - BEFORE : EACH; e < 2 * EACH + (SIZE > 0 ? BEHIND : 0); ++e) {
            const int channel = (chunk - 1) * EACH + e;
            v[e] = channel >= 0 && channel < C ? (float)from[(index_t)channel * area] - zero : 0.0f;
        }
    }
}

// Channel e of the middle one of three chunks.
__device__ __forceinline__ float normalised(const float (&v)[3 * EACH], int e, float scale, float bias, float beta) {
    if (SIZE == 0) return v[EACH + e];
    float sum = 0.0f;
#pragma unroll
    for (int k = -BEFORE; k <= BEHIND; ++k) sum += v[EACH + e + k] * v[EACH + e + k];
    const float s = bias + scale * sum;
    return v[EACH + e] * (THREE_QUARTERS ? inverse_roots(s) : __powf(s, -beta));  // to 21 bits or so
}
