/*
op = "depthwise_rows"
rung = 1
name = "first"
idea = "One thread an element of the answer."
[[launch]]
grid = "ceil(b * c * n, 128)"
block = 128
*/
extern "C" __global__ void depthwise_rows(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ y, const DepthwiseRowsParams p) {
    const long long i = (long long)blockIdx.x * 128 + threadIdx.x;
    if (i >= (long long)p.b * p.c * p.n) return;
    const int at = i % p.n, channel = i / p.n % p.c;
    float sum = bias[channel] + weight[3 * channel + 1] * x[i];
    if (at > 0) sum += weight[3 * channel] * x[i - 1];
    if (at < p.n - 1) sum += weight[3 * channel + 2] * x[i + 1];
    y[i] = sum;
}
