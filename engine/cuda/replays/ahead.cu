// Weights that steps of this pass read later, brought into the L2 cache while the first steps, which are small
// and wait for each other, leave the memory idle. Nothing is written and nobody waits for it: what comes too
// late, or was thrown out again, is read from memory as before.

typedef unsigned long long u64;

struct Range {
    u64 at;      // its first byte, a multiple of 16
    u64 nbytes;
    u64 part;    // of every STRIDE bytes so many are fetched, a multiple of 16
};

__device__ void fetch(u64 at, unsigned nbytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(at), "r"(nbytes) : "memory");
#else
    for (unsigned byte = 0; byte < nbytes; byte += 128) asm volatile("prefetch.global.L2 [%0];" ::"l"(at + byte));
#endif
}

// Every thread fetches its share of each range, in the order in which they are read, and waits pause_ns after each.
extern "C" __global__ void ahead(const Range* ranges, int count, int pause_ns) {
    const u64 threads = (u64)gridDim.x * blockDim.x, own = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < count; i++) {
        const Range range = ranges[i];
        for (u64 at = own * STRIDE; at < range.nbytes; at += threads * STRIDE) {
            const u64 left = range.nbytes - at;
            const unsigned nbytes = (unsigned)(left < range.part ? left : range.part) & ~15u;
            if (nbytes) fetch(range.at + at, nbytes);
            if (pause_ns) __nanosleep(pause_ns);
        }
    }
}
