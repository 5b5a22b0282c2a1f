/*
op = "softmax"
rung = 4
name = "fitted_rows"
idea = "As many threads a row as leave each a few values: a long row takes a whole block, and rows that lie side by side in memory are read side by side."
launch = "softmax_fitted"
overlaps = true
[defines]
LANES = 32  # threads of a row, a power of two; the launch sets these four
ROWS = 8    # of a block
VALUES = 4  # of a thread
ACROSS = 0  # neighbouring threads have neighbouring rows, not neighbouring elements of one
[needs]
axis_max = 16384
*/
#include "common.cuh"
#include "overlap.cuh"
#include "row.cuh"

// x and y are (outer, axis, inner); a row runs along the middle one.
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, const SoftmaxParams p) {
    let_next_begin();
    const int lane = lane_of_row();
    const index_t row = (index_t)blockIdx.x * ROWS + row_of_block();
    const bool there = row < p.outer * p.inner;
    const index_t base = there ? row / p.inner * p.axis * p.inner + row % p.inner : 0;
    wait_for_previous();
    x = written(x);
    float v[VALUES];
    float top = minus_infinity();
#pragma unroll
    for (int k = 0; k < VALUES; ++k) {
        const int i = lane + k * LANES;
        v[k] = there && i < p.axis ? x[base + i * p.inner] : minus_infinity();
        top = larger(top, v[k]);
    }
    top = of_row(top, Larger());
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < VALUES; ++k) {
        v[k] -= top;
        const float power = expf(v[k]);
        sum += power;
        if (!p.log_of_it) v[k] = power;
    }
    sum = of_row(sum, Added());
    const float log_sum = p.log_of_it ? logf(sum) : 0.0f;
#pragma unroll
    for (int k = 0; k < VALUES; ++k) {
        const int i = lane + k * LANES;
        if (there && i < p.axis) y[base + i * p.inner] = p.log_of_it ? v[k] - log_sum : v[k] / sum;
    }
}
