/*
op = "quantize"
rung = 2
name = "quads"
idea = "Four elements a thread, read and written at once; the quotient is a product with the reciprocal wherever its error cannot reach half-way between two steps, and else a division."
launch = "quantize_quads"
overlaps = true
[defines]
BLOCK = 256
FROM = 0     # the types of x and y: the launch sets them
TO = 1
[needs]
dtype = ["float32", "uint8", "int8", "int32"]
to = ["float32", "uint8", "int8"]
*/
#include "common.cuh"
#include "overlap.cuh"

#if FROM == DTYPE_UINT8
typedef unsigned char Given;
#elif FROM == DTYPE_INT8
typedef signed char Given;
#elif FROM == DTYPE_INT32
typedef int Given;
#else
typedef float Given;
#endif
#if TO == DTYPE_UINT8
typedef unsigned char Made;
#elif TO == DTYPE_INT8
typedef signed char Made;
#else
typedef float Made;
#endif

template <class T>
struct __align__(4 * sizeof(T)) Four {
    T v[4];
};

__device__ __forceinline__ Made brought(Given given, float scale, float reciprocal, float zero, const QuantizeParams& p) {
    float v = given;
    if (FROM == DTYPE_FLOAT32) {
        float q = v * reciprocal, whole = rintf(q);  // halves to even
        // Three roundings of 24 bits, fewer of a subnormal reciprocal; NaN and what is infinite take the division, too.
        if (!(fabsf(q - whole) + fabsf(q) * 0x1p-20f < 0.5f)) whole = rintf(v / scale);
        v = whole + zero;
        v = v < p.low ? p.low : v > p.high ? p.high : v;  // NaN stays what it is
    }
    if (TO == DTYPE_FLOAT32) return (Made)((v - zero) * scale);
    return (Made)(int)v;
}

// x and y are (outer, channels, inner), scale and zero (channels,). Four neighbours are of one channel.
extern "C" __global__ void __launch_bounds__(BLOCK)
    quantize(const void* __restrict__ x, const float* __restrict__ scale, const float* __restrict__ zero,
             void* __restrict__ y, const QuantizeParams p) {
    let_next_begin();
    wait_for_previous();
    const Given* from = reinterpret_cast<const Given*>(written(x));
    Made* to = reinterpret_cast<Made*>(y);
    scale = written(scale);
    zero = written(zero);
    for (index_t i = 4 * first_element(); i < p.size; i += 4 * grid_stride()) {
        const int c = p.channels == 1 ? 0 : i / p.inner % p.channels;
        const float its_scale = scale[c], its_zero = zero[c], reciprocal = 1.0f / its_scale;
        if (i + 4 <= p.size) {
            const Four<Given> four = *reinterpret_cast<const Four<Given>*>(from + i);
            Four<Made> made;
#pragma unroll
            for (int e = 0; e < 4; ++e) made.v[e] = brought(four.v[e], its_scale, reciprocal, its_zero, p);
            *reinterpret_cast<Four<Made>*>(to + i) = made;
        } else {
            for (index_t e = i; e < p.size; ++e) to[e] = brought(from[e], its_scale, reciprocal, its_zero, p);
        }
    }
}
