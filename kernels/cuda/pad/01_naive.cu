/*
op = "pad"
rung = 1
name = "naive"
idea = "One thread an output element: on each of up to six axes it finds the place in x, or the padding."
launch = "one_thread_an_output"
*/
#include "common.cuh"

// Sizes o0 … o5 of y, x0 … x5 of x, the elements b0 … b5 added in front (negative: cut) and the strides s0 … s5 of
// x, outermost first, filled up with axes of one element in front.
extern "C" __global__ void pad(const float* __restrict__ x, float* __restrict__ y, index_t size, index_t o0,
                               index_t o1, index_t o2, index_t o3, index_t o4, index_t o5, index_t x0, index_t x1,
                               index_t x2, index_t x3, index_t x4, index_t x5, index_t b0, index_t b1, index_t b2,
                               index_t b3, index_t b4, index_t b5, index_t s0, index_t s1, index_t s2, index_t s3,
                               index_t s4, index_t s5, int mode, float value) {
    const index_t outs[] = {o0, o1, o2, o3, o4, o5};
    const index_t dims[] = {x0, x1, x2, x3, x4, x5};
    const index_t begin[] = {b0, b1, b2, b3, b4, b5};
    const index_t walk[] = {s0, s1, s2, s3, s4, s5};
    for (index_t i = first_element(); i < size; i += grid_stride()) {
        index_t rest = i, from = 0;
        bool inside = true;
#pragma unroll
        for (int axis = 5; axis >= 0; --axis) {
            if (outs[axis] == 1 && dims[axis] == 1 && begin[axis] == 0) continue;
            index_t place = rest % outs[axis] - begin[axis];
            rest /= outs[axis];
            const index_t last = dims[axis] - 1;
            if (mode == PAD_CONSTANT) {
                inside = inside && place >= 0 && place <= last;
            } else if (mode == PAD_EDGE) {
                place = place < 0 ? 0 : place > last ? last : place;
            } else if (last == 0) {
                place = 0;
            } else {  // reflect: there and back again, as often as the padding is wide
                place = (place < 0 ? -place : place) % (2 * last);
                place = place > last ? 2 * last - place : place;
            }
            from += place * walk[axis];
        }
        y[i] = inside ? x[from] : value;
    }
}
