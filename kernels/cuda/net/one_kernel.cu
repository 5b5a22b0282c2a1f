// A run of a net's steps as one kernel; its defines are made by kernels/net/text.py. COMMON copies the weights of
// convolutions and all biases into shared memory, HELD a block's own weights of products, FETCH a group of images, which
// ROUND makes TF32 or 16 bits of where it is wanted so (EARLY: it leaves where they came in to the next). FIRST and THE_REST
// are the steps, BEHIND_FIRST how a team meets between them; EXPECT says what each step is going to be told where values
// count themselves in (SENT).
#include "net.cuh"
#include "overlap.cuh"

#if RANKS > 1
#define TEAM __cluster_dims__(RANKS, 1, 1)
#else
#define TEAM
#endif

// Where it is to be told what the steps take, in a build of its own: of every block the cycles of each step, all its
// groups of images together, those of what comes before the first step (slot 0), and when it began and ended by the
// clock in nanoseconds that all multiprocessors share. stamps is (blocks, STEPS_IN_ALL + 3), of STAMPS values.
#ifdef STAMPS
__device__ long long stamps[STAMPS];
__device__ __forceinline__ long long shared_clock() {
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
#define STAMPED(i) stamps[blockIdx.x * (STEPS_IN_ALL + 3) + (i)]
#define BEGIN_STAMPS()                                             \
    long long stamped = clock64();                                 \
    if (threadIdx.x == 0) {                                        \
        for (int i = 0; i <= STEPS_IN_ALL; ++i) STAMPED(i) = 0;    \
        STAMPED(STEPS_IN_ALL + 1) = shared_clock();                \
    }
// What went by since the last stamp is of this slot.
#define STAMP(i)                         \
    if (threadIdx.x == 0) {              \
        const long long now = clock64(); \
        STAMPED(i) += now - stamped;     \
        stamped = now;                   \
    }
#define END_STAMPS() \
    if (threadIdx.x == 0) STAMPED(STEPS_IN_ALL + 2) = shared_clock()
#else
#define BEGIN_STAMPS()
#define STAMP(i)
#define END_STAMPS()
#endif

extern __shared__ float4 dynamic[];

// A team of blocks a group of IMAGES images, which takes further groups where there are more of them than teams.
extern "C" __global__ void TEAM __launch_bounds__(THREADS, BLOCKS)
    net(const float* __restrict__ x, const float* __restrict__ weights, float* __restrict__ out, int n) {
    float* const memory = reinterpret_cast<float*>(dynamic);
    const int rank = rank_in_team(), teams = gridDim.x / RANKS, groups = (n + IMAGES - 1) / IMAGES;
    int group = blockIdx.x / RANKS;
    bool fresh = true;
    BEGIN_STAMPS();

#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) expect_weights();
#else
    COMMON;
#endif
#if SENT
    if (threadIdx.x == 0) {
        EXPECT;
    }
#endif
    // The borders, which nobody writes to again.
    for (int e = threadIdx.x; e < BORDERED / 4; e += THREADS) dynamic[e] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __syncthreads();
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
        COMMON;
        close_weights<COMMON_ONES>();
        HELD;
        close_weights<HELD_ONES>();
    }
#endif
    wait_for_previous();
    x = written(x);
    // While one warp starts the copies of the weights, the others fetch the images.
    constexpr int BUSY = WARPS < 4 ? 0 : LANES;
    if (group < groups) FETCH(memory, x + (index_t)group * (IMAGES * INPUTS), n - group * IMAGES, TOP, BUSY);
    close_copies();
#if !(__CUDA_ARCH__ >= 900)
    HELD;
    close_copies();
#endif
    let_next_begin();
#if SENT
    arrive_at_team();
#endif

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
        ROUND;
#if SENT
        __syncthreads();
        wait_for_arrivals();
#else
        wait_for_team();
#endif
        STAMP(0);
        // What comes in next takes the place of what was read; it is waited for when it is its turn.
        if (EARLY && next < groups) FETCH(memory, x + (index_t)next * (IMAGES * INPUTS), n - next * IMAGES, TOP, 0);
        FIRST;
        BEHIND_FIRST;
        STAMP(1);
        if (!EARLY && next < groups) FETCH(memory, x + (index_t)next * (IMAGES * INPUTS), n - next * IMAGES, TOP, 0);
        THE_REST;
#if !SENT
        if (next < groups) wait_for_team();
#endif
        STAMP(STEPS_IN_ALL);
    }
    END_STAMPS();
}
