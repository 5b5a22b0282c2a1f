/*
op = "multiply_add"
rung = 1
name = "naive"
idea = "One thread an element: its place on up to six axes says where the operands are, a broadcast one at stride 0."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// Sizes of y and strides of a, b and c, outermost first; fewer axes are filled up with ones in front.
extern "C" __global__ void multiply_add(const float* __restrict__ a, const float* __restrict__ b,
                                        const float* __restrict__ c, float* __restrict__ y,
                                        const MultiplyAddParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        index_t rest = i, at_a = 0, at_b = 0, at_c = 0;
#pragma unroll
        for (int axis = 5; axis >= 0; --axis) {
            if (p.dims[axis] == 1) continue;  // spares the division on axes that are not there
            const index_t place = rest % p.dims[axis];
            rest /= p.dims[axis];
            at_a += place * p.strides_a[axis];
            at_b += place * p.strides_b[axis];
            at_c += place * p.strides_c[axis];
        }
        y[i] = activate(a[at_a] * b[at_b] + c[at_c], p.activation);
    }
}
