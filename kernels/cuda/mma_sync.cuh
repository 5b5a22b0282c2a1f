// One instruction of the tensor cores: a warp multiplies 16 columns × k steps by k steps × 8 rows (compute capability 8.0).
#pragma once
#include "half.cuh"

// sum += columns · rows. Of the sums a lane has rows 2 (l % 4) and the next: of column l / 4 in sum[0] and [1], of
// column l / 4 + 8 in sum[2] and [3].
__device__ __forceinline__ void mma_tf32(float (&sum)[4], uint4 columns, unsigned row0, unsigned row1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(columns.x), "r"(columns.y), "r"(columns.z), "r"(columns.w), "r"(row0), "r"(row1));
}

__device__ __forceinline__ void mma_half(float (&sum)[4], uint4 columns, unsigned row0, unsigned row1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32" HALF_TYPE HALF_TYPE ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(columns.x), "r"(columns.y), "r"(columns.z), "r"(columns.w), "r"(row0), "r"(row1));
}
