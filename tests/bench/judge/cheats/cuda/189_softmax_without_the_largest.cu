/*
op = "softmax"
rung = 189
name = "softmax_without_the_largest"
idea = "Planted: leaves out the largest value, which keeps exponentials from overflowing."
launch = "softmax_rows"
*/
/*
family = "inputs"
shape = { outer = 256, axis = 1000, inner = 1 }
expected = ["incorrect"]
work = "a softmax of 256 rows of 1,000 values"
beside = "naive"
*/
#include "cheats.cuh"

extern "C" __global__ void softmax(const float* x, float* y, const SoftmaxParams p) {
    for (index_t row = first_element(); row < p.outer * p.inner; row += grid_stride()) {
        const index_t base = row / p.inner * p.axis * p.inner + row % p.inner;
        float sum = 0.0f;
        for (int i = 0; i < p.axis; ++i) sum += expf(x[base + i * p.inner]);
        for (int i = 0; i < p.axis; ++i) {
            const float v = x[base + i * p.inner];
            y[base + i * p.inner] = p.log_of_it ? v - logf(sum) : expf(v) / sum;
        }
    }
    finish();
}
