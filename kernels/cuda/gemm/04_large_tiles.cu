/*
op = "gemm"
rung = 4
name = "large_tiles"
idea = "Up to 8 × 8 outputs a thread out of tiles up to 128 × 128, every tile read and every fragment loaded 16 bytes at a time, so that a load serves sixteen multiplications."
launch = "gemm_large"
[defines]
TILE_M = 128
TILE_N = 128
THREAD_M = 8
THREAD_N = 8
TILE_K = 8
TRANS_A = 0
TRANS_B = 1
VECTOR_A = 4  # elements of a at once: 4 where its rows begin on 16 bytes, else 1
VECTOR_B = 4
*/
#include "common.cuh"
#include "sums.cuh"
#include "tiles.cuh"

static_assert(BANDS <= 2 * TILE_K, "a row of every band must fit where a tile of b was");

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, const __grid_constant__ GemmParams given) {
    const GemmParams p = given;  // costs fewer registers than a parameter that is no constant of the grid
    // Two of each, so that a step needs one barrier; rows longer than the tile, so that a warp's writes fall into
    // many banks and 16-byte reads stay aligned.
    __shared__ __align__(16) float left[2][TILE_K][TILE_M + 4];
    __shared__ __align__(16) float right[2][TILE_K][TILE_N + 4];

    const int across = (p.n + TILE_N - 1) / TILE_N;
    const int first_row = blockIdx.x / across * TILE_M;
    const int first_column = blockIdx.x % across * TILE_N;
    // A thread's outputs lie in groups of ROWS × COLUMNS, spread over the tile so that the threads of a warp read
    // neighbouring 16 bytes.
    const int band = band_of(threadIdx.x), row = band * ROWS;
    const int column = strip_of(threadIdx.x) * COLUMNS;
    const index_t lead_a = TRANS_A ? p.m : p.k, lead_b = TRANS_B ? p.k : p.n;

    for (int matrix = blockIdx.z; matrix < p.batch; matrix += gridDim.z) {
        const float* pa = a + matrix * p.stride_a + (TRANS_A ? first_row : first_row * lead_a);
        const float* pb = b + matrix * p.stride_b + (TRANS_B ? first_column * lead_b : first_column);
        Operand<TILE_M, TILE_K, !TRANS_A, VECTOR_A, THREADS> next_left;
        Operand<TILE_N, TILE_K, TRANS_B, VECTOR_B, THREADS> next_right;
        float sum[THREAD_M][THREAD_N] = {};
        Wholes<THREAD_M * THREAD_N> wholes(given.k);

        auto fetch = [&](int k0) {
            next_left.fetch(pa + (TRANS_A ? k0 * lead_a : k0), lead_a, p.m - first_row, p.k - k0);
            next_right.fetch(pb + (TRANS_B ? k0 : k0 * lead_b), lead_b, p.n - first_column, p.k - k0);
        };
        fetch(0);
        next_left.keep(left[0]);
        next_right.keep(right[0]);
        __syncthreads();  // the first tiles are whole
        for (int k0 = 0, slot = 0; k0 < p.k;) {
            if (k0) wholes.take(&sum[0][0], k0 / wholes.TERMS - 1);
            for (const int last = min(p.k, k0 + wholes.TERMS); k0 < last; k0 += TILE_K, slot ^= 1) {
                const bool more = k0 + TILE_K < p.k;
                if (more) fetch(k0 + TILE_K);
#pragma unroll
                for (int j = 0; j < TILE_K; ++j) {
                    Pack<ROWS> u[THREAD_M / ROWS];
                    Pack<COLUMNS> v[THREAD_N / COLUMNS];
#pragma unroll
                    for (int i = 0; i < THREAD_M / ROWS; ++i)
                        u[i] = pack_at<ROWS>(&left[slot][j][row + i * (BANDS * ROWS)]);
#pragma unroll
                    for (int l = 0; l < THREAD_N / COLUMNS; ++l)
                        v[l] = pack_at<COLUMNS>(&right[slot][j][column + l * (ACROSS * COLUMNS)]);
#pragma unroll
                    for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
                        for (int l = 0; l < THREAD_N; ++l)
                            sum[i][l] += u[i / ROWS].v[i % ROWS] * v[l / COLUMNS].v[l % COLUMNS];
                }
                if (more) {
                    next_left.keep(left[slot ^ 1]);
                    next_right.keep(right[slot ^ 1]);
                }
                __syncthreads();  // the next tiles are whole, and nobody needs these any more
            }
        }
        wholes.give(&sum[0][0], (p.k - 1) / wholes.TERMS);
        // Out through shared memory, a row of every band at a time: neighbouring threads then write neighbouring
        // elements, and no thread works out 64 places.
        float(*out)[TILE_N + 4] = right[0];
#pragma unroll
        for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
            for (int l = 0; l < THREAD_N; ++l)
                out[band][column + l / COLUMNS * (ACROSS * COLUMNS) + l % COLUMNS] = sum[i][l];
            __syncthreads();  // the rows are whole before other threads write them out
#pragma unroll 1
            for (int e = threadIdx.x; e < BANDS * TILE_N; e += THREADS) {
                const int r = first_row + e / TILE_N * ROWS + i / ROWS * (BANDS * ROWS) + i % ROWS;
                const int c = first_column + e % TILE_N;
                if (r >= p.m || c >= p.n) continue;
                float v = p.alpha * out[e / TILE_N][e % TILE_N];
                if (bias) v += p.beta * bias[r * p.bias_stride_m + c * p.bias_stride_n];
                y[((index_t)matrix * p.m + r) * p.n + c] = activate(v, p.activation);
            }
            __syncthreads();  // and written out before the next ones take their place
        }
    }
}
