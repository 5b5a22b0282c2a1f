/*
op = "binary"
rung = 3
name = "typed"
idea = "As the plain kernel for elements of any type, which is compiled in: whole numbers, truth values, double precision."
launch = "one_thread_typed"
[defines]
DTYPE = 3  # of the elements, which the launch sets
[needs]
dtype = ["float64", "int32", "int64", "uint8", "int8", "bool"]
activation = ["none"]
*/
#include "arithmetic.cuh"
#include "element.cuh"

// Sizes of y and strides of a and b, outermost first; fewer axes are filled up with ones in front.
extern "C" __global__ void binary(const element* __restrict__ a, const element* __restrict__ b,
                                  element* __restrict__ y, const BinaryParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        index_t rest = i, at_a = 0, at_b = 0;
#pragma unroll
        for (int axis = 5; axis >= 0; --axis) {
            if (p.dims[axis] == 1) continue;
            const index_t place = rest % p.dims[axis];
            rest /= p.dims[axis];
            at_a += place * p.strides_a[axis];
            at_b += place * p.strides_b[axis];
        }
        y[i] = combined(a[at_a], b[at_b], p.kind);
    }
}
