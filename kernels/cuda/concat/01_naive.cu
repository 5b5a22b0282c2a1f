/*
op = "concat"
rung = 1
name = "naive"
idea = "One thread an element of y: it goes from one input to the next until the place along its row lies within one."
launch = "one_thread_typed"
[defines]
DTYPE = 0  # of the elements, which the launch sets
[needs]
dtype = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]
*/
#include "common.cuh"
#include "element.cuh"

// Inputs that are not there have null pointers and rows of no elements.
extern "C" __global__ void concat(
    const element* x0, const element* x1, const element* x2, const element* x3, const element* x4, const element* x5,
    const element* x6, const element* x7, const element* x8, const element* x9, const element* x10, const element* x11,
    const element* x12, const element* x13, const element* x14, const element* x15, const element* x16, const element* x17,
    const element* x18, const element* x19, const element* x20, const element* x21, const element* x22, const element* x23,
    const element* x24, const element* x25, const element* x26, const element* x27, const element* x28, const element* x29,
    const element* x30, const element* x31,
    element* __restrict__ y, const ConcatParams p) {
    const element* const inputs[] = {x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15,
                                    x16, x17, x18, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29, x30, x31};
    for (index_t i = first_element(); i < p.outer * p.row; i += grid_stride()) {
        const index_t row = i / p.row;
        index_t place = i % p.row;
#pragma unroll
        for (int part = 0; part < 32; ++part) {
            if (place < p.widths[part]) {
                y[i] = inputs[part][row * p.widths[part] + place];
                break;
            }
            place -= p.widths[part];
        }
    }
}
