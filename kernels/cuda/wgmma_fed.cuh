// Matrix products of a warpgroup (wgmma.cuh) whose rows come from registers: of an instruction's steps lane l of warp w has
// four words: of row 16 w + l / 4 the word l % 4 of the first four and of the second, rows[0] and [2], and of the eighth row
// behind it the same, rows[1] and [3].
//
// Included behind what says in which type: WGMMA_KIND, WGMMA_ORDER, WGMMA_FED_ORDER, and struct Kind.
#pragma once
#include "wgmma.cuh"

// sum += rows · columns, of the columns that the name says; without `more` the sum begins with these products. The words
// are not written before these products have been waited for.
template <int COLUMNS>
struct Fed;

#define SUMS(j) "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])

template <>
struct Fed<64> {
    static __device__ __forceinline__ void multiply(float (&sum)[8][4], const unsigned (&rows)[4],
                                                    const uint4* columns, bool more) {
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %32, 0;\n\twgmma.mma_async.sync.aligned.m64n64" WGMMA_KIND " {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                     "}, {%33, %34, %35, %36}, %37, p, 1, 1" WGMMA_FED_ORDER ";\n\t}"
                     : SUMS(0), SUMS(1), SUMS(2), SUMS(3), SUMS(4), SUMS(5), SUMS(6), SUMS(7)
                     : "r"((int)more), "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(operand(columns)));
    }
};

template <>
struct Fed<96> {
    static __device__ __forceinline__ void multiply(float (&sum)[12][4], const unsigned (&rows)[4],
                                                    const uint4* columns, bool more) {
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %48, 0;\n\twgmma.mma_async.sync.aligned.m64n96" WGMMA_KIND " {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
                     "}, {%49, %50, %51, %52}, %53, p, 1, 1" WGMMA_FED_ORDER ";\n\t}"
                     : SUMS(0), SUMS(1), SUMS(2), SUMS(3), SUMS(4), SUMS(5), SUMS(6), SUMS(7),
                       SUMS(8), SUMS(9), SUMS(10), SUMS(11)
                     : "r"((int)more), "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(operand(columns)));
    }
};

template <>
struct Fed<128> {
    static __device__ __forceinline__ void multiply(float (&sum)[16][4], const unsigned (&rows)[4],
                                                    const uint4* columns, bool more) {
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %64, 0;\n\twgmma.mma_async.sync.aligned.m64n128" WGMMA_KIND " {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                     "}, {%65, %66, %67, %68}, %69, p, 1, 1" WGMMA_FED_ORDER ";\n\t}"
                     : SUMS(0), SUMS(1), SUMS(2), SUMS(3), SUMS(4), SUMS(5), SUMS(6), SUMS(7),
                       SUMS(8), SUMS(9), SUMS(10), SUMS(11), SUMS(12), SUMS(13), SUMS(14), SUMS(15)
                     : "r"((int)more), "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(operand(columns)));
    }
};

template <>
struct Fed<192> {
    static __device__ __forceinline__ void multiply(float (&sum)[24][4], const unsigned (&rows)[4],
                                                    const uint4* columns, bool more) {
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %96, 0;\n\twgmma.mma_async.sync.aligned.m64n192" WGMMA_KIND " {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                     "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                     "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
                     "}, {%97, %98, %99, %100}, %101, p, 1, 1" WGMMA_FED_ORDER ";\n\t}"
                     : SUMS(0), SUMS(1), SUMS(2), SUMS(3), SUMS(4), SUMS(5), SUMS(6), SUMS(7),
                       SUMS(8), SUMS(9), SUMS(10), SUMS(11), SUMS(12), SUMS(13), SUMS(14), SUMS(15),
                       SUMS(16), SUMS(17), SUMS(18), SUMS(19), SUMS(20), SUMS(21), SUMS(22), SUMS(23)
                     : "r"((int)more), "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(operand(columns)));
    }
};
#undef SUMS

// Behind what waits for them: no sum is read before.
template <int EIGHTS>
__device__ __forceinline__ void settle(float (&part)[EIGHTS][4]) {
#pragma unroll
    for (int j = 0; j < EIGHTS; ++j)
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            asm volatile("" : "+f"(part[j][s])::"memory");
        }
}
