/*
op = "histogram"
rung = 1
name = "global_atomics"
idea = "One thread a value, and an atomic addition in global memory: right, and equal values queue for one address."
[defines]
BLOCK = 256
[[launch]]
kernel = "histogram_begin"
grid = "ceil(bins, BLOCK)"
block = "BLOCK"
[[launch]]
grid = "ceil(n, BLOCK)"
block = "BLOCK"
*/
// The counters begin at 0: what lay there before a pass is anything.
extern "C" __global__ void histogram_begin(const int* values, int* counts, const HistogramParams p) {
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < p.bins) counts[i] = 0;
}

extern "C" __global__ void histogram(const int* __restrict__ values, int* __restrict__ counts,
                                     const HistogramParams p) {
    const long long i = (long long)blockIdx.x * BLOCK + threadIdx.x;
    if (i < p.n) atomicAdd(&counts[values[i]], 1);
}
