// Products of eight-bit numbers on tensor cores: mma.sync, 16 rows × 8 columns × 32 steps at a time (compute capability
// 8.0), out of tiles of words as in quantized_tiles.cuh: four numbers along the sum in one.
//
// Tiles lie row by row and column by column, each QUADS words and SPARE more, so that the eight rows which a warp reads
// at once lie in other banks. WARPS_M × WARPS_N warps share a tile of TILE_M × TILE_N sums.
//
// Numbers are signed, and zero points come off behind the sums, as there. The sums of rows and columns that this takes
// are products, too: of a tile with ones, which lie in the registers where they are wanted. They are left out where the
// other side's zero point is 0.
#pragma once
#include "quantized.cuh"

#define QUADS (TILE_K / 4)
#define SPARE 4
#define PITCH (QUADS + SPARE)
#define THREADS (32 * WARPS_M * WARPS_N)
#define ROWS (TILE_M / WARPS_M)
#define COLUMNS (TILE_N / WARPS_N)
#define ONES 0x01010101

__device__ __forceinline__ int signed_byte(const void* __restrict__ from, index_t i, int type) {
    return whole(from, i, type) - (type == DTYPE_UINT8 ? 128 : 0);
}

__device__ __forceinline__ void mma_bytes(int (&sum)[4], const int (&rows)[4], const int (&columns)[2]) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]), "r"(columns[1]));
}

// SIZE rows of a tile, row `first` and on of a matrix whose rows lie `stride` numbers apart, numbers k0 to k0 + TILE_K of
// `length`. 16 at once where that is so for all of them (`aligned`); beyond the matrix zero(row), its zero point.
template <int SIZE, typename Zero>
__device__ __forceinline__ void fetch_rows(int (*tile)[PITCH], const void* __restrict__ from, index_t stride, int first,
                                           int rows, int k0, int length, int type, bool aligned, const Zero& zero) {
    const unsigned flip = type == DTYPE_UINT8 ? 0x80808080 : 0;
    for (int e = threadIdx.x; e < SIZE * (QUADS / 4); e += THREADS) {
        const int row = e / (QUADS / 4), part = e % (QUADS / 4), k = k0 + 16 * part;
        unsigned four[4];
        if (aligned && first + row < rows && k + 16 <= length) {
            const uint4 read = *(const uint4*)((const char*)from + (first + row) * stride + k);
            four[0] = read.x ^ flip, four[1] = read.y ^ flip, four[2] = read.z ^ flip, four[3] = read.w ^ flip;
        } else {
            const int own = zero(first + row);
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                four[q] = 0;
#pragma unroll
                for (int b = 0; b < 4; ++b) {
                    const int at = k + 4 * q + b;
                    const bool there = first + row < rows && at < length;
                    four[q] |= ((there ? signed_byte(from, (first + row) * stride + at, type) : own) & 255) << 8 * b;
                }
            }
        }
        *(uint4*)&tile[row][4 * part] = make_uint4(four[0], four[1], four[2], four[3]);
    }
}

// As fetch_rows, of(row, k) read where it lies; neighbouring threads read neighbouring rows.
template <int SIZE, typename Of>
__device__ __forceinline__ void gather_rows(int (*tile)[PITCH], int k0, const Of& of) {
    for (int e = threadIdx.x; e < SIZE * QUADS; e += THREADS) {
        const int row = e % SIZE, q = e / SIZE;
        int four = 0;
#pragma unroll
        for (int b = 0; b < 4; ++b) four |= (of(row, k0 + 4 * q + b) & 255) << 8 * b;
        tile[row][q] = four;
    }
}

// The sums of a warp. of_rows, of_columns: whether those of rows and columns are wanted as well.
struct WarpSums {
    int both[ROWS / 16][COLUMNS / 8][4], rows[ROWS / 16][4], columns[COLUMNS / 8][4];

    __device__ __forceinline__ WarpSums() {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
#pragma unroll
            for (int i = 0; i < ROWS / 16; ++i) {
                rows[i][e] = 0;
#pragma unroll
                for (int j = 0; j < COLUMNS / 8; ++j) both[i][j][e] = 0;
            }
#pragma unroll
            for (int j = 0; j < COLUMNS / 8; ++j) columns[j][e] = 0;
        }
    }

    static __device__ __forceinline__ int first_row() { return threadIdx.x / 32 / WARPS_N * ROWS; }
    static __device__ __forceinline__ int first_column() { return threadIdx.x / 32 % WARPS_N * COLUMNS; }

    __device__ __forceinline__ void add(const int (*left)[PITCH], const int (*right)[PITCH], bool of_rows,
                                        bool of_columns) {
        const int group = threadIdx.x % 32 / 4, within = threadIdx.x % 4;
        const int ones_left[4] = {ONES, ONES, ONES, ONES}, ones_right[2] = {ONES, ONES};
#pragma unroll
        for (int q = 0; q < QUADS; q += 8) {
            int l[ROWS / 16][4], r[COLUMNS / 8][2];
#pragma unroll
            for (int i = 0; i < ROWS / 16; ++i) {
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    l[i][e] = left[first_row() + 16 * i + group + e % 2 * 8][q + within + e / 2 * 4];
                if (of_rows) mma_bytes(rows[i], l[i], ones_right);
            }
#pragma unroll
            for (int j = 0; j < COLUMNS / 8; ++j) {
#pragma unroll
                for (int e = 0; e < 2; ++e) r[j][e] = right[first_column() + 8 * j + group][q + within + e * 4];
                if (of_columns) mma_bytes(columns[j], ones_left, r[j]);
            }
#pragma unroll
            for (int i = 0; i < ROWS / 16; ++i) {
#pragma unroll
                for (int j = 0; j < COLUMNS / 8; ++j) mma_bytes(both[i][j], l[i], r[j]);
            }
        }
    }

    // give(row, column, sum of products, sum of the row, of the column) for each sum of this thread.
    template <typename Give>
    __device__ __forceinline__ void each(const Give& give) const {
        const int group = threadIdx.x % 32 / 4, within = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < ROWS / 16; ++i) {
#pragma unroll
            for (int j = 0; j < COLUMNS / 8; ++j) {
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    give(first_row() + 16 * i + group + e / 2 * 8, first_column() + 8 * j + 2 * within + e % 2,
                         both[i][j][e], rows[i][e], columns[j][e]);
            }
        }
    }
};
