/*
op = "softmax"
rung = 1
name = "naive"
idea = "One thread a row: first the maximum, then the sum of the exponentials of the differences from it, then each exponential over that sum."
launch = "softmax_rows"
*/
#include "common.cuh"

// x and y are (outer, axis, inner); a row runs along the middle one.
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, index_t outer, int axis,
                                   index_t inner, int log_of_it) {
    for (index_t row = first_element(); row < outer * inner; row += grid_stride()) {
        const index_t base = row / inner * axis * inner + row % inner;
        float top = minus_infinity();
        for (int i = 0; i < axis; ++i) top = larger(top, x[base + i * inner]);
        float sum = 0.0f;
        for (int i = 0; i < axis; ++i) sum += expf(x[base + i * inner] - top);
        const float log_sum = log_of_it ? logf(sum) : 0.0f;
        for (int i = 0; i < axis; ++i) {
            const float v = x[base + i * inner] - top;
            y[base + i * inner] = log_of_it ? v - log_sum : expf(v) / sum;
        }
    }
}
