// Blocks of a cluster, which run at once and read each other's shared memory (compute capability 9.0).
#pragma once

// Everybody of the cluster has come here, and what they wrote before is there.
__device__ __forceinline__ void wait_for_cluster() {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

// What lies at `place` in the shared memory of the cluster's block `rank`.
__device__ __forceinline__ float of_block(const float* place, int rank) {
    const unsigned mine = (unsigned)__cvta_generic_to_shared(place);
    float v;
    asm volatile(
        "{\n\t.reg .u32 there;\n\tmapa.shared::cluster.u32 there, %1, %2;\n\tld.shared::cluster.f32 %0, [there];\n\t}"
        : "=f"(v)
        : "r"(mine), "r"(rank)
        : "memory");
    return v;
}

// The same of four that lie side by side, from 16 bytes on.
__device__ __forceinline__ float4 four_of_block(const float* place, int rank) {
    const unsigned mine = (unsigned)__cvta_generic_to_shared(place);
    float4 v;
    asm volatile(
        "{\n\t.reg .u32 there;\n\tmapa.shared::cluster.u32 there, %4, %5;\n\t"
        "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n\t}"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
        : "r"(mine), "r"(rank)
        : "memory");
    return v;
}

// In halves, of which the first says nothing of what was written: behind the second everybody has begun.
__device__ __forceinline__ void arrive_at_cluster() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_arrived() {
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

// Puts four numbers at `place`, 16 bytes, in the shared memory of the cluster's block `rank`.
__device__ __forceinline__ void put_to_block(float4* place, int rank, float4 v) {
    const unsigned mine = (unsigned)__cvta_generic_to_shared(place);
    asm volatile(
        "{\n\t.reg .u32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
        "st.shared::cluster.v4.f32 [there], {%2, %3, %4, %5};\n\t}" ::"r"(mine),
        "r"(rank), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
        : "memory");
}
