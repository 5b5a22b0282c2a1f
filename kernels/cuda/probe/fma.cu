// How fast this device multiplies and adds in float32: every thread carries 8 chains that do not depend on each
// other through `n` rounds of 16 steps. The result is written so that nothing is left out.
extern "C" __global__ void probe(const float* __restrict__ from, float* __restrict__ to, long long n) {
    const float a = from[0], b = from[1];
    float v[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = from[2] + (float)(threadIdx.x + k);
    for (long long i = 0; i < n; ++i) {
#pragma unroll
        for (int j = 0; j < 16; ++j) {
#pragma unroll
            for (int k = 0; k < 8; ++k) v[k] = fmaf(v[k], a, b);
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += v[k];
    to[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
