/*
op = "unit_rows"
rung = 1
name = "first"
idea = "One thread a row."
[[launch]]
grid = "ceil(m, 128)"
block = 128
*/
extern "C" __global__ void unit_rows(const float* __restrict__ x, float* __restrict__ y, const UnitRowsParams p) {
    const long long i = (long long)blockIdx.x * 128 + threadIdx.x;
    if (i >= p.m) return;
    double square = 0.0;
    for (int k = 0; k < p.n; ++k) square += (double)x[i * p.n + k] * x[i * p.n + k];
    const float scale = (float)(1.0 / fmax(sqrt(square), 1e-12));
    for (int k = 0; k < p.n; ++k) y[i * p.n + k] = x[i * p.n + k] * scale;
}
