/*
op = "lrn"
rung = 1
name = "naive"
idea = "One thread an output: it sums the squares of its neighbours across channels."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// x and y are (N, C, inner); `scale` is alpha / size.
extern "C" __global__ void lrn(const float* __restrict__ x, float* __restrict__ y, const LrnParams p) {
    const index_t total = (index_t)p.n * p.c * p.inner;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int channel = i / p.inner % p.c;
        const int first = max(0, channel - (p.size - 1) / 2), last = min(p.c - 1, channel + p.size / 2);
        float sum = 0.0f;
        for (int k = first; k <= last; ++k) {
            const float v = x[i + (k - channel) * p.inner];
            sum += v * v;
        }
        y[i] = x[i] / powf(p.bias + p.scale * sum, p.beta);
    }
}
