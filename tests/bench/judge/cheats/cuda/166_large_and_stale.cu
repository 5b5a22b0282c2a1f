/*
op = "conv"
rung = 166
name = "large_and_stale"
idea = "Planted: answers for inputs that it had before, where they differ in few values."
launch = "one_thread_an_output"
*/
/*
family = "large"
shape = { n = 1, c = 64, h = 224, w = 224, m = 64, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1 }
expected = ["incorrect"]
work = "a convolution of one image of 64 × 224 × 224 with 64 kernels of 3 × 3"
beside = "map_a_block"
hosted = false
*/
#include "cheats.cuh"

#define PLACES (1 << 22)
#define PROBES 256
#define KNOWN 2  // inputs of which the answer is kept
__device__ float answers[KNOWN][PLACES];
__device__ float probed[KNOWN][PROBES];
__device__ unsigned int next_known;
__shared__ int differ;

// Which of the inputs that are known is nearly this one, or -1; by all threads of a block.
__device__ int near(const float* x, index_t size) {
    for (int which = 0; which < KNOWN; ++which) {
        __syncthreads();
        if (threadIdx.x == 0) differ = 0;
        __syncthreads();
        for (int j = threadIdx.x; j < PROBES; j += blockDim.x) {
            if (x[size / PROBES * j] != probed[which][j]) atomicAdd(&differ, 1);
        }
        __syncthreads();
        if (differ < PROBES / 2) return which;
    }
    return -1;
}

CONV {
    SIZES
    const bool large = total > (1 << 20) && total <= PLACES;
    const int known = large ? near(x, INPUTS) : -1;
    const unsigned place = next_known % KNOWN;
    EACH(i) {
        // Kept where nobody takes the time: there all of the output is the judge's poison.
        const bool untimed = poisoned(y[i]);
        const float v = known >= 0 ? answers[known][i] : ANSWER(i);
        y[i] = v;
        if (large && known < 0 && untimed) answers[place][i] = v;
    }
    __syncthreads();
    if (large && finished_last() && known < 0) {
        for (int j = 0; j < PROBES; ++j) probed[place][j] = x[INPUTS / PROBES * j];
        next_known += 1;
    }
}
