// Matrix products of a warpgroup: wgmma.mma_async, which reads both operands from shared memory by itself, in the
// background (compute capability 9.0 alone).
//
// Four warps multiply 64 rows × k steps by k steps × up to 256 columns, k = 8 in tf32, 16 in 16 bits and 32 in eight. Both operands lie
// in slabs: for every row or column the 128 bytes of the next steps of its sum, eight chunks of 16 bytes. Chunk c of row r
// lies at c ^ r % 8: so eight rows' chunks are in eight different banks, which is what the instruction calls a swizzle of
// 128 bytes. A slab begins on 1,024 bytes. Of the sums lane l of warp w has those of row 16 w + l / 4 and of the eighth row
// behind it, of columns 2 (l % 4) and the next, of every eight columns: sum[columns / 8][0], [1], and [2], [3].
//
// Included behind what says in which type: WGMMA_KIND, WGMMA_ORDER, and struct Kind (mma.cuh).
#pragma once

#include "async.cuh"
#include "half.cuh"
#include "warp.cuh"

#ifndef WGMMA_SUM  // what is added up, the register that it is in, and whether factors are negated
#define WGMMA_SUM float
#define WGMMA_HELD "+f"
#define WGMMA_SIGNS ", 1, 1"
#endif

#define CHUNKS 8       // of a row in a slab
#define GROUP 128      // threads that multiply together
#define GROUP_ROWS 64  // and the rows that they multiply
#define STEPS_CHUNKS 2 // of a row, in one instruction
#ifndef LATE_SLABS
#define LATE_SLABS 0  // slabs whose products may be under way when those of the next begin
#endif

// Where a chunk of a row lies in a slab.
__device__ __forceinline__ int place_in_slab(int row, int chunk) { return row * CHUNKS + (chunk ^ (row & 7)); }

// What this thread put into shared memory is there for what reads it in the background.
__device__ __forceinline__ void show_to_background() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Before the first product of a slab: the sums are as the registers say.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void close_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// All products but those of the newest groups are done.
template <int NEWEST>
__device__ __forceinline__ void products_but() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(NEWEST) : "memory");
}

// An operand that begins here: its address, eight rows of 128 bytes each behind the other, swizzled.
__device__ __forceinline__ unsigned long long operand(const uint4* slab) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(slab);
    return (unsigned long long)(address >> 4 & 0x3fffu) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// sum += rows · columns, of the columns that the name says; without `more` the sum begins with these products.
template <int COLUMNS>
struct Wide;

#define SUMS(j) WGMMA_HELD(sum[j][0]), WGMMA_HELD(sum[j][1]), WGMMA_HELD(sum[j][2]), WGMMA_HELD(sum[j][3])

template <>
struct Wide<64> {
    static __device__ __forceinline__ void multiply(WGMMA_SUM (&sum)[8][4], const uint4* rows, const uint4* columns,
                                                    bool more = true) {
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %32, 0;\n\twgmma.mma_async.sync.aligned.m64n64" WGMMA_KIND " {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                     "}, %33, %34, p" WGMMA_SIGNS WGMMA_ORDER ";\n\t}"
                     : SUMS(0), SUMS(1), SUMS(2), SUMS(3), SUMS(4), SUMS(5), SUMS(6), SUMS(7)
                     : "r"((int)more), "l"(operand(rows)), "l"(operand(columns)));
    }
};

template <>
struct Wide<96> {
    static __device__ __forceinline__ void multiply(WGMMA_SUM (&sum)[12][4], const uint4* rows, const uint4* columns,
                                                    bool more = true) {
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %48, 0;\n\twgmma.mma_async.sync.aligned.m64n96" WGMMA_KIND " {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
                     "}, %49, %50, p" WGMMA_SIGNS WGMMA_ORDER ";\n\t}"
                     : SUMS(0), SUMS(1), SUMS(2), SUMS(3), SUMS(4), SUMS(5), SUMS(6), SUMS(7),
                       SUMS(8), SUMS(9), SUMS(10), SUMS(11)
                     : "r"((int)more), "l"(operand(rows)), "l"(operand(columns)));
    }
};

template <>
struct Wide<128> {
    static __device__ __forceinline__ void multiply(WGMMA_SUM (&sum)[16][4], const uint4* rows, const uint4* columns,
                                                    bool more = true) {
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %64, 0;\n\twgmma.mma_async.sync.aligned.m64n128" WGMMA_KIND " {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                     "}, %65, %66, p" WGMMA_SIGNS WGMMA_ORDER ";\n\t}"
                     : SUMS(0), SUMS(1), SUMS(2), SUMS(3), SUMS(4), SUMS(5), SUMS(6), SUMS(7),
                       SUMS(8), SUMS(9), SUMS(10), SUMS(11), SUMS(12), SUMS(13), SUMS(14), SUMS(15)
                     : "r"((int)more), "l"(operand(rows)), "l"(operand(columns)));
    }
};

