// How fast the matrix units of compute capability 9.0 multiply and add in float32, asked by wgmma, which mma.sync does not
// equal there: two groups of four warps multiply 64 rows by 192 columns each, through `n` rounds of four steps. Both
// operands lie in shared memory, as they do in a kernel that is fast, and hold random digits: of zeros the units multiply
// faster, as they take less power, and a kernel has none. FORMAT: 16 for float16, 32 for TF32, 8 for bfloat16, 1 for whole
// numbers of 8 bits, whose sums are int32.
#if FORMAT == 32
#define WGMMA_KIND "k8.f32.tf32.tf32"
#define WGMMA_ORDER ""
#elif FORMAT == 16
#define WGMMA_KIND "k16.f32.f16.f16"
#define WGMMA_ORDER ", 0, 0"
#else  // whole numbers have an instruction of their own below
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
#elif FORMAT == 8
    return (seed & 0x807f807fu) | 0x3c003c00u;
#else
    return seed;
#endif
}

#if FORMAT == 1
#define SUMS(j) "+r"(sum[j][0]), "+r"(sum[j][1]), "+r"(sum[j][2]), "+r"(sum[j][3])

// As GroupTile of wgmma.cuh, of COLUMNS columns.
struct Tile {
    int sum[COLUMNS / 8][4] = {};

    __device__ __forceinline__ void add(const uint4* rows, const uint4* columns, int) {
        begin_products();
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; chunk += STEPS_CHUNKS)
            asm volatile("wgmma.mma_async.sync.aligned.m64n192k32.s32.s8.s8 {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                     "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                     "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
                     "}, %96, %97, 1;"
                     : SUMS(0), SUMS(1), SUMS(2), SUMS(3), SUMS(4), SUMS(5), SUMS(6), SUMS(7),
                       SUMS(8), SUMS(9), SUMS(10), SUMS(11), SUMS(12), SUMS(13), SUMS(14), SUMS(15),
                       SUMS(16), SUMS(17), SUMS(18), SUMS(19), SUMS(20), SUMS(21), SUMS(22), SUMS(23)
                     : "l"(operand(rows + chunk)), "l"(operand(columns + chunk)));
        close_products();
    }
    __device__ __forceinline__ void end() { products_but<0>(); }
};
typedef int Sum;
#undef SUMS
#else
typedef GroupTile<COLUMNS> Tile;
typedef float Sum;
#endif

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
    Tile tile;
    const uint4* own = rows + threadIdx.x / GROUP * GROUP_ROWS * CHUNKS;
    for (long long i = 0; i < n; ++i) {
        products_but<1>();
        tile.add(own, columns, 0);
    }
    tile.end();
    Sum sum = 0;
#pragma unroll
    for (int j = 0; j < COLUMNS / 8; ++j) sum += tile.sum[j][0] + tile.sum[j][1] + tile.sum[j][2] + tile.sum[j][3];
    to[(long long)blockIdx.x * blockDim.x + threadIdx.x] = (float)sum;
}
