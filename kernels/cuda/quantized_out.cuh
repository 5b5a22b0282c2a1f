// What becomes of the sums of a product of eight-bit numbers, of which a thread has many: as finish of quantized.cuh says
// it, most of it in float32. In eight bits q = sum · a + b is rounded there wherever its error cannot reach a tie; what is
// too near one is worked out as there, in double precision. So the answer is the same.
//
// TO is the type of y. zero points come off behind the sums: Σ (x − x0) (w − w0) = Σ x w − x0 Σ w − w0 Σ x + k x0 w0.
#pragma once
#include "quantized.cuh"

#define TO_BYTES (TO == DTYPE_UINT8 || TO == DTYPE_INT8)
#if TO_BYTES
typedef unsigned char Answer;
#else
typedef int Answer;  // or float32, by its bits
#endif

// What a column of a product is worked out with.
struct __align__(8) Column {
    float a, b, error_a, error_b;  // the last two: how far q may be off, for each of |sum| and for itself
    int less, own;                 // what is added to each sum; what the sum of a row of x counts
};

// sums: of the column's weights; terms: numbers of a sum; x_zero, own: the zero points.
template <class P>
__device__ __forceinline__ Column column_of(const P& p, int channel, int sums, int terms, int x_zero, int own,
                                            const int* bias, const double* scale, const double* shift) {
    Column c;
    c.less = terms * x_zero * own - x_zero * sums;
    c.own = own;
    c.a = c.b = c.error_a = c.error_b = 0.0f;
    if (TO_BYTES) {
        const double step = (double)p.out_scale, more = shift ? shift[channel] : 0.0;
        const double a = scale[channel] / step, of_bias = (double)bias[channel] * scale[channel];
        const double b = (of_bias + more) / step;
        c.a = (float)a, c.b = (float)b;
        // float32 rounds sum, a, b and q to 24 bits; double precision what b is made of to 53.
        c.error_a = fabsf(c.a) * 0x1p-22f;
        c.error_b = fabsf(c.b) * 0x1p-22f + (float)((fabs(of_bias) + fabs(more)) / step * 0x1p-48) + 0x1p-40f;
    }
    return c;
}

// In double precision, as finish has it: before it is rounded.
template <class P>
__device__ __forceinline__ double exact(const P& p, int sum, int channel, const int* bias, const double* scale,
                                        const double* shift) {
    const double real = ((double)sum + (double)bias[channel]) * scale[channel];
    return shift ? real + shift[channel] : real;
}

// The answers out of the sums of four neighbours, `channel` and those behind it, of which `real` exist, as they lie in y;
// the others are 0.
template <class P>
__device__ __forceinline__ void answer(const P& p, const int (&sums)[4], const Column (&columns)[4], int channel, int real,
                                       const int* bias, const double* scale, const double* shift, Answer (&v)[4]) {
#if TO_BYTES
    // Added to so large a number, q is rounded to a whole one, halves to even, which stands in the last bits.
    const float magic = 0x1.8p23f;
    int whole[4];
    bool certain = true;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const Column& c = columns[e];
        const float wide = (float)(sums[e] + c.less), q = fmaf(wide, c.a, c.b), moved = q + magic;
        whole[e] = __float_as_int(moved) - (__float_as_int(magic) - p.out_zero);
        // Not where anything is NaN, or q is beyond these bits.
        certain = certain && fabsf(q - (moved - magic)) + fmaf(fabsf(wide), c.error_a, c.error_b) < 0.5f;
    }
    if (__builtin_expect(!certain, 0)) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            if (e >= real) continue;
            const double of = exact(p, sums[e] + columns[e].less, channel + e, bias, scale, shift);
            const double q = rint(of / (double)p.out_scale) + (double)p.out_zero;
            whole[e] = (int)(q < p.low ? p.low : q > p.high ? p.high : q);
        }
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int held = whole[e] < p.low ? p.low : whole[e] > p.high ? p.high : whole[e];
        v[e] = (Answer)(e < real ? held : 0);
    }
#else
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int sum = sums[e] + columns[e].less;
        if (TO != DTYPE_FLOAT32) v[e] = sum;
        else v[e] = e < real ? __float_as_int((float)exact(p, sum, channel + e, bias, scale, shift)) : 0;
    }
#endif
}
