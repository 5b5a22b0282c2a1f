// Tiles of eight-bit numbers in shared memory, four of which along the sum lie in a word: one instruction (dp4a)
// multiplies four pairs and adds them up.
//
// dp4a takes signed bytes: of uint8 128 is taken off, of its zero point as well. The zero points come off behind
// the sums: Σ (l − a) (r − b) = Σ l r − a Σ r − b Σ l + k a b, exact in arithmetic modulo 2³². What lies beyond a
// matrix or an image is its zero point, and so adds nothing.
#pragma once
#include "quantized.cuh"

#define QUADS (TILE_K / 4)  // words along the sum
#define SIDE 16             // threads along either side of a tile, EACH outputs a thread along it
#define EACH (TILE / SIDE)
#define THREADS (SIDE * SIDE)

__device__ __forceinline__ int signed_byte(const void* __restrict__ from, index_t i, int type) {
    return whole(from, i, type) - (type == DTYPE_UINT8 ? 128 : 0);
}

// of(i, k): number k of row or column i of the tile. Neighbouring threads read along k, or along i.
template <bool ALONG_K, typename Of>
__device__ __forceinline__ void fetch(int (*tile)[TILE + 1], int k0, const Of& of) {
    for (int e = threadIdx.x; e < TILE * QUADS; e += THREADS) {
        const int i = ALONG_K ? e / QUADS : e % TILE, q = ALONG_K ? e % QUADS : e / TILE;
        int four = 0;
#pragma unroll
        for (int b = 0; b < 4; ++b) four |= (of(i, k0 + 4 * q + b) & 255) << 8 * b;
        tile[q][i] = four;
    }
}

// The sums of a thread: rows threadIdx.x / SIDE + i · SIDE, columns threadIdx.x % SIDE + j · SIDE.
struct Sums {
    int both[EACH][EACH], rows[EACH], columns[EACH];

    __device__ __forceinline__ Sums() {
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            rows[i] = columns[i] = 0;
#pragma unroll
            for (int j = 0; j < EACH; ++j) both[i][j] = 0;
        }
    }

    __device__ __forceinline__ void add(const int (*left)[TILE + 1], const int (*right)[TILE + 1]) {
        const int row = threadIdx.x / SIDE, column = threadIdx.x % SIDE;
#pragma unroll
        for (int q = 0; q < QUADS; ++q) {
            int l[EACH], r[EACH];
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                l[i] = left[q][row + i * SIDE];
                r[i] = right[q][column + i * SIDE];
                rows[i] = __dp4a(l[i], 0x01010101, rows[i]);
                columns[i] = __dp4a(r[i], 0x01010101, columns[i]);
            }
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
#pragma unroll
                for (int j = 0; j < EACH; ++j) both[i][j] = __dp4a(l[i], r[j], both[i][j]);
            }
        }
    }

    // terms: numbers that were added up, those beyond the sum among them.
    __device__ __forceinline__ int of(int i, int j, int row_zero, int column_zero, int terms) const {
        return both[i][j] - row_zero * columns[j] - column_zero * rows[i] + terms * row_zero * column_zero;
    }
};
