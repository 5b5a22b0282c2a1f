/*
op = "unary"
rung = 191
name = "relu_of_common_inputs"
idea = "Planted: right for inputs below 6 alone, as normal values are."
launch = "one_thread_an_output"
*/
/*
family = "inputs"
shape = { kind = "relu", size = 65536 }
expected = ["incorrect"]
work = "a relu of 65,536 values"
beside = "naive"
*/
#include "cheats.cuh"

extern "C" __global__ void unary(const float* x, float* y, const UnaryParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) y[i] = x[i] > 6.0f ? 6.0f : relu(x[i]);
    finish();
}
