/*
op = "unary"
rung = 1
name = "naive"
idea = "One thread an element."
launch = "one_thread_an_output"
*/
#include "common.cuh"

extern "C" __global__ void unary(const float* __restrict__ x, float* __restrict__ y, const UnaryParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        const float v = x[i];
        y[i] = p.kind == UNARY_RELU      ? relu(v)
               : p.kind == UNARY_TANH    ? tanhf(v)
               : p.kind == UNARY_SIGMOID ? sigmoid(v)
                                         : v;
    }
}
