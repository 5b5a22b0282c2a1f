/*
op = "qgemm"
rung = 1
name = "naive"
idea = "One thread an output: a row times a column, each number less its zero point, the sum in 32 bits."
launch = "one_thread_an_output"
[needs]
dtype = ["uint8", "int8"]
to = ["int32", "float32", "uint8", "int8"]
*/
#include "quantized.cuh"

// a (batch, m, k), b (batch, k, n), or (batch, n, k) if trans_b.
extern "C" __global__ void qgemm(const void* __restrict__ a, const void* __restrict__ b,
                                 const void* __restrict__ a_zero, const void* __restrict__ b_zero,
                                 const int* __restrict__ bias, const double* __restrict__ scale,
                                 const double* __restrict__ shift, void* __restrict__ y, const QGemmParams p) {
    const index_t total = (index_t)p.batch * p.m * p.n;
    const int zero = whole(a_zero, 0, p.x_type);
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int column = i % p.n;
        const index_t row = i / p.n % p.m, batch = i / p.n / p.m;
        const int own = whole(b_zero, p.weight_zeros > 1 ? column : 0, p.weight_type);
        const index_t left = batch * p.stride_a + row * p.k;
        const index_t right = batch * p.stride_b + (p.trans_b ? (index_t)column * p.k : column);
        const index_t step = p.trans_b ? 1 : p.n;
        int sum = 0;
        for (int j = 0; j < p.k; ++j) {
            sum += (whole(a, left + j, p.x_type) - zero) * (whole(b, right + j * step, p.weight_type) - own);
        }
        finish(p, y, i, sum, column, bias, scale, shift);
    }
}
