/*
op = "lrn"
rung = 1
name = "naive"
idea = "One thread an output: it sums the squares of its neighbours across channels."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// x and y are (N, C, inner); `scale` is alpha / size.
extern "C" __global__ void lrn(const float* __restrict__ x, float* __restrict__ y, int n, int c, index_t inner,
                               int size, float scale, float beta, float bias) {
    const index_t total = (index_t)n * c * inner;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int channel = i / inner % c;
        const int first = max(0, channel - (size - 1) / 2), last = min(c - 1, channel + size / 2);
        float sum = 0.0f;
        for (int k = first; k <= last; ++k) {
            const float v = x[i + (k - channel) * inner];
            sum += v * v;
        }
        y[i] = x[i] / powf(bias + scale * sum, beta);
    }
}
