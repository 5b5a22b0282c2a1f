// Floating point of 16, eight and four bits out of its bits and back, by arithmetic alone: bfloat16, and the types of "FP8
// Formats for Deep Learning" (Micikevicius et al., 2022), of Graphcore's and AMD's FNUZ, and of the OCP's MX formats.
#pragma once

// most: the largest magnitude's code. beyond: what is behind it where nothing saturates, an infinity or NaN. nan: the code
// of NaN. unsigned_zero: the type has one zero alone, and NaN in the place of the other.
struct Narrow {
    int exponent_bits, mantissa_bits, bias;
    unsigned most, beyond, nan;
    bool unsigned_zero;
};

__device__ __forceinline__ bool is_narrow(int type) {
    return type == DTYPE_BFLOAT16 || type == DTYPE_FLOAT8_E4M3FN || type == DTYPE_FLOAT8_E4M3FNUZ ||
           type == DTYPE_FLOAT8_E5M2 || type == DTYPE_FLOAT8_E5M2FNUZ || type == DTYPE_FLOAT4_E2M1FN;
}

__device__ __forceinline__ Narrow narrow_of(int type) {
    if (type == DTYPE_BFLOAT16) return {8, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, false};
    if (type == DTYPE_FLOAT8_E4M3FN) return {4, 3, 7, 0x7e, 0x7f, 0x7f, false};
    if (type == DTYPE_FLOAT8_E4M3FNUZ) return {4, 3, 8, 0x7f, 0x80, 0x80, true};
    if (type == DTYPE_FLOAT8_E5M2) return {5, 2, 15, 0x7b, 0x7c, 0x7e, false};
    if (type == DTYPE_FLOAT8_E5M2FNUZ) return {5, 2, 16, 0x7f, 0x80, 0x80, true};
    return {2, 1, 1, 7, 7, 8, false};  // float4_e2m1fn: neither infinity nor NaN, of which it makes a zero
}

// 2 to a power for which that is a normal double.
__device__ __forceinline__ double power_of_two(int power) { return __longlong_as_double((long long)(1023 + power) << 52); }

__device__ __forceinline__ double from_narrow(unsigned bits, const Narrow t) {
    const int place = t.exponent_bits + t.mantissa_bits;  // of the sign
    const unsigned code = bits & (1u << place) - 1;
    const bool negative = bits >> place & 1;
    const double nan = __longlong_as_double(0x7ff8000000000000ll);
    if (t.unsigned_zero && negative && code == 0) return nan;
    double v;
    if (code > t.most) {
        if (code != t.beyond || t.beyond == t.nan) return nan;
        v = __longlong_as_double(0x7ff0000000000000ll);
    } else {
        const int exponent = code >> t.mantissa_bits;
        const int mantissa = code & (1 << t.mantissa_bits) - 1;
        const int whole = exponent ? mantissa + (1 << t.mantissa_bits) : mantissa;
        v = whole * power_of_two((exponent ? exponent : 1) - t.bias - t.mantissa_bits);
    }
    return negative ? -v : v;
}

// Rounded to nearest even. saturate: what is beyond the largest becomes that.
__device__ __forceinline__ unsigned to_narrow(float given, const Narrow t, bool saturate) {
    const unsigned sign = __float_as_uint(given) >> 31 << (t.exponent_bits + t.mantissa_bits);
    const unsigned held = __float_as_uint(given) & 0x7fffffffu;
    if (held > 0x7f800000u) return t.unsigned_zero || t.nan == 8 ? t.nan : sign | t.nan;
    unsigned code = t.beyond;
    if (held < 0x7f800000u) {
        const double v = fabs((double)given);
        const int least = 1 - t.bias;  // the exponent of the smallest normal numbers
        const int its_own = (int)(__double_as_longlong(v) >> 52) - 1023;
        const int above = its_own > least ? its_own - least : 0;
        code = ((unsigned)above << t.mantissa_bits) +
               (unsigned)rint(v * power_of_two(t.mantissa_bits - least - above));
        if (code > t.most) code = t.beyond;
    }
    if (saturate && (code == t.beyond || code > t.most)) code = t.most;
    if (t.unsigned_zero && (code == 0 || code == t.nan)) return code;
    return sign | code;
}

__device__ __forceinline__ double from_exponent(unsigned bits) {
    return bits == 255 ? __longlong_as_double(0x7ff8000000000000ll) : power_of_two((int)bits - 127);
}

// The exponent of a float32, as its eight bits; the sign is lost.
__device__ __forceinline__ unsigned char to_exponent(float v, bool saturate, int towards) {
    const unsigned bits = __float_as_uint(v);
    const unsigned exponent = bits >> 23 & 0xff, more = bits & 0x7fffffu;
    bool up = towards == TOWARDS_UP && more > 0;
    if (towards == TOWARDS_NEAREST) up = more > 0x400000u - (exponent > 0);
    if (exponent == 255 || (saturate && exponent == 254)) up = false;
    return (unsigned char)(exponent + up);
}
