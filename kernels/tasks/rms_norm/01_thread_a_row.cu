/*
op = "rms_norm"
rung = 1
name = "thread_a_row"
idea = "One thread a row: it adds up the squares, then scales each element. Neighbouring threads read a row apart."
[defines]
BLOCK = 64
[[launch]]
grid = "ceil(m, BLOCK)"
block = "BLOCK"
*/
#include "sums.cuh"

#define EPSILON 1e-5f

extern "C" __global__ void rms_norm(const float* __restrict__ x, const float* __restrict__ weight,
                                    float* __restrict__ y, const RmsNormParams p) {
    const int row = blockIdx.x * BLOCK + threadIdx.x;
    if (row >= p.m) return;
    const float* of = x + (long long)row * p.n;
    LongSum squares;
    for (int i = 0; i < p.n; ++i) squares.add(of[i] * of[i]);
    const float scale = rsqrtf(squares.total() / p.n + EPSILON);
    for (int i = 0; i < p.n; ++i) y[(long long)row * p.n + i] = of[i] * scale * weight[i];
}
