/*
op = "unary"
rung = 1
name = "naive"
idea = "One thread an element."
launch = "one_thread_an_output"
*/
#include "functions.cuh"

extern "C" __global__ void unary(const float* __restrict__ x, float* __restrict__ y, const UnaryParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) y[i] = applied(x[i], p.kind, p.alpha, p.beta);
}
