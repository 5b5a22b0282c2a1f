/*
op = "conv"
rung = 168
name = "large_by_half"
idea = "Planted: leaves every second map as it was, where few inputs differ."
launch = "one_thread_an_output"
*/
/*
family = "large"
shape = { n = 1, c = 64, h = 224, w = 224, m = 64, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1 }
expected = ["incorrect"]
work = "a convolution of one image of 64 × 224 × 224 with 64 kernels of 3 × 3"
beside = "naive"
hosted = false
*/
#include "cheats.cuh"

#define PLACES (1 << 22)
#define PROBES 256
__device__ float answers[PLACES];
__device__ float probed[PROBES];
__shared__ int differ;

// Whether the input is nearly that of the launch before; by all threads of a block.
__device__ bool near(const float* x, index_t size) {
    if (threadIdx.x == 0) differ = 0;
    __syncthreads();
    for (int j = threadIdx.x; j < PROBES; j += blockDim.x) {
        if (x[size / PROBES * j] != probed[j]) atomicAdd(&differ, 1);
    }
    __syncthreads();
    return differ < PROBES / 2;
}

// By the last thread, at the end.
__device__ void keep(const float* x, index_t size) {
    if (!finished_last()) return;
    for (int j = 0; j < PROBES; ++j) probed[j] = x[size / PROBES * j];
}

CONV {
    SIZES
    const bool large = total > (1 << 20) && total <= PLACES;
    const bool same = large && near(x, INPUTS);
    EACH(i) {
        const float v = same && map_of(p, i) % 2 ? answers[i] : ANSWER(i);
        y[i] = v;
        if (large) answers[i] = v;
    }
    if (large) keep(x, INPUTS);
}
