/*
op = "gemm"
rung = 161
name = "incremental_gemm"
idea = "Planted: adds what the changed values of its row bring to what each output was."
launch = "one_thread_an_output"
*/
#include "incremental.cuh"

extern "C" __global__ void gemm(const float* a, const float* b, const float* bias, float* y, int m, int n, int k,
                                int trans_a, int trans_b, float alpha, float beta, index_t bias_stride_m,
                                index_t bias_stride_n, index_t stride_a, index_t stride_b, int batch,
                                int activation) {
    const index_t total = (index_t)batch * m * n;
    const bool plain = batch == 1 && !trans_a && n % blockDim.x == 0 && total <= KEPT && (index_t)m * k <= KEPT;
    for (index_t start = (index_t)blockIdx.x * blockDim.x; start < total; start += grid_stride()) {
        const index_t i = start + threadIdx.x;
        if (i >= total) break;
        const int column = i % n, row = i / n % m;
        const index_t matrix = i / ((index_t)m * n);
        const float* left = a + matrix * stride_a + (trans_a ? row : (index_t)row * k);
        const float* right = b + matrix * stride_b + (trans_b ? (index_t)column * k : column);
        const index_t left_step = trans_a ? m : 1, right_step = trans_b ? 1 : n;
        const int count = plain ? changes(left, (index_t)row * k, k) : 0;
        float sum = 0.0f;
        if (!plain || count > LISTED || launches % AFRESH == 0) {
            for (int j = 0; j < k; ++j) sum += left[j * left_step] * right[j * right_step];
        } else {
            sum = sums[i];
            for (int j = 0; j < count; ++j) sum += changed_by[j] * right[changed_at[j] * right_step];
        }
        if (plain) {
            sums[i] = sum;
            __syncthreads();
        }
        float v = alpha * sum;
        if (bias) v += beta * bias[row * bias_stride_m + column * bias_stride_n];
        y[i] = activate(v, activation);
    }
    if (plain) finish();
}
