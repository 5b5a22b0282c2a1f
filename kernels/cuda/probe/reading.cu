// How fast this device reads what lies in its L2 cache, or, where that is far larger than the cache, in its memory:
// all threads read n times 16 bytes, ROUNDS times, past the first-level caches. What was read is written where it is
// nothing that ever lies there, so that it is read.
extern "C" __global__ void probe(const float4* __restrict__ from, float4* __restrict__ to, long long n) {
    const long long step = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll 4
        for (long long i = first; i < n; i += step) {
            float4 v;  // volatile: each round reads it again
            asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                         : "l"(from + i));
            sum += v.x + v.y + v.z + v.w;
        }
    }
    if (sum == -1.0f) to[first] = make_float4(sum, sum, sum, sum);
}
