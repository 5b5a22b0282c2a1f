/*
op = "gemm"
rung = 3
name = "register_tiles"
idea = "Each thread keeps a small square of outputs in registers, so that a value from shared memory serves several multiplications; the next tile is fetched while this one is multiplied, and the tile fits the problem."
launch = "gemm_fitted"
[defines]
TILE_M = 64   # this line and the five below are what the largest problems get
TILE_N = 64
THREAD_M = 4  # rows of y a thread
THREAD_N = 4  # columns of y a thread
TRANS_A = 0   # how a and b lie is compiled in: an index that is decided at run time takes registers
TRANS_B = 0
TILE_K = 16
*/
#include "common.cuh"
#include "sums.cuh"

#define THREADS ((TILE_M / THREAD_M) * (TILE_N / THREAD_N))
#define LEFT_LOADS (TILE_M * TILE_K / THREADS)
#define RIGHT_LOADS (TILE_N * TILE_K / THREADS)
static_assert(TILE_M * TILE_K % THREADS == 0 && TILE_N * TILE_K % THREADS == 0,
              "the threads of a block must share both tiles evenly");
static_assert(THREADS % TILE_K == 0 && THREADS % (TRANS_A ? TILE_M : TILE_K) == 0 &&
                  THREADS % (TRANS_B ? TILE_K : TILE_N) == 0,
              "a thread must keep to one row or one column of a tile");

// The parameter is a constant of the grid, for that costs fewer registers here than one that is merely passed by value.
extern "C" __global__ void __launch_bounds__(THREADS)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, const __grid_constant__ GemmParams p) {
    // Two of each: one is multiplied while the next is written, so a step needs one barrier. Rows are four longer
    // than the tile, which spreads a warp's writes over the banks and keeps the 16-byte reads aligned.
    __shared__ __align__(16) float left[2][TILE_K][TILE_M + 4];
    __shared__ __align__(16) float right[2][TILE_K][TILE_N + 4];

    const int across = (p.n + TILE_N - 1) / TILE_N;
    const int first_row = blockIdx.x / across * TILE_M;
    const int first_column = blockIdx.x % across * TILE_N;
    const int thread = threadIdx.x;
    const int row = thread / (TILE_N / THREAD_N) * THREAD_M;
    const int column = thread % (TILE_N / THREAD_N) * THREAD_N;
    const int steps = (p.k + TILE_K - 1) / TILE_K;

    // What this thread fetches of a: from element (left_i, left_j) of the tile on, a load every left_down rows or
    // left_right columns, whichever way neighbouring threads lie side by side; and of b alike.
    const int left_i = TRANS_A ? thread % TILE_M : thread / TILE_K;
    const int left_j = TRANS_A ? thread / TILE_M : thread % TILE_K;
    const int left_down = TRANS_A ? 0 : THREADS / TILE_K, left_right = TRANS_A ? THREADS / TILE_M : 0;
    const int right_i = TRANS_B ? thread / TILE_K : thread % TILE_N;
    const int right_j = TRANS_B ? thread % TILE_K : thread / TILE_N;
    const int right_down = TRANS_B ? THREADS / TILE_K : 0, right_right = TRANS_B ? 0 : THREADS / TILE_N;
    const index_t left_start =
        TRANS_A ? (index_t)left_j * p.m + first_row + left_i : (index_t)(first_row + left_i) * p.k + left_j;
    const index_t right_start =
        TRANS_B ? (index_t)(first_column + right_i) * p.k + right_j : (index_t)right_j * p.n + first_column + right_i;

    for (int matrix = blockIdx.z; matrix < p.batch; matrix += gridDim.z) {
        const float* pa = a + matrix * p.stride_a + left_start;
        const float* pb = b + matrix * p.stride_b + right_start;
        float next_left[LEFT_LOADS], next_right[RIGHT_LOADS];
        float sum[THREAD_M][THREAD_N] = {};
        Wholes<THREAD_M * THREAD_N> wholes(p.k);

        auto fetch = [&](int k0) {
#pragma unroll
            for (int l = 0; l < LEFT_LOADS; ++l) {
                const bool inside = first_row + left_i + l * left_down < p.m && k0 + left_j + l * left_right < p.k;
                next_left[l] = inside ? pa[l * (TRANS_A ? left_right * p.m : left_down * p.k)] : 0.0f;
            }
#pragma unroll
            for (int l = 0; l < RIGHT_LOADS; ++l) {
                const bool inside =
                    first_column + right_i + l * right_down < p.n && k0 + right_j + l * right_right < p.k;
                next_right[l] = inside ? pb[l * (TRANS_B ? right_down * p.k : right_right * p.n)] : 0.0f;
            }
            pa += (index_t)TILE_K * (TRANS_A ? p.m : 1);
            pb += (index_t)TILE_K * (TRANS_B ? 1 : p.n);
        };
        auto keep = [&](int slot) {
#pragma unroll
            for (int l = 0; l < LEFT_LOADS; ++l)
                left[slot][left_j + l * left_right][left_i + l * left_down] = next_left[l];
#pragma unroll
            for (int l = 0; l < RIGHT_LOADS; ++l)
                right[slot][right_j + l * right_right][right_i + l * right_down] = next_right[l];
        };

        fetch(0);
        keep(0);
        __syncthreads();  // the first tiles are whole
        constexpr int OF_PIECE = wholes.TERMS / TILE_K;  // steps
        for (int step = 0; step < steps;) {
            if (step) wholes.take(&sum[0][0], step / OF_PIECE - 1);
            for (const int last = min(steps, step + OF_PIECE); step < last; ++step) {
                const int slot = step & 1;
                if (step + 1 < steps) fetch((step + 1) * TILE_K);
#pragma unroll
                for (int j = 0; j < TILE_K; ++j) {
                    float u[THREAD_M], v[THREAD_N];
#pragma unroll
                    for (int i = 0; i < THREAD_M; ++i) u[i] = left[slot][j][row + i];
#pragma unroll
                    for (int i = 0; i < THREAD_N; ++i) v[i] = right[slot][j][column + i];
#pragma unroll
                    for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
                        for (int l = 0; l < THREAD_N; ++l) sum[i][l] += u[i] * v[l];
                }
                if (step + 1 < steps) keep(slot ^ 1);
                __syncthreads();  // the next tiles are whole, and nobody needs these any more
            }
        }
        wholes.give(&sum[0][0], (steps - 1) / OF_PIECE);
#pragma unroll
        for (int i = 0; i < THREAD_M; ++i) {
            const int r = first_row + row + i;
            if (r >= p.m) break;
#pragma unroll
            for (int l = 0; l < THREAD_N; ++l) {
                const int c = first_column + column + l;
                if (c >= p.n) break;
                float v = p.alpha * sum[i][l];
                if (bias) v += p.beta * bias[r * p.bias_stride_m + c * p.bias_stride_n];
                y[((index_t)matrix * p.m + r) * p.n + c] = activate(v, p.activation);
            }
        }
    }
}
