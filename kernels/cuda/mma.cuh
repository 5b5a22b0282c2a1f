// Matrix products on tensor cores: mma.sync, and how its operands lie here (compute capability 8.0).
//
// One mma.sync has a warp multiply 16 columns × k steps by k steps × 8 rows, k = 8 in tf32 and 16 in 16 bits, onto
// 16 × 8 float32 sums, four a lane. (Columns of the product, which are channels, are the instruction's rows: it wants
// four registers of that operand side by side, and weights can be packed so.) Both operands lie in shared memory in
// slabs: for every row or column the 64 bytes of the next steps of its sum (16 in tf32, 32 in 16 bits), four chunks of
// 16 bytes. Lane l reads chunk l % 4 of row l / 4: its share of two mma.sync. The instruction asks it for the steps
// l % 4 and l % 4 + 4 (tf32) and is given those of its chunk. A sum may be taken in any order, provided that both
// operands have the same one. Of columns the lane reads what packing put there for it: for either mma.sync 16 bytes,
// two registers of column l / 4 and two of column l / 4 + 8.
#pragma once

#include "async.cuh"
#include "half.cuh"
#include "mma_sync.cuh"
#include "warp.cuh"

#define CHUNKS 4    // of a row in a slab
#define MMA_ROWS 8
#define MMA_COLUMNS 16

// Where a chunk of a row lies in a slab. Eight lanes move 128 bytes, all banks, at once, whether they are two rows
// (reading) or one chunk of eight rows (filling).
__device__ __forceinline__ int place_in_slab(int row, int chunk) { return row * CHUNKS + (chunk ^ (row >> 1 & 3)); }

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

// What a warp computes: ROWS × COLUMNS sums of a block's tile, out of one slab of each operand at a time. KIND, a struct
// of the rung, says in what: KIND::CHUNK values become the 16 bytes KIND::chunk(values), and KIND::multiply(sum, first,
// second, row) adds the products of a lane's chunk of a row and its two of columns.
template <class KIND, int ROWS, int COLUMNS, class SUM = float>
struct WarpTile {
    SUM sum[COLUMNS / MMA_COLUMNS][ROWS / MMA_ROWS][4] = {};

    // first_row, first_column: the warp's place in the block's tile.
    __device__ __forceinline__ void add(const uint4* rows, const uint4* columns, int first_row, int first_column) {
        const int lane = threadIdx.x % LANES;
        uint4 row[ROWS / MMA_ROWS];
#pragma unroll
        for (int i = 0; i < ROWS / MMA_ROWS; ++i)
            row[i] = rows[place_in_slab(first_row + i * MMA_ROWS + lane / CHUNKS, lane % CHUNKS)];
        add(row, columns, first_column);
    }

    // With the chunks of its rows that this lane has already.
    __device__ __forceinline__ void add(const uint4 (&row)[ROWS / MMA_ROWS], const uint4* columns, int first_column) {
        const int lane = threadIdx.x % LANES;
#pragma unroll
        for (int j = 0; j < COLUMNS / MMA_COLUMNS; ++j) {
            const uint4* packed = columns + (first_column + j * MMA_COLUMNS) * CHUNKS + lane;
            const uint4 first = packed[0], second = packed[LANES];
#pragma unroll
            for (int i = 0; i < ROWS / MMA_ROWS; ++i) KIND::multiply(sum[j][i], first, second, row[i]);
        }
    }
};

// How a block's tile of TILE_ROWS × TILE_COLUMNS sums is computed, WARP_ROWS × WARP_COLUMNS of them by a warp, all in the
// rung's own Kind.
#define DEPTH (CHUNKS * Kind::CHUNK)  // steps of the sum in a slab
#define WARPS_ACROSS (TILE_COLUMNS / WARP_COLUMNS)
#define THREADS (LANES * (TILE_ROWS / WARP_ROWS) * WARPS_ACROSS)
#define LOADS ((TILE_ROWS * CHUNKS + THREADS - 1) / THREADS)      // chunks of rows that a thread fetches of a slab
#define COPIES ((TILE_COLUMNS * CHUNKS + THREADS - 1) / THREADS)  // and copies of columns
#define HELD (WARP_ROWS * WARP_COLUMNS / LANES + LOADS * Kind::CHUNK)      // registers for sums and rows
#define RESIDENT ((HELD >= 100 ? 256 : HELD >= 64 ? 384 : 512) / THREADS)  // blocks to leave registers for
#define BLOCKS_AT_ONCE (RESIDENT ? RESIDENT : 1)
