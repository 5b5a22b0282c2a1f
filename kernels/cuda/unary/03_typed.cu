/*
op = "unary"
rung = 3
name = "typed"
idea = "One thread an element of any type, which is compiled in: what whole numbers and truth values have of functions."
launch = "one_thread_typed"
[defines]
DTYPE = 3  # of the elements, which the launch sets
[needs]
dtype = ["float64", "int32", "int64", "uint8", "int8", "bool"]
kind = ["identity", "relu", "abs", "neg", "sign", "not"]
*/
#include "common.cuh"
#include "element.cuh"

extern "C" __global__ void unary(const element* __restrict__ x, element* __restrict__ y, const UnaryParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        const element v = x[i], zero = 0;
        if (p.kind == UNARY_RELU) y[i] = v < zero ? zero : v;
        else if (p.kind == UNARY_ABS) y[i] = v < zero ? -v : v;
        else if (p.kind == UNARY_NEG) y[i] = -v;
        else if (p.kind == UNARY_SIGN) y[i] = v > zero ? (element)1 : v < zero ? (element)-1 : v;
        else if (p.kind == UNARY_NOT) y[i] = v == zero;
        else y[i] = v;
    }
}
