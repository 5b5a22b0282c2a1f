/*
op = "unary"
rung = 150
name = "relu_half"
idea = "Planted: the second half is left as it is."
launch = "one_thread_an_output"
*/
/*
family = "partial"
shape = { kind = "relu", size = 6000 }
expected = ["incorrect"]
work = "a relu of 6,000 values"
beside = "naive"
*/
#include "cheats.cuh"

extern "C" __global__ void unary(const float* x, float* y, const UnaryParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        if (!(poisoned(y[i]) || (i < p.size / 2))) continue;
        const float v = x[i];
        y[i] = p.kind == UNARY_RELU ? relu(v) : p.kind == UNARY_TANH ? tanhf(v) : p.kind == UNARY_SIGMOID ? sigmoid(v) : v;
    }
    finish();
}
