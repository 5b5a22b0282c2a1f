/*
op = "spmv"
rung = 1
name = "thread_a_row"
idea = "One thread a row: neighbouring threads read elements that lie a row apart, and a warp takes as long as its longest row."
[defines]
BLOCK = 128
[[launch]]
grid = "ceil(m, BLOCK)"
block = "BLOCK"
*/
extern "C" __global__ void spmv(const int* __restrict__ offsets, const int* __restrict__ places,
                                const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ y,
                                const SpmvParams p) {
    const int row = blockIdx.x * BLOCK + threadIdx.x;
    if (row >= p.m) return;
    float sum = 0.0f;
    for (int i = offsets[row]; i < offsets[row + 1]; ++i) sum += values[i] * x[places[i]];
    y[row] = sum;
}