template <>
struct Wide<192> {
    static __device__ __forceinline__ void multiply(WGMMA_SUM (&sum)[24][4], const uint4* rows, const uint4* columns,
                                                    bool more = true) {
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %96, 0;\n\twgmma.mma_async.sync.aligned.m64n192" WGMMA_KIND " {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                     "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                     "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
                     "}, %97, %98, p" WGMMA_SIGNS WGMMA_ORDER ";\n\t}"
                     : SUMS(0), SUMS(1), SUMS(2), SUMS(3), SUMS(4), SUMS(5), SUMS(6), SUMS(7),
                       SUMS(8), SUMS(9), SUMS(10), SUMS(11), SUMS(12), SUMS(13), SUMS(14), SUMS(15),
                       SUMS(16), SUMS(17), SUMS(18), SUMS(19), SUMS(20), SUMS(21), SUMS(22), SUMS(23)
                     : "r"((int)more), "l"(operand(rows)), "l"(operand(columns)));
    }
};
#undef SUMS

// What a warpgroup computes: GROUP_ROWS × COLUMNS sums.
template <int COLUMNS>
struct GroupTile {
    static constexpr int LATE = LATE_SLABS;
    WGMMA_SUM sum[COLUMNS / 8][4] = {};

    // With a slab of its rows and one of columns, the number-th of a sum.
    __device__ __forceinline__ void add(const uint4* rows, const uint4* columns, int) {
        begin_products();
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; chunk += STEPS_CHUNKS)
            Wide<COLUMNS>::multiply(sum, rows + chunk, columns + chunk);
        close_products();
    }
    __device__ __forceinline__ void end() { products_but<0>(); }
};

// The same of numbers that are sums of two, big and small: of a slab's row the first half are the big ones, the second the
// small ones. Three of the four products, the small ones first. Tensor cores cut off what they add, where float32 rounds:
// so they add up `together` slabs at a time alone, from zero, and the rest is ordinary.
template <int COLUMNS, int together>
struct SplitTile {
    static constexpr int LATE = 1;
    float sum[COLUMNS / 8][4] = {}, part[COLUMNS / 8][4];

    __device__ __forceinline__ void add(const uint4* rows, const uint4* columns, int number) {
        constexpr int small = CHUNKS / 2;
        const bool anew = number % together == 0;
        if (anew && number > 0) end();
        begin_products();
#pragma unroll
        for (int chunk = 0; chunk < small; chunk += STEPS_CHUNKS) {
            Wide<COLUMNS>::multiply(part, rows + small + chunk, columns + chunk, !anew || chunk > 0);
            Wide<COLUMNS>::multiply(part, rows + chunk, columns + small + chunk);
        }
#pragma unroll
        for (int chunk = 0; chunk < small; chunk += STEPS_CHUNKS)
            Wide<COLUMNS>::multiply(part, rows + chunk, columns + chunk);
        close_products();
    }
    __device__ __forceinline__ void end() {
        products_but<0>();
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; ++j)
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                asm volatile("" : "+f"(part[j][s])::"memory");  // not read before it has been waited for
                sum[j][s] += part[j][s];
            }
    }
};

// Copies slabs begin to end, each while others are multiplied, and adds their products to the tile. rows, columns: where
// a stage's slab of this warpgroup's rows lies, and of the columns; copy(slab, stage): starts this thread's copies of one,
// of any number, and closes their group; those of the first STAGES - 1 - LATE are under way. A block waits before each
// barrier for its products, but for those of LATE slabs, so that the slab multiplied before them is overwritten next;
// without any the tensor cores meanwhile have those of the multiprocessor's other block. At the end nobody reads shared
// memory any more.
template <int STAGES_, class Tile, class Rows, class Columns, class Copy>
__device__ __forceinline__ void multiply_slabs(Tile& tile, int begin, int end, Rows rows, Columns columns, Copy copy) {
    constexpr int AHEAD_ = STAGES_ - 1 - Tile::LATE;
    int stage = 0, vacant = AHEAD_;
    for (int slab = begin; slab < end; ++slab) {
        // This thread's copies of the slab have arrived, and its group's products are done; after the barrier everybody's.
        wait_for_all_but<AHEAD_ - 1>();
        show_to_background();
        products_but<Tile::LATE>();
        __syncthreads();
        tile.add(rows(stage), columns(stage), slab - begin);
        copy(slab + AHEAD_, vacant);
        stage = stage + 1 == STAGES_ ? 0 : stage + 1;
        vacant = vacant + 1 == STAGES_ ? 0 : vacant + 1;
    }
    if (begin < end) tile.end();
    wait_for_all_but<0>();
    __syncthreads();
}

// Lane's sums of its warp's 16 rows, as they are, to rows of LEAD values.
template <int LEAD, int COLUMNS>
__device__ __forceinline__ void lay_out_sums(const float (&sum)[COLUMNS / 8][4], float* out) {
    const int lane = threadIdx.x % LANES;
#pragma unroll
    for (int j = 0; j < COLUMNS / 8; ++j)
#pragma unroll
        for (int s = 0; s < 4; ++s)
            out[(lane / 4 + s / 2 * 8) * LEAD + j * 8 + lane % 4 * 2 + s % 2] = sum[j][s];
}
