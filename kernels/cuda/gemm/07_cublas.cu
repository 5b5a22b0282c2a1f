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
         float* __restrict__ y, int m, int n, int k, int trans_a, int trans_b, float alpha, float beta,
         index_t bias_stride_m, index_t bias_stride_n, index_t stride_a, index_t stride_b, int batch,
         int activation) {
    const index_t total = (index_t)batch * m * n;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        float v = y[i];
        if (bias) v += beta * bias[i / n % m * bias_stride_m + i % n * bias_stride_n];
        y[i] = activate(v, activation);
    }
}
