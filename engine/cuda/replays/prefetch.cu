// Weights on their way into the cache while kernels compute that need none of them: nobody waits for what is fetched
// here. Compute capability 9.0 fetches a piece an instruction, older devices a line of 128 bytes.
#define LINE 128
#define PIECE 8192

extern "C" __global__ void prefetch(const char* from, unsigned long long nbytes) {
    const unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
#if __CUDA_ARCH__ >= 900
    for (unsigned long long at = first * PIECE; at < nbytes; at += step * PIECE) {
        const unsigned size = nbytes - at < PIECE ? (unsigned)(nbytes - at) : PIECE;
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from + at), "r"(size) : "memory");
    }
#else
    for (unsigned long long at = first * LINE; at < nbytes; at += step * LINE)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + at) : "memory");
#endif
}
