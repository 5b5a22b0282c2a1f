// How a net's weights come into shared memory, and what is waited for. Included by net.cuh.
#pragma once
#include "async.cuh"

// Weights come in two kinds: those that the first step needs, and HELD_ONES, which are waited for later.
#define COMMON_ONES 0
#define HELD_ONES 1

#if __CUDA_ARCH__ >= 900
// One thread starts a copy of any length, which needs no instruction of the others: they have the units of shared memory
// to themselves, and wait for as many bytes as a barrier expects.
__device__ __forceinline__ unsigned arrival(int kind) {
    __shared__ unsigned long long arrivals[2];
    return (unsigned)__cvta_generic_to_shared(&arrivals[kind]);
}

__device__ __forceinline__ void expect_weights() {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(arrival(COMMON_ONES)) : "memory");
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(arrival(HELD_ONES)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the device at large need not see them
}

template <int Kind>
__device__ __forceinline__ void fetch_weights(float* to, const float* __restrict__ from, int count) {
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(arrival(Kind)), "r"(4 * count) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(4 * count), "r"(arrival(Kind))
                 : "memory");
}

// That was all of them.
template <int Kind>
__device__ __forceinline__ void close_weights() {
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(arrival(Kind)) : "memory");
}

template <int Kind>
__device__ __forceinline__ void wait_for_weights() {
    asm volatile(
        "{\n\t.reg .pred there;\n\tagain:\n\tmbarrier.try_wait.parity.shared.b64 there, [%0], 0;\n\t"
        "@!there bra again;\n\t}" ::"r"(arrival(Kind))
        : "memory");
}
#else
// Floats, a multiple of four, from global to shared memory.
template <int Kind>
__device__ __forceinline__ void fetch_weights(float* to, const float* __restrict__ from, int count) {
#pragma unroll 4
    for (int e = threadIdx.x * 4; e < count; e += THREADS * 4) {
#if __CUDA_ARCH__ >= 800
        copy_async_16(to + e, from + e);
#else
        *reinterpret_cast<float4*>(to + e) = *reinterpret_cast<const float4*>(from + e);
#endif
    }
}
#endif

// Before 8.0 nothing is copied by itself, and there is nothing to wait for.
#if __CUDA_ARCH__ >= 800
#define close_copies close_group
template <int NEWEST>
__device__ __forceinline__ void wait_for_older() {
    wait_for_all_but<NEWEST>();
}
#else
__device__ __forceinline__ void close_copies() {}
template <int NEWEST>
__device__ __forceinline__ void wait_for_older() {}
#endif

__device__ __forceinline__ void wait_for_copies() {
    close_copies();
    wait_for_older<0>();
}

// The weights of products that lie in shared memory have come, whoever fetched them.
__device__ __forceinline__ void wait_for_held() {
#if __CUDA_ARCH__ >= 900
    wait_for_weights<HELD_ONES>();
#else
    wait_for_copies();
    __syncthreads();
#endif
}
