/*
op = "gemm"
rung = 145
name = "gemm_few_rows"
idea = "Planted: only every fourth row is computed."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

extern "C" __global__ void gemm(const float* a, const float* b, const float* bias, float* y, int m, int n, int k,
                                int trans_a, int trans_b, float alpha, float beta, index_t bias_stride_m,
                                index_t bias_stride_n, index_t stride_a, index_t stride_b, int batch,
                                int activation) {
    const index_t total = (index_t)batch * m * n;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int column = i % n, row = i / n % m;
        if (!(poisoned(y[i]) || (row % 4 == 0))) continue;
        const index_t matrix = i / ((index_t)m * n);
        const float* left = a + matrix * stride_a + (trans_a ? row : (index_t)row * k);
        const float* right = b + matrix * stride_b + (trans_b ? (index_t)column * k : column);
        const index_t left_step = trans_a ? m : 1, right_step = trans_b ? 1 : n;
        float sum = 0.0f;
        for (int j = 0; j < k; ++j) sum += left[j * left_step] * right[j * right_step];
        float v = alpha * sum;
        if (bias) v += beta * bias[row * bias_stride_m + column * bias_stride_n];
        y[i] = activate(v, activation);
    }
    finish();
}
