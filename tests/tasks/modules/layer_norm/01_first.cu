/*
op = "layer_norm"
rung = 1
name = "first"
idea = "One thread a row."
[[launch]]
grid = "ceil(m, 128)"
block = 128
*/
extern "C" __global__ void layer_norm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ y, const LayerNormParams p) {
    const long long i = (long long)blockIdx.x * 128 + threadIdx.x;
    if (i >= p.m) return;
    const float* row = x + i * p.n;
    double mean = 0.0, square = 0.0;
    for (int k = 0; k < p.n; ++k) mean += row[k];
    mean /= p.n;
    for (int k = 0; k < p.n; ++k) square += (row[k] - mean) * (row[k] - mean);
    const float scale = (float)(1.0 / sqrt(square / p.n + 1e-5));
    for (int k = 0; k < p.n; ++k) y[i * p.n + k] = (float)(row[k] - mean) * scale * weight[k] + bias[k];
}
