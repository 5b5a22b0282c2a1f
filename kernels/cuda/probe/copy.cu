// How fast this device copies: every thread moves 16 bytes at a time from `from` to `to`, n of them in all.
extern "C" __global__ void probe(const float4* __restrict__ from, float4* __restrict__ to, long long n) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) to[i] = from[i];
}
