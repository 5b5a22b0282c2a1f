/*
op = "linear_relu"
rung = 1
name = "first"
idea = "One thread an element of the answer."
[[launch]]
grid = "ceil(m * n, 128)"
block = 128
*/
extern "C" __global__ void linear_relu(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ y, const LinearReluParams p) {
    const long long i = (long long)blockIdx.x * 128 + threadIdx.x;
    if (i >= (long long)p.m * p.n) return;
    const float *row = x + i / p.n * p.k, *of = weight + i % p.n * p.k;
    double sum = bias[i % p.n];
    for (int e = 0; e < p.k; ++e) sum += (double)row[e] * of[e];
    y[i] = sum > 0.0 ? (float)sum : 0.0f;
}
