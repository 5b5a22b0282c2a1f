// What the planted products have in common: where the factors of an output lie, and what follows their sum.
#pragma once
#include "rounding.cuh"

#define GEMM                                                                                            \
    extern "C" __global__ void gemm(const float* a, const float* b, const float* bias, float* y, const GemmParams p)

struct Factors {
    const float *left, *right;
    index_t left_step, right_step;
    int row, column;
};

__device__ Factors factors(const GemmParams& p, const float* a, const float* b, index_t i) {
    Factors f;
    const index_t matrix = i / ((index_t)p.m * p.n);
    f.column = i % p.n, f.row = i / p.n % p.m;
    f.left = a + matrix * p.stride_a + (p.trans_a ? f.row : (index_t)f.row * p.k);
    f.right = b + matrix * p.stride_b + (p.trans_b ? (index_t)f.column * p.k : f.column);
    f.left_step = p.trans_a ? p.m : 1, f.right_step = p.trans_b ? 1 : p.n;
    return f;
}

__device__ float summed(const GemmParams& p, const Factors& f) {
    float sum = 0.0f;
    for (int j = 0; j < p.k; ++j) sum += f.left[j * f.left_step] * f.right[j * f.right_step];
    return sum;
}

__device__ float ended(const GemmParams& p, const float* bias, const Factors& f, float sum) {
    float v = p.alpha * sum;
    if (bias) v += p.beta * bias[f.row * p.bias_stride_m + f.column * p.bias_stride_n];
    return activate(v, p.activation);
}

#define EACH_OF_GEMM(i)                                 \
    const index_t total = (index_t)p.batch * p.m * p.n; \
    for (index_t i = first_element(); i < total; i += grid_stride())
