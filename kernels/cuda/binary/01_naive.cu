/*
op = "binary"
rung = 1
name = "naive"
idea = "One thread an element: its place on up to six axes says where the operands are, a broadcast one at stride 0."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// Sizes d0 … d5 and strides of a and b, outermost first; fewer axes are filled up with ones in front.
extern "C" __global__ void binary(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ y,
                                  index_t size, index_t d0, index_t d1, index_t d2, index_t d3, index_t d4,
                                  index_t d5, index_t a0, index_t a1, index_t a2, index_t a3, index_t a4,
                                  index_t a5, index_t b0, index_t b1, index_t b2, index_t b3, index_t b4,
                                  index_t b5, int kind, int activation) {
    const index_t dims[] = {d0, d1, d2, d3, d4, d5};
    const index_t walk_a[] = {a0, a1, a2, a3, a4, a5};
    const index_t walk_b[] = {b0, b1, b2, b3, b4, b5};
    for (index_t i = first_element(); i < size; i += grid_stride()) {
        index_t rest = i, at_a = 0, at_b = 0;
#pragma unroll
        for (int axis = 5; axis >= 0; --axis) {
            if (dims[axis] == 1) continue;  // spares the division on axes that are not there
            const index_t place = rest % dims[axis];
            rest /= dims[axis];
            at_a += place * walk_a[axis];
            at_b += place * walk_b[axis];
        }
        const float u = a[at_a], v = b[at_b];
        float r;
        if (kind == BINARY_ADD) r = u + v;
        else if (kind == BINARY_SUB) r = u - v;
        else if (kind == BINARY_MUL) r = u * v;
        else r = u / v;
        y[i] = activate(r, activation);
    }
}
