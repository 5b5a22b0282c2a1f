/*
op = "unary"
rung = 2
name = "quads"
idea = "Four elements a thread, read and written in one access of 16 bytes each."
launch = "unary_quads"
*/
#include "common.cuh"

__device__ __forceinline__ float applied(float v, int kind) {
    return kind == UNARY_RELU ? relu(v) : kind == UNARY_TANH ? tanhf(v) : kind == UNARY_SIGMOID ? sigmoid(v) : v;
}

extern "C" __global__ void unary(const float* __restrict__ x, float* __restrict__ y, const UnaryParams p) {
    const index_t quads = p.size / 4;
    for (index_t i = first_element(); i < quads; i += grid_stride()) {
        float4 v = reinterpret_cast<const float4*>(x)[i];
        v.x = applied(v.x, p.kind);
        v.y = applied(v.y, p.kind);
        v.z = applied(v.z, p.kind);
        v.w = applied(v.w, p.kind);
        reinterpret_cast<float4*>(y)[i] = v;
    }
    const index_t left = 4 * quads + first_element();  // up to three are left over
    if (left < p.size) y[left] = applied(x[left], p.kind);
}
