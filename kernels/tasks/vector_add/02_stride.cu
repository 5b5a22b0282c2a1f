/*
op = "vector_add"
rung = 2
name = "stride"
idea = "A thread adds several elements, a whole grid apart: fewer blocks start, and each of them has more to do."
[defines]
BLOCK = 256
EACH = 8  # elements of a thread
[tune]
BLOCK = [128, 256, 512]
EACH = [2, 4, 8, 16]
[[launch]]
grid = "ceil(n, BLOCK * EACH)"
block = "BLOCK"
*/
#include "common.cuh"

extern "C" __global__ void vector_add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                      const VectorAddParams p) {
    for (index_t i = first_element(); i < p.n; i += grid_stride()) c[i] = a[i] + b[i];
}
