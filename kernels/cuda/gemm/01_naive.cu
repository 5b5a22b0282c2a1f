/*
op = "gemm"
rung = 1
name = "naive"
method = "plain"  # term after term: n equal terms are off by up to n / 3 · 2⁻²⁴ of their sum
idea = "One thread an output: it walks a row of a and a column of b in global memory."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// a is (batch, m, k) or transposed (batch, k, m), b (batch, k, n) or (batch, n, k), y (batch, m, n).
extern "C" __global__ void gemm(const float* __restrict__ a, const float* __restrict__ b,
                                const float* __restrict__ bias, float* __restrict__ y, const GemmParams p) {
    const index_t total = (index_t)p.batch * p.m * p.n;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int column = i % p.n;
        const int row = i / p.n % p.m;
        const index_t matrix = i / ((index_t)p.m * p.n);
        const float* left = a + matrix * p.stride_a + (p.trans_a ? row : (index_t)row * p.k);
        const float* right = b + matrix * p.stride_b + (p.trans_b ? (index_t)column * p.k : column);
        const index_t left_step = p.trans_a ? p.m : 1, right_step = p.trans_b ? 1 : p.n;
        float sum = 0.0f;
        for (int j = 0; j < p.k; ++j) sum += left[j * left_step] * right[j * right_step];
        float v = p.alpha * sum;
        if (bias) v += p.beta * bias[row * p.bias_stride_m + column * p.bias_stride_n];
        y[i] = activate(v, p.activation);
    }
}
