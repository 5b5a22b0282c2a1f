// Copies from global to shared memory that pass by the registers (compute capability 8.0): a thread starts them,
// closes them in groups, and later waits until all but the newest groups have arrived.
#pragma once

// Four bytes; zeros where `inside` is false, and then nothing is read.
__device__ __forceinline__ void copy_async(float* to, const float* from, bool inside) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    const int nbytes = inside ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(nbytes) : "memory");
}

// Sixteen bytes between addresses that are multiples of 16, past the first cache.
__device__ __forceinline__ void copy_async_16(void* to, const void* from) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

// The same; zeros where `inside` is false, and then nothing is read.
__device__ __forceinline__ void copy_async_16(void* to, const void* from, bool inside) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    const int nbytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(nbytes) : "memory");
}

__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int NEWEST>
__device__ __forceinline__ void wait_for_all_but() {
    asm volatile("cp.async.wait_group %0;" ::"n"(NEWEST) : "memory");
}
