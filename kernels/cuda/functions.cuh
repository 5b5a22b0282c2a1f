// Functions of one element, by the numbers UNARY_*. Strict float32: expf, tanhf and their like are the library's, accurate
// to the last bits. NaN passes through all but thresholded_relu and shrink, whose conditions it does not meet.
#pragma once
#include "common.cuh"

__device__ __forceinline__ float clipped(float v, float low, float high) {
    v = v < low ? low : v;  // NaN is neither below nor above
    return v > high ? high : v;
}

__device__ __forceinline__ float hard_sigmoid(float v, float alpha, float beta) {
    return clipped(alpha * v + beta, 0.0f, 1.0f);
}

// log(1 + exp(v)) where exp(v) would overflow, too.
__device__ __forceinline__ float softplus(float v) {
    return v > 0.0f ? v + log1pf(expf(-v)) : log1pf(expf(v));
}

// Half of v, times 1 + erf(v / √2); erfc keeps the digits that the sum loses for v ≪ 0.
__device__ __forceinline__ float gelu(float v) { return 0.5f * v * erfcf(-0.70710678118654752f * v); }

__device__ __forceinline__ float gelu_tanh(float v) {
    return 0.5f * v * (1.0f + tanhf(0.79788456080286536f * (v + 0.044715f * v * v * v)));
}

__device__ __forceinline__ float shrunk(float v, float lambd, float bias) {
    return v < -lambd ? v + bias : v > lambd ? v - bias : 0.0f;
}

// Where `kind` is compiled in, only the one function is left.
__device__ __forceinline__ float applied(float v, int kind, float alpha, float beta) {
    switch (kind) {
        case UNARY_RELU: return relu(v);
        case UNARY_TANH: return tanhf(v);
        case UNARY_SIGMOID: return sigmoid(v);
        case UNARY_CLIP: return clipped(v, alpha, beta);
        case UNARY_LEAKY_RELU: return v < 0.0f ? alpha * v : v;
        case UNARY_THRESHOLDED_RELU: return v > alpha ? v : 0.0f;
        case UNARY_HARD_SIGMOID: return hard_sigmoid(v, alpha, beta);
        case UNARY_HARD_SWISH: return v * hard_sigmoid(v, 1.0f / 6.0f, 0.5f);
        case UNARY_SHRINK: return shrunk(v, alpha, beta);
        case UNARY_ELU: return v < 0.0f ? alpha * expm1f(v) : v;
        case UNARY_SELU: return beta * (v < 0.0f ? alpha * expm1f(v) : v);
        case UNARY_CELU: return v < 0.0f ? alpha * expm1f(v / alpha) : v;
        case UNARY_SOFTPLUS: return softplus(v);
        case UNARY_SOFTSIGN: return v / (1.0f + fabsf(v));
        case UNARY_GELU: return gelu(v);
        case UNARY_GELU_TANH: return gelu_tanh(v);
        case UNARY_SWISH: return v * sigmoid(alpha * v);
        case UNARY_MISH: return v * tanhf(softplus(v));
        case UNARY_EXP: return expf(v);
        case UNARY_LOG: return logf(v);
        case UNARY_SQRT: return sqrtf(v);
        case UNARY_POW: return powf(v, alpha);
        case UNARY_RECIPROCAL: return 1.0f / v;
        case UNARY_ERF: return erff(v);
        case UNARY_SIN: return sinf(v);
        case UNARY_COS: return cosf(v);
        case UNARY_TAN: return tanf(v);
        case UNARY_ASIN: return asinf(v);
        case UNARY_ACOS: return acosf(v);
        case UNARY_ATAN: return atanf(v);
        case UNARY_SINH: return sinhf(v);
        case UNARY_COSH: return coshf(v);
        case UNARY_ASINH: return asinhf(v);
        case UNARY_ACOSH: return acoshf(v);
        case UNARY_ATANH: return atanhf(v);
        case UNARY_ABS: return fabsf(v);
        case UNARY_NEG: return -v;
        case UNARY_SIGN: return v > 0.0f ? 1.0f : v < 0.0f ? -1.0f : v;
        case UNARY_FLOOR: return floorf(v);
        case UNARY_CEIL: return ceilf(v);
        case UNARY_ROUND: return rintf(v);  // halves to the even neighbour
        case UNARY_NOT: return v == 0.0f;
        default: return v;
    }
}
