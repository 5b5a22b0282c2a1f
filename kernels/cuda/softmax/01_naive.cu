/*
op = "softmax"
rung = 1
name = "naive"
idea = "One thread a row: first the maximum, then the sum of the exponentials of the differences from it, then each exponential over that sum."
launch = "softmax_rows"
*/
#include "common.cuh"
#include "sums.cuh"

// x and y are (outer, axis, inner); a row runs along the middle one.
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, const SoftmaxParams p) {
    for (index_t row = first_element(); row < p.outer * p.inner; row += grid_stride()) {
        const index_t base = row / p.inner * p.axis * p.inner + row % p.inner;
        float top = minus_infinity();
        for (int i = 0; i < p.axis; ++i) top = larger(top, x[base + i * p.inner]);
        LongSum powers;
        for (int i = 0; i < p.axis; ++i) powers.add(expf(x[base + i * p.inner] - top));
        const float sum = powers.total();
        const float log_sum = p.log_of_it ? logf(sum) : 0.0f;
        for (int i = 0; i < p.axis; ++i) {
            const float v = x[base + i * p.inner] - top;
            y[base + i * p.inner] = p.log_of_it ? v - log_sum : expf(v) / sum;
        }
    }
}
