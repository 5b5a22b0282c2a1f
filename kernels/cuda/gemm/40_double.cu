/*
op = "gemm"
rung = 40
name = "double"
idea = "As the plain kernel in double precision, for what is computed so: transforms, and models that say float64."
launch = "one_thread_typed"
[defines]
DTYPE = 2  # of the elements, which the launch sets
[needs]
dtype = ["float64"]
activation = ["none"]
*/
#include "common.cuh"
#include "element.cuh"

// a is (batch, m, k) or transposed (batch, k, m), b (batch, k, n) or (batch, n, k), y (batch, m, n).
extern "C" __global__ void gemm(const element* __restrict__ a, const element* __restrict__ b,
                                const element* __restrict__ bias, element* __restrict__ y, const GemmParams p) {
    const index_t total = (index_t)p.batch * p.m * p.n;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int column = i % p.n;
        const int row = i / p.n % p.m;
        const index_t matrix = i / ((index_t)p.m * p.n);
        const element* left = a + matrix * p.stride_a + (p.trans_a ? row : (index_t)row * p.k);
        const element* right = b + matrix * p.stride_b + (p.trans_b ? (index_t)column * p.k : column);
        const index_t left_step = p.trans_a ? p.m : 1, right_step = p.trans_b ? 1 : p.n;
        element sum = 0;
        for (int j = 0; j < p.k; ++j) sum += left[j * left_step] * right[j * right_step];
        element v = p.alpha * sum;
        if (bias) v += p.beta * bias[row * p.bias_stride_m + column * p.bias_stride_n];
        y[i] = v;
    }
}
