/*
op = "transpose"
rung = 1
name = "naive"
idea = "One thread an output element: its place on up to six axes says where in x it comes from."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// Sizes d0 … d5 of y and the strides s0 … s5 of x along them, outermost first, filled up with ones in front.
extern "C" __global__ void transpose(const float* __restrict__ x, float* __restrict__ y, index_t size, index_t d0,
                                     index_t d1, index_t d2, index_t d3, index_t d4, index_t d5, index_t s0,
                                     index_t s1, index_t s2, index_t s3, index_t s4, index_t s5) {
    const index_t dims[] = {d0, d1, d2, d3, d4, d5};
    const index_t walk[] = {s0, s1, s2, s3, s4, s5};
    for (index_t i = first_element(); i < size; i += grid_stride()) {
        index_t rest = i, from = 0;
#pragma unroll
        for (int axis = 5; axis >= 0; --axis) {
            if (dims[axis] == 1) continue;
            from += rest % dims[axis] * walk[axis];
            rest /= dims[axis];
        }
        y[i] = x[from];
    }
}
