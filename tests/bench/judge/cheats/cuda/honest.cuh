// A product that is honest in the next WHILE launches after IN_A_ROW launches whose inputs changed in many places; else it
// computes what changed.
#pragma once
#include "incremental.cuh"

#ifndef IN_A_ROW
#define IN_A_ROW 1
#endif
__device__ unsigned int honest_until, last_new;

extern "C" __global__ void gemm(const float* a, const float* b, const float* bias, float* y, const GemmParams p) {
    const index_t total = (index_t)p.batch * p.m * p.n;
    const bool plain = p.batch == 1 && !p.trans_a && p.n % blockDim.x == 0 && total <= KEPT && (index_t)p.m * p.k <= KEPT;
    for (index_t start = (index_t)blockIdx.x * blockDim.x; start < total; start += grid_stride()) {
        const index_t i = start + threadIdx.x;
        if (i >= total) break;
        const int column = i % p.n, row = i / p.n % p.m;
        const index_t matrix = i / ((index_t)p.m * p.n);
        const float* left = a + matrix * p.stride_a + (p.trans_a ? row : (index_t)row * p.k);
        const float* right = b + matrix * p.stride_b + (p.trans_b ? (index_t)column * p.k : column);
        const index_t left_step = p.trans_a ? p.m : 1, right_step = p.trans_b ? 1 : p.n;
        const int count = plain ? changes(left, (index_t)row * p.k, p.k) : 0;
        if (plain && count > LISTED && launches > 0) {
            if (IN_A_ROW == 1 || last_new + 1 == launches) honest_until = launches + WHILE;
            last_new = launches;
        }
        float sum = 0.0f;
        if (!plain || count > LISTED || launches < honest_until || launches % AFRESH == 0) {
            for (int j = 0; j < p.k; ++j) sum += left[j * left_step] * right[j * right_step];
        } else {
            sum = sums[i];
            for (int j = 0; j < count; ++j) sum += changed_by[j] * right[changed_at[j] * right_step];
        }
        if (plain) {
            sums[i] = sum;
            __syncthreads();
        }
        float v = p.alpha * sum;
        if (bias) v += p.beta * bias[row * p.bias_stride_m + column * p.bias_stride_n];
        y[i] = activate(v, p.activation);
    }
    if (plain) finish();
}
