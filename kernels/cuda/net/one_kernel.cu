// A run of a net's steps as one kernel; its defines are made by kernels/net/text.py. COMMON copies the weights of
// convolutions and all biases into shared memory, HELD a block's own weights of products, FETCH a group of images; FIRST
// and THE_REST are the steps.
#include "net.cuh"
#include "overlap.cuh"

#if RANKS > 1
#define TEAM __cluster_dims__(RANKS, 1, 1)
#else
#define TEAM
#endif

// Where it is to be told what the steps take: the clock of the first block before and behind each of them.
#ifdef STAMPS
__device__ long long stamps[STEPS_IN_ALL + 2];
#define STAMP(i) if (fresh && blockIdx.x == 0 && threadIdx.x == 0) stamps[i] = clock64()
#else
#define STAMP(i)
#endif

extern __shared__ float4 dynamic[];

// A team of blocks a group of IMAGES images, which takes further groups where there are more of them than teams.
extern "C" __global__ void TEAM __launch_bounds__(THREADS, BLOCKS)
    net(const float* __restrict__ x, const float* __restrict__ weights, float* __restrict__ out, int n) {
    float* const memory = reinterpret_cast<float*>(dynamic);
    const int rank = rank_in_team(), teams = gridDim.x / RANKS, groups = (n + IMAGES - 1) / IMAGES;
    int group = blockIdx.x / RANKS;
    bool fresh = true;
    STAMP(0);

#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
        expect_weights();
        COMMON;
        close_weights<COMMON_ONES>();
        HELD;
        close_weights<HELD_ONES>();
    }
#else
    COMMON;
#endif
    // The borders, which nobody writes to again.
    for (int e = threadIdx.x; e < BORDERED / 4; e += THREADS) dynamic[e] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __syncthreads();
    wait_for_previous();
    if (group < groups) FETCH(memory, x + (index_t)group * (IMAGES * INPUTS), n - group * IMAGES);
    close_copies();
#if !(__CUDA_ARCH__ >= 900)
    HELD;
    close_copies();
#endif
    let_next_begin();

    for (; group < groups; group += teams, fresh = false) {
        float* const y = out + (index_t)group * (IMAGES * OUTPUTS);
        const int left = n - group * IMAGES, next = group + teams;
#if __CUDA_ARCH__ >= 900
        wait_for_copies();
        if (fresh) wait_for_weights<COMMON_ONES>();
        if (fresh && HELD_FIRST) wait_for_weights<HELD_ONES>();
#else
        if (fresh && !HELD_FIRST)
            wait_for_older<1>();
        else
            wait_for_copies();
#endif
        wait_for_team();
        STAMP(1);
        FIRST;
        wait_for_team();
        STAMP(2);
        // What comes in next takes the place of what was read; it is waited for when it is its turn.
        if (next < groups) FETCH(memory, x + (index_t)next * (IMAGES * INPUTS), n - next * IMAGES);
        THE_REST;
        if (next < groups) wait_for_team();
        STAMP(STEPS_IN_ALL + 1);
    }
}
