/*
op = "row_softmax"
rung = 1
name = "first"
idea = "One thread a row."
[[launch]]
grid = "ceil(m, 128)"
block = 128
*/
extern "C" __global__ void row_softmax(const float* __restrict__ x, float* __restrict__ y, const RowSoftmaxParams p) {
    const long long i = (long long)blockIdx.x * 128 + threadIdx.x;
    if (i >= p.m) return;
    const float* row = x + i * p.n;
    float top = row[0], sum = 0.0f;
    for (int k = 1; k < p.n; ++k) top = fmaxf(top, row[k]);
    for (int k = 0; k < p.n; ++k) sum += expf(row[k] - top);
    for (int k = 0; k < p.n; ++k) y[i * p.n + k] = expf(row[k] - top) / sum;
}
