/*
op = "matrix_transpose"
rung = 1
name = "naive"
idea = "One thread an element: a warp reads a row side by side, and writes a column, 32 sectors of memory for 32 elements."
[[launch]]
grid = ["ceil(n, 32)", "min(65535, ceil(m, 8))"]
block = [32, 8]
*/
extern "C" __global__ void matrix_transpose(const float* __restrict__ x, float* __restrict__ y,
                                            const MatrixTransposeParams p) {
    const int column = blockIdx.x * 32 + threadIdx.x;
    if (column >= p.n) return;
    for (int row = blockIdx.y * 8 + threadIdx.y; row < p.m; row += gridDim.y * 8)
        y[(long long)column * p.m + row] = x[(long long)row * p.n + column];
}
