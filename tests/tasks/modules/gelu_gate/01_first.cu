/*
op = "gelu_gate"
rung = 1
name = "first"
idea = "One thread an element of the answer."
[[launch]]
grid = "ceil(n, 128)"
block = 128
*/
extern "C" __global__ void gelu_gate(const float* __restrict__ x, const float* __restrict__ gate, float* __restrict__ y, const GeluGateParams p) {
    const long long i = (long long)blockIdx.x * 128 + threadIdx.x;
    if (i < p.n) y[i] = x[i] * 0.5f * gate[i] * (1.0f + erff(gate[i] * 0.70710678f));
}
