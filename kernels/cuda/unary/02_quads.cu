/*
op = "unary"
rung = 2
name = "quads"
idea = "Four elements a thread, read and written in one access of 16 bytes each, and one function compiled in."
launch = "unary_quads"
[defines]
KIND = 0  # of the functions, which the launch sets
*/
#include "functions.cuh"

extern "C" __global__ void unary(const float* __restrict__ x, float* __restrict__ y, const UnaryParams p) {
    const index_t quads = p.size / 4;
    for (index_t i = first_element(); i < quads; i += grid_stride()) {
        float4 v = reinterpret_cast<const float4*>(x)[i];
        v.x = applied(v.x, KIND, p.alpha, p.beta);
        v.y = applied(v.y, KIND, p.alpha, p.beta);
        v.z = applied(v.z, KIND, p.alpha, p.beta);
        v.w = applied(v.w, KIND, p.alpha, p.beta);
        reinterpret_cast<float4*>(y)[i] = v;
    }
    const index_t left = 4 * quads + first_element();  // up to three are left over
    if (left < p.size) y[left] = applied(x[left], KIND, p.alpha, p.beta);
}
