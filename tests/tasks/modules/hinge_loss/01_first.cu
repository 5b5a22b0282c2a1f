/*
op = "hinge_loss"
rung = 1
name = "first"
idea = "One block adds up all terms in shared memory."
[[launch]]
grid = 1
block = 256
*/
extern "C" __global__ void hinge_loss(const float* __restrict__ predicted, const float* __restrict__ target, float* __restrict__ y,
                                      const HingeLossParams p) {
    __shared__ double sums[256];
    double own = 0.0;
    for (int i = threadIdx.x; i < p.n; i += 256) own += fmaxf(1.0f - predicted[i] * target[i], 0.0f);
    sums[threadIdx.x] = own;
    for (int half = 128; half; half /= 2) {
        __syncthreads();  // the sums of the step before are there
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) *y = (float)(sums[0] / p.n);
}
