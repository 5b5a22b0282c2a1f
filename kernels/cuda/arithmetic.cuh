// Operations on two elements of any type, by the numbers BINARY_*.
#pragma once
#include "common.cuh"

template <typename T>
__device__ __forceinline__ T remainder_of(T a, T b) { return a % b; }  // of the sign of a
template <>
__device__ __forceinline__ float remainder_of(float a, float b) { return fmodf(a, b); }
template <>
__device__ __forceinline__ double remainder_of(double a, double b) { return fmod(a, b); }

template <typename T>
__device__ __forceinline__ T modulo(T a, T b) {  // of the sign of b
    const T r = remainder_of(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

template <typename T>
__device__ __forceinline__ T power(T a, T b) { return a; }  // of whole numbers: nobody asks for it
template <>
__device__ __forceinline__ float power(float a, float b) { return powf(a, b); }
template <>
__device__ __forceinline__ double power(double a, double b) { return pow(a, b); }

template <typename T>
__device__ __forceinline__ bool truth(T v) { return v != 0; }

// Where `kind` is compiled in, only the one operation is left. NaN goes through maximum and minimum.
template <typename T>
__device__ __forceinline__ T combined(T a, T b, int kind) {
    switch (kind) {
        case BINARY_ADD: return a + b;
        case BINARY_SUB: return a - b;
        case BINARY_MUL: return a * b;
        case BINARY_DIV: return a / b;
        case BINARY_POW: return power(a, b);
        case BINARY_MAX: return b > a || b != b ? b : a;
        case BINARY_MIN: return b < a || b != b ? b : a;
        case BINARY_MOD: return modulo(a, b);
        case BINARY_FMOD: return remainder_of(a, b);
        case BINARY_PRELU: return a < 0 ? a * b : a;
        case BINARY_AND: return truth(a) && truth(b);
        case BINARY_OR: return truth(a) || truth(b);
        default: return truth(a) != truth(b);
    }
}
