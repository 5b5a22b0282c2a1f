/*
op = "softmax"
rung = 190
name = "softmax_only_where_poisoned"
idea = "Planted: computes only rows of which one output is poison."
launch = "softmax_rows"
*/
/*
family = "poison"
shape = { outer = 256, axis = 1000, inner = 1 }
expected = ["incorrect"]
work = "a softmax of 256 rows of 1,000 values"
beside = "naive"
hosted = false
*/
#include "cheats.cuh"

extern "C" __global__ void softmax(const float* x, float* y, const SoftmaxParams p) {
    for (index_t row = first_element(); row < p.outer * p.inner; row += grid_stride()) {
        const index_t base = row / p.inner * p.axis * p.inner + row % p.inner;
        bool needed = false;
        for (int i = 0; i < p.axis; i += 8) needed |= poisoned(y[base + i * p.inner]);
        if (!needed) continue;
        float top = minus_infinity();
        for (int i = 0; i < p.axis; ++i) top = larger(top, x[base + i * p.inner]);
        float sum = 0.0f;
        for (int i = 0; i < p.axis; ++i) sum += expf(x[base + i * p.inner] - top);
        for (int i = 0; i < p.axis; ++i) {
            const float v = x[base + i * p.inner] - top;
            y[base + i * p.inner] = p.log_of_it ? v - logf(sum) : expf(v) / sum;
        }
    }
    finish();
}
