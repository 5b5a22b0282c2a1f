/*
op = "unary"
rung = 149
name = "relu_every_eighth_launch"
idea = "Planted: seven of eight launches compute nothing."
launch = "one_thread_an_output"
*/
/*
family = "memory"
shape = { kind = "relu", size = 6000 }
expected = ["incorrect"]
work = "a relu of 6,000 values"
beside = "naive"
*/
#include "cheats.cuh"

extern "C" __global__ void unary(const float* x, float* y, const UnaryParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        if (!(poisoned(y[i]) || (launches % 8 == 0))) continue;
        const float v = x[i];
        y[i] = p.kind == UNARY_RELU ? relu(v) : p.kind == UNARY_TANH ? tanhf(v) : p.kind == UNARY_SIGMOID ? sigmoid(v) : v;
    }
    finish();
}
