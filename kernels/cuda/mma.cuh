// Matrix products on tensor cores: mma.sync, and how its operands lie here (compute capability 8.0).
//
// One mma.sync has a warp multiply 16 rows × k steps by k steps × 8 columns, k = 8 in tf32 and 16 in float16, onto
// 16 × 8 float32 sums, four a lane. Both operands lie in shared memory in slabs: for every row of the one, or column
// of the other, the 64 bytes of the next steps of its sum (16 in tf32, 32 in float16), four chunks of 16 bytes. Lane l
// reads chunk l % 4 of row l / 4 (and l / 4 + 8) and of column l / 4: its share of two mma.sync. The instruction asks
// the lane for the steps l % 4 and l % 4 + 4 (tf32) and is given those of its chunk. A sum may be taken in any order,
// provided that both operands have the same one.
#pragma once

#include "async.cuh"

#define LANES 32
#define CHUNKS 4    // of a row in a slab
#define MMA_ROWS 16
#define MMA_COLUMNS 8

// Where a chunk of a row lies in a slab. Eight lanes move 128 bytes, all banks, at once, whether they are two rows
// (reading) or one chunk of eight rows (filling).
__device__ __forceinline__ int place_in_slab(int row, int chunk) { return row * CHUNKS + (chunk ^ (row >> 1 & 3)); }

__device__ __forceinline__ unsigned to_tf32(float v) {  // rounded to 10 bits behind the point
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
    return bits;
}

__device__ __forceinline__ unsigned to_halves(float first, float second) {
    unsigned bits;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
    return bits;
}

// A float32 as the sum of two tf32: `big` is v rounded, `small` the first 10 bits of what that left. Written with
// integers, which some devices are faster at than at cvt.
struct Split {
    unsigned big, small;
};

__device__ __forceinline__ Split split(unsigned v) {
    Split s;
    s.big = (v + 0x1000u) & 0xffffe000u;
    s.small = __float_as_uint(__uint_as_float(v) - __uint_as_float(s.big)) & 0xffffe000u;
    return s;
}

// sum += rows · columns. In `up` and `down` a lane has its steps of row l / 4 and of row l / 4 + 8, two registers each.
// Of the sums it has columns 2 (l % 4) and the next, of row l / 4 in sum[0] and [1], of row l / 4 + 8 in [2] and [3].
__device__ __forceinline__ void mma_tf32(float (&sum)[4], unsigned up0, unsigned up1, unsigned down0, unsigned down1,
                                         unsigned column0, unsigned column1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(up0), "r"(down0), "r"(up1), "r"(down1), "r"(column0), "r"(column1));
}

__device__ __forceinline__ void mma_half(float (&sum)[4], unsigned up0, unsigned up1, unsigned down0, unsigned down1,
                                         unsigned column0, unsigned column1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(up0), "r"(down0), "r"(up1), "r"(down1), "r"(column0), "r"(column1));
}

// What a warp computes: ROWS × COLUMNS sums of a block's tile, out of one slab of each operand at a time. KIND says in
// what: KIND::multiply(sum, up, down, column) adds the products of a lane's chunks.
template <class KIND, int ROWS, int COLUMNS>
struct WarpTile {
    float sum[ROWS / MMA_ROWS][COLUMNS / MMA_COLUMNS][4] = {};

    // first_row, first_column: the warp's place in the block's tile.
    __device__ __forceinline__ void add(const uint4* rows, const uint4* columns, int first_row, int first_column) {
        const int lane = threadIdx.x % LANES;
        uint4 up[ROWS / MMA_ROWS], down[ROWS / MMA_ROWS];
#pragma unroll
        for (int i = 0; i < ROWS / MMA_ROWS; ++i) {
            const int row = first_row + i * MMA_ROWS + lane / CHUNKS;
            up[i] = rows[place_in_slab(row, lane % CHUNKS)];
            down[i] = rows[place_in_slab(row + 8, lane % CHUNKS)];
        }
#pragma unroll
        for (int j = 0; j < COLUMNS / MMA_COLUMNS; ++j) {
            // A channel's chunks lie in order: packed for this, with no stores to conflict.
            const uint4 column = columns[(first_column + j * MMA_COLUMNS) * CHUNKS + lane];
#pragma unroll
            for (int i = 0; i < ROWS / MMA_ROWS; ++i) KIND::multiply(sum[i][j], up[i], down[i], column);
        }
    }
};
