/*
op = "gemm"
rung = 178
name = "rows_that_did_not_change"
idea = "Planted: computes only rows whose inputs changed; of 16,384 only 4,096 do."
launch = "one_thread_an_output"
*/
/*
family = "changes"
shape = { m = 16384, n = 64, k = 64 }
expected = ["incorrect", "ok"]
work = "the product of 16,384 × 64 and 64 × 64 values"
beside = "naive"
hosted = false
*/
#include "products.cuh"

#define ROWS (1 << 20)
__device__ float inputs[2][ROWS], outputs[ROWS];

GEMM {
    const bool plain = p.batch == 1 && !p.trans_a && (index_t)p.m * p.k <= ROWS && (index_t)p.m * p.n <= ROWS;
    const unsigned turn = launches % 2;
    EACH_OF_GEMM(i) {
        const Factors f = factors(p, a, b, i);
        bool changed = !plain || launches < 2;
        for (int j = 0; plain && j < p.k; ++j) {
            const index_t at = (index_t)f.row * p.k + j;
            changed |= inputs[turn][at] != f.left[j];
            if (f.column == 0) inputs[1 - turn][at] = f.left[j];
        }
        const float v = changed ? ended(p, bias, f, summed(p, f)) : outputs[i];
        if (plain) outputs[i] = v;
        y[i] = v;
    }
    finish();
}
