/*
op = "where"
rung = 1
name = "naive"
idea = "One thread an element: its place on up to six axes says where condition and operands are, and one of these is read."
launch = "one_thread_typed"
[defines]
DTYPE = 0  # of the operands, which the launch sets
[needs]
dtype = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]
*/
#include "common.cuh"
#include "element.cuh"

// Sizes of y and strides of c, a and b, outermost first; fewer axes are filled up with ones in front.
extern "C" __global__ void where(const bool* __restrict__ c, const element* __restrict__ a,
                                 const element* __restrict__ b, element* __restrict__ y, const WhereParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        index_t rest = i, at_c = 0, at_a = 0, at_b = 0;
#pragma unroll
        for (int axis = 5; axis >= 0; --axis) {
            if (p.dims[axis] == 1) continue;
            const index_t place = rest % p.dims[axis];
            rest /= p.dims[axis];
            at_c += place * p.strides_c[axis];
            at_a += place * p.strides_a[axis];
            at_b += place * p.strides_b[axis];
        }
        y[i] = c[at_c] ? a[at_a] : b[at_b];
    }
}
