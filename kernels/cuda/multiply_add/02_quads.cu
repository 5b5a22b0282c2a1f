/*
op = "multiply_add"
rung = 2
name = "quads"
idea = "Four neighbours a thread: their place is worked out once, with the number of axes compiled in, and dense operands are read in one access of 16 bytes."
launch = "multiply_add_quads"
[defines]
RANK = 1    # axes after merging; the launch sets all of these
VECTOR = 1  # elements a thread, 4 where every row of the operands begins on 16 bytes
STEP_A = 1  # what a walks along the last axis, where VECTOR is 4: 1, or 0 where it is broadcast
STEP_B = 1
STEP_C = 1
WIDE = 0    # more elements than 32 bits count
*/
#include "common.cuh"
#include "quads.cuh"

#if WIDE
typedef index_t place_t;
#else
typedef unsigned place_t;
#endif

// Sizes of y and strides of a, b and c, outermost first; fewer axes are filled up with ones in front.
extern "C" __global__ void multiply_add(const float* __restrict__ a, const float* __restrict__ b,
                                        const float* __restrict__ c, float* __restrict__ y,
                                        const MultiplyAddParams p) {
    // As many as a thread takes along the last axis are one.
    place_t dims[6];
    index_t walk_a[6], walk_b[6], walk_c[6];
#pragma unroll
    for (int axis = 0; axis < 6; ++axis) {
        dims[axis] = (place_t)(axis == 5 ? p.dims[axis] / VECTOR : p.dims[axis]);
        walk_a[axis] = p.strides_a[axis] * (axis == 5 ? VECTOR : 1);
        walk_b[axis] = p.strides_b[axis] * (axis == 5 ? VECTOR : 1);
        walk_c[axis] = p.strides_c[axis] * (axis == 5 ? VECTOR : 1);
    }
    const place_t units = p.size / VECTOR;
    for (index_t i = first_element(); i < units; i += grid_stride()) {
        place_t rest = (place_t)i;
        index_t at_a = 0, at_b = 0, at_c = 0;
#pragma unroll
        for (int axis = 5; axis > 6 - RANK; --axis) {
            const place_t place = rest % dims[axis];
            rest /= dims[axis];
            at_a += place * walk_a[axis];
            at_b += place * walk_b[axis];
            at_c += place * walk_c[axis];
        }
        at_a += rest * walk_a[6 - RANK];
        at_b += rest * walk_b[6 - RANK];
        at_c += rest * walk_c[6 - RANK];
#if VECTOR == 4
        const float4 u = four(a + at_a, STEP_A), v = four(b + at_b, STEP_B), w = four(c + at_c, STEP_C);
        reinterpret_cast<float4*>(y)[i] =
            make_float4(activate(u.x * v.x + w.x, p.activation), activate(u.y * v.y + w.y, p.activation),
                        activate(u.z * v.z + w.z, p.activation), activate(u.w * v.w + w.w, p.activation));
#else
        y[i] = activate(a[at_a] * b[at_b] + c[at_c], p.activation);
#endif
    }
#if RANK == 1 && VECTOR == 4
    const index_t left = p.size / 4 * 4 + first_element();  // up to three are left over
    if (left < p.size) {
        const float product = a[left * p.strides_a[5]] * b[left * p.strides_b[5]];
        y[left] = activate(product + c[left * p.strides_c[5]], p.activation);
    }
#endif
}
