/*
op = "binary"
rung = 2
name = "quads"
idea = "Four neighbours a thread: their place is worked out once, with the axes and their number compiled in, and dense operands are read in one access of 16 bytes."
launch = "binary_quads"
[defines]
RANK = 1    # axes after merging; the launch sets all of these
VECTOR = 1  # elements a thread, 4 where every row of the operands begins on 16 bytes
STEP_A = 1  # what a walks along the last axis, where VECTOR is 4: 1, or 0 where it is broadcast
STEP_B = 1
WIDE = 0    # more elements than 32 bits count
*/
#include "common.cuh"

#if WIDE
typedef index_t place_t;
#else
typedef unsigned place_t;
#endif

__device__ __forceinline__ float result(float u, float v, int kind, int activation) {
    const float r = kind == BINARY_ADD ? u + v : kind == BINARY_SUB ? u - v : kind == BINARY_MUL ? u * v : u / v;
    return activate(r, activation);
}

__device__ __forceinline__ float4 four(const float* __restrict__ from, int step) {
    if (step) return *reinterpret_cast<const float4*>(from);
    const float v = *from;
    return make_float4(v, v, v, v);
}

// Sizes d0 … d5 and strides of a and b, outermost first; fewer axes are filled up with ones in front.
extern "C" __global__ void binary(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ y,
                                  index_t size, index_t d0, index_t d1, index_t d2, index_t d3, index_t d4,
                                  index_t d5, index_t a0, index_t a1, index_t a2, index_t a3, index_t a4,
                                  index_t a5, index_t b0, index_t b1, index_t b2, index_t b3, index_t b4,
                                  index_t b5, int kind, int activation) {
    const place_t dims[] = {(place_t)d0, (place_t)d1, (place_t)d2, (place_t)d3, (place_t)d4, (place_t)(d5 / VECTOR)};
    const index_t walk_a[] = {a0, a1, a2, a3, a4, a5 * VECTOR};
    const index_t walk_b[] = {b0, b1, b2, b3, b4, b5 * VECTOR};
    const place_t units = size / VECTOR;
    for (index_t i = first_element(); i < units; i += grid_stride()) {
        place_t rest = (place_t)i;
        index_t at_a = 0, at_b = 0;
#pragma unroll
        for (int axis = 5; axis > 6 - RANK; --axis) {
            const place_t place = rest % dims[axis];
            rest /= dims[axis];
            at_a += place * walk_a[axis];
            at_b += place * walk_b[axis];
        }
        at_a += rest * walk_a[6 - RANK];
        at_b += rest * walk_b[6 - RANK];
#if VECTOR == 4
        const float4 u = four(a + at_a, STEP_A), v = four(b + at_b, STEP_B);
        reinterpret_cast<float4*>(y)[i] =
            make_float4(result(u.x, v.x, kind, activation), result(u.y, v.y, kind, activation),
                        result(u.z, v.z, kind, activation), result(u.w, v.w, kind, activation));
#else
        y[i] = result(a[at_a], b[at_b], kind, activation);
#endif
    }
#if RANK == 1 && VECTOR == 4
    const index_t left = size / 4 * 4 + first_element();  // up to three are left over
    if (left < size) y[left] = result(a[left * a5], b[left * b5], kind, activation);
#endif
}
