/*
op = "vector_add"
rung = 1
name = "one_thread_an_element"
idea = "One thread an element: neighbouring threads read neighbouring elements, so a warp's 32 reads are four sectors of memory each."
[defines]
BLOCK = 256
[tune]
BLOCK = [128, 256, 512]
[[launch]]
grid = "ceil(n, BLOCK)"
block = "BLOCK"
*/
extern "C" __global__ void vector_add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                      const VectorAddParams p) {
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < p.n) c[i] = a[i] + b[i];  // the last block may have more threads than there are elements
}
