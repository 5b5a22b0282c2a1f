// How the blocks of a team tell each other what they worked out. Included by net.cuh.
//
// Either they write and then meet at a barrier, or (SENT) each value that is told counts itself in at the block that it
// is told to, which waits for as many as the next step reads. A barrier of a cluster with what was written before it
// makes each thread wait until all that it wrote is seen by the whole device; values that count themselves in need none.
// Nobody overwrites what another still reads: a team is given one group of images only, and what a step gives lies in
// another place than what it reads. Who writes the place of a step's input has all that the step gives: all was read.
#pragma once
#include "cluster.cuh"
#include "warp.cuh"

// Everybody of the team has come here, and what they wrote before is there.
__device__ __forceinline__ void wait_for_team() {
#if RANKS > 1
    wait_for_cluster();
#else
    __syncthreads();
#endif
}

__device__ __forceinline__ int rank_in_team() {
#if RANKS > 1
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
#else
    return 0;
#endif
}

#define MINE 1   // told to the block itself,
#define FIRST_S 0  // to the first of the team
#define EVERYBODYS -1

#if SENT
// Where what a step reads is counted in, in bytes.
__device__ __forceinline__ unsigned signal(int step) {
    __shared__ unsigned long long signals[STEPS_IN_ALL];
    return (unsigned)__cvta_generic_to_shared(&signals[step]);
}

// By one thread, before it arrives at the team's first barrier: so many bytes are going to be told for this step.
__device__ __forceinline__ void expect_signal(int step, int nbytes) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(signal(step)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;\n\t}" ::"r"(signal(step)),
                 "r"(nbytes)
                 : "memory");
}

// All that this step reads is there.
__device__ __forceinline__ void wait_for_signal(int step) {
    asm volatile(
        "{\n\t.reg .pred told;\n\tagain:\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 told, [%0], 0;\n\t"
        "@!told bra again;\n\t}" ::"r"(signal(step))
        : "memory");
}

// The barrier of the team in two: what the block's threads did before its own barrier is released by one warp for all of
// them, which alone then waits until the device has seen it.
__device__ __forceinline__ void arrive_at_team() {
    if (threadIdx.x < LANES)
        asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    else
        asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

__device__ __forceinline__ void wait_for_arrivals() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
#endif

// Into the shared memory of some blocks of the team, what step Step reads.
template <int Told, int Step>
__device__ __forceinline__ void tell(float* place, float v) {
#if RANKS > 1
    if constexpr (Told != MINE) {
        const unsigned mine = (unsigned)__cvta_generic_to_shared(place);
#pragma unroll
        for (int rank = 0; rank < (Told == FIRST_S ? 1 : RANKS); ++rank)
#if SENT
            asm volatile(
                "{\n\t.reg .u32 there, its;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
                "mapa.shared::cluster.u32 its, %2, %1;\n\t"
                "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [there], %3, [its];\n\t}" ::"r"(mine),
                "r"(rank), "r"(signal(Step)), "r"(__float_as_uint(v))
                : "memory");
#else
            asm volatile(
                "{\n\t.reg .u32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
                "st.shared::cluster.f32 [there], %2;\n\t}" ::"r"(mine),
                "r"(rank), "f"(v)
                : "memory");
#endif
        return;
    }
#endif
    *place = v;
}
