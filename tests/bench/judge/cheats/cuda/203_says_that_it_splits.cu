/*
op = "unary"
rung = 203
name = "says_that_it_splits"
idea = "Planted: rounds a tanh to 16 bits, and says that it splits its factors."
method = "split"
launch = "one_thread_an_output"
*/
/*
family = "precision"
shape = { kind = "tanh", size = 65536 }
expected = ["incorrect"]
work = "a tanh of 65,536 values in float32"
beside = "naive"
*/
#include "rounding.cuh"

extern "C" __global__ void unary(const float* x, float* y, const UnaryParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) y[i] = to_bits(tanhf(x[i]), 16);
}
