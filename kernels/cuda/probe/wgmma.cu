// How fast the matrix units of compute capability 9.0 multiply and add in float32, asked by wgmma, which mma.sync does not
// equal there: two groups of four warps multiply 64 rows by 192 columns each, through `n` rounds of four steps. Both
// operands lie in shared memory, as they do in a kernel that is fast, and hold random digits: of zeros the units multiply
// faster, as they take less power, and a kernel has none. FORMAT: 16 for float16, 32 for TF32, 8 for bfloat16.
#if FORMAT == 32
#define WGMMA_KIND "k8.f32.tf32.tf32"
#define WGMMA_ORDER ""
#elif FORMAT == 16
#define WGMMA_KIND "k16.f32.f16.f16"
#define WGMMA_ORDER ", 0, 0"
#else
#define WGMMA_KIND "k16.f32.bf16.bf16"
#define WGMMA_ORDER ", 0, 0"
#endif
#include "wgmma.cuh"

#define COLUMNS 192
#define GROUPS 2

// A word of two numbers, or of one, of random sign and digits about 2^-7.
__device__ __forceinline__ unsigned number(unsigned seed) {
    seed = (seed ^ 61u ^ seed >> 16) * 9u;
    seed = (seed ^ seed >> 4) * 0x27d4eb2du;
    seed ^= seed >> 15;
#if FORMAT == 32
    return (seed & 0x807fe000u) | 0x3c000000u;
#elif FORMAT == 16
    return (seed & 0x83ff83ffu) | 0x20002000u;
#else
    return (seed & 0x807f807fu) | 0x3c003c00u;
#endif
}

extern "C" __global__ void __launch_bounds__(GROUPS* GROUP, 2)
    probe(const float* __restrict__ from, float* __restrict__ to, long long n) {
    __shared__ __align__(1024) uint4 rows[GROUPS * GROUP_ROWS * CHUNKS];
    __shared__ __align__(1024) uint4 columns[COLUMNS * CHUNKS];
    const unsigned zero = __float_as_uint(from[0]);
    for (int i = threadIdx.x; i < (GROUPS * GROUP_ROWS + COLUMNS) * CHUNKS; i += GROUPS * GROUP) {
        uint4& place = i < GROUPS * GROUP_ROWS * CHUNKS ? rows[i] : columns[i - GROUPS * GROUP_ROWS * CHUNKS];
        const unsigned seed = zero + 4u * (unsigned)i;
        place = make_uint4(number(seed), number(seed + 1), number(seed + 2), number(seed + 3));
    }
    show_to_background();
    __syncthreads();
    GroupTile<COLUMNS> tile;
    const uint4* own = rows + threadIdx.x / GROUP * GROUP_ROWS * CHUNKS;
    for (long long i = 0; i < n; ++i) {
        products_but<1>();
        tile.add(own, columns, 0);
    }
    tile.end();
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < COLUMNS / 8; ++j) sum += tile.sum[j][0] + tile.sum[j][1] + tile.sum[j][2] + tile.sum[j][3];
    to[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
