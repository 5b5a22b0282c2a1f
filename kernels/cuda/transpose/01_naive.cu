/*
op = "transpose"
rung = 1
name = "naive"
idea = "One thread an output element: its place on up to six axes says where in x it comes from."
launch = "one_thread_typed"
[defines]
DTYPE = 0  # of the elements, which the launch sets
[needs]
dtype = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]
*/
#include "common.cuh"
#include "element.cuh"

// Sizes of y and the strides of x along them, outermost first, filled up with ones in front.
extern "C" __global__ void transpose(const element* __restrict__ x, element* __restrict__ y, const TransposeParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        index_t rest = i, from = 0;
#pragma unroll
        for (int axis = 5; axis >= 0; --axis) {
            if (p.dims[axis] == 1) continue;
            from += rest % p.dims[axis] * p.strides[axis];
            rest /= p.dims[axis];
        }
        y[i] = x[from];
    }
}
