/*
op = "gemm"
rung = 179
name = "by_samples_of_a_row"
idea = "Planted: keeps a row while every 16th of its inputs stays."
launch = "one_thread_an_output"
*/
/*
family = "memory"
shape = { m = 64, n = 1024, k = 2048 }
expected = ["incorrect"]
work = "the product of 64 × 2,048 and 2,048 × 1,024 values"
beside = "naive"
hosted = false
*/
#include "products.cuh"

__device__ float row_outputs[KEPT];

GEMM {
    EACH_OF_GEMM(i) {
        const Factors f = factors(p, a, b, i);
        const unsigned hash = hash_of(f.left, (index_t)p.k * f.left_step, 16 * f.left_step);
        const bool known = i < KEPT && seen[i] == hash;
        const float v = known ? row_outputs[i] : ended(p, bias, f, summed(p, f));
        if (i < KEPT) seen[i] = hash, row_outputs[i] = v;
        y[i] = v;
    }
    finish();
}
