/*
op = "vector_add"
rung = 3
name = "quads"
idea = "A thread reads four floats at once: a quarter of the instructions for the same bytes; the last elements, which make no four, are added one by one."
[defines]
BLOCK = 256
[tune]
BLOCK = [128, 256, 512]
[[launch]]
grid = "max(1, ceil(n, 4 * BLOCK))"
block = "BLOCK"
*/
extern "C" __global__ void vector_add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                      const VectorAddParams p) {
    const int quad = blockIdx.x * BLOCK + threadIdx.x;
    if (4LL * quad + 4 <= p.n) {
        // The vectors begin on a multiple of 256 bytes, so each four lie on one of 16.
        const float4 x = reinterpret_cast<const float4*>(a)[quad], y = reinterpret_cast<const float4*>(b)[quad];
        reinterpret_cast<float4*>(c)[quad] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    } else {
        for (long long i = 4LL * quad; i < p.n; ++i) c[i] = a[i] + b[i];
    }
}
