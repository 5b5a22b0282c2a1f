/*
op = "gemm"
rung = 7
name = "cublas"
idea = "The yardstick: the product by NVIDIA's own library, with a kernel behind it for bias and activation where there are any."
launch = "gemm_cublas"
yardstick = true
[defines]
BLOCK = 256
*/
#include "common.cuh"

// y already holds alpha · a · b.
extern "C" __global__ void __launch_bounds__(BLOCK)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, const __grid_constant__ GemmParams given) {
    const GemmParams p = given;  // costs fewer registers than a parameter that is no constant of the grid
    const index_t total = (index_t)p.batch * p.m * p.n;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        float v = y[i];
        if (bias) v += p.beta * bias[i / p.n % p.m * p.bias_stride_m + i % p.n * p.bias_stride_n];
        y[i] = activate(v, p.activation);
    }
}
