// One tile of a matrix product that is a stage of its own: TILE_M × TILE_N elements a block, THREAD_M × THREAD_N a
// thread, TILE_K steps of the sum at a time, as those defines say.
#pragma once
#include "sums.cuh"
#include "tiles.cuh"

static_assert(BANDS <= 2 * TILE_K, "a row of every band must fit where a tile of the right factor was");

struct __align__(16) Factors {
    float left[2][TILE_K][TILE_M + 4], right[2][TILE_K][TILE_N + 4];
};

// The product of `left` (rows × steps, `lead_left` from row to row, read V at once) and `right` (steps ×
// columns, every row beginning on 16 bytes), both from the tile's corner on: calls store(row, column, sum) for each
// element of the tile that exists.
template <int V, class Store>
__device__ __forceinline__ void multiply(Factors& tile, const float* left, index_t lead_left, const float* right,
                                         index_t lead_right, int rows, int columns, int steps, Store store) {
    // A thread's elements lie in groups of ROWS × COLUMNS, spread over the tile so that the threads of a warp read
    // neighbouring 16 bytes.
    const int band = band_of(threadIdx.x), row = band * ROWS;
    const int column = strip_of(threadIdx.x) * COLUMNS;
    Operand<TILE_M, TILE_K, true, V, THREADS> next_left;
    Operand<TILE_N, TILE_K, false, 4, THREADS> next_right;
    float sum[THREAD_M][THREAD_N] = {};
    Wholes<THREAD_M * THREAD_N> wholes(steps);

    auto fetch = [&](int k0) {
        next_left.fetch(left + k0, lead_left, rows, steps - k0);
        next_right.fetch(right + k0 * lead_right, lead_right, columns, steps - k0);
    };
    fetch(0);
    next_left.keep(tile.left[0]);
    next_right.keep(tile.right[0]);
    __syncthreads();
    for (int k0 = 0, slot = 0; k0 < steps;) {
        if (k0) wholes.take(&sum[0][0], k0 / wholes.TERMS - 1);
        for (const int last = min(steps, k0 + wholes.TERMS); k0 < last; k0 += TILE_K, slot ^= 1) {
            fetch(k0 + TILE_K);
#pragma unroll
            for (int k = 0; k < TILE_K; ++k) {
                Pack<ROWS> u[THREAD_M / ROWS];
                Pack<COLUMNS> v[THREAD_N / COLUMNS];
#pragma unroll
                for (int i = 0; i < THREAD_M / ROWS; ++i)
                    u[i] = pack_at<ROWS>(&tile.left[slot][k][row + i * (BANDS * ROWS)]);
#pragma unroll
                for (int j = 0; j < THREAD_N / COLUMNS; ++j)
                    v[j] = pack_at<COLUMNS>(&tile.right[slot][k][column + j * (ACROSS * COLUMNS)]);
#pragma unroll
                for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
                    for (int j = 0; j < THREAD_N; ++j)
                        sum[i][j] += u[i / ROWS].v[i % ROWS] * v[j / COLUMNS].v[j % COLUMNS];
            }
            next_left.keep(tile.left[slot ^ 1]);
            next_right.keep(tile.right[slot ^ 1]);
            __syncthreads();
        }
    }
    wholes.give(&sum[0][0], (steps - 1) / wholes.TERMS);
    // Out through shared memory, a row of every band at a time: neighbouring threads then store neighbours.
    float(*out)[TILE_N + 4] = tile.right[0];
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
        for (int j = 0; j < THREAD_N; ++j)
            out[band][column + j / COLUMNS * (ACROSS * COLUMNS) + j % COLUMNS] = sum[i][j];
        __syncthreads();
#pragma unroll 1
        for (int e = threadIdx.x; e < BANDS * TILE_N; e += THREADS) {
            const int r = e / TILE_N * ROWS + i / ROWS * (BANDS * ROWS) + i % ROWS, c = e % TILE_N;
            if (r < rows && c < columns) store(r, c, out[e / TILE_N][c]);
        }
        __syncthreads();
    }
}
