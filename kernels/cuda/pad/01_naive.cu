/*
op = "pad"
rung = 1
name = "naive"
idea = "One thread an output element: on each of up to six axes it finds the place in x, or the padding."
launch = "one_thread_typed"
[defines]
DTYPE = 0  # of the elements, which the launch sets
[needs]
dtype = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]
*/
#include "common.cuh"
#include "element.cuh"
#include "half.cuh"

// What is put round x, in its type.
__device__ __forceinline__ element filling(float value) {
#if DTYPE == DTYPE_FLOAT16
    return double_to_half(value);
#else
    return (element)value;
#endif
}

// Sizes `dims` of y, `dims_x` of x, the elements `begin` added in front (negative: cut) and the strides of x, outermost
// first, filled up with axes of one element in front.
extern "C" __global__ void pad(const element* __restrict__ x, element* __restrict__ y, const PadParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        index_t rest = i, from = 0;
        bool inside = true;
#pragma unroll
        for (int axis = 5; axis >= 0; --axis) {
            if (p.dims[axis] == 1 && p.dims_x[axis] == 1 && p.begin[axis] == 0) continue;
            index_t place = rest % p.dims[axis] - p.begin[axis];
            rest /= p.dims[axis];
            const index_t last = p.dims_x[axis] - 1;
            if (p.mode == PAD_CONSTANT) {
                inside = inside && place >= 0 && place <= last;
            } else if (p.mode == PAD_EDGE) {
                place = place < 0 ? 0 : place > last ? last : place;
            } else if (p.mode == PAD_WRAP) {  // round and round
                place %= last + 1;
                place = place < 0 ? place + last + 1 : place;
            } else if (last == 0) {
                place = 0;
            } else {  // reflect: there and back again, as often as the padding is wide
                place = (place < 0 ? -place : place) % (2 * last);
                place = place > last ? 2 * last - place : place;
            }
            from += place * p.strides[axis];
        }
        y[i] = inside ? x[from] : filling(p.value);
    }
}
