/*
op = "reduction"
rung = 1
name = "atomic"
idea = "A thread adds up some elements and then, by one atomic addition, adds its sum to the answer: all threads queue for one address."
[defines]
BLOCK = 256
EACH = 64  # elements of a thread
[tune]
EACH = [16, 64, 256]
[[launch]]
kernel = "reduction_begin"
grid = 1
block = 1
[[launch]]
grid = "ceil(n, BLOCK * EACH)"
block = "BLOCK"
*/
#include "common.cuh"

// The answer begins at 0: what lay there before a pass is anything.
extern "C" __global__ void reduction_begin(const float* x, float* sum, const ReductionParams p) { *sum = 0.0f; }

extern "C" __global__ void reduction(const float* __restrict__ x, float* __restrict__ sum, const ReductionParams p) {
    float own = 0.0f;
    for (index_t i = first_element(); i < p.n; i += grid_stride()) own += x[i];
    atomicAdd(sum, own);
}
