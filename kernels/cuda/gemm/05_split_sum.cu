/*
op = "gemm"
rung = 5
name = "split_sum"
idea = "Where the tiles of y are too few to fill the device, the sum too is cut into parts, a block each; a second kernel adds the parts, always in the same order."
launch = "gemm_split"
overlaps = true
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
PARTS = 1     # of the sum; with one there is no second kernel
*/
#include "common.cuh"
#include "overlap.cuh"
#include "sums.cuh"
#include "tiles.cuh"

static_assert(BANDS <= 2 * TILE_K, "a row of every band must fit where a tile of b was");

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, float* __restrict__ workspace, const __grid_constant__ GemmParams given) {
    wait_for_previous();
    a = written(a);
    workspace = written(workspace);
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
    // This block's part of the sum: whole steps, their number the same for all parts or one less.
    const int steps = (p.k + TILE_K - 1) / TILE_K;
    const int begin = (int)((index_t)steps * blockIdx.y / PARTS) * TILE_K;
    const int end = min(p.k, (int)((index_t)steps * (blockIdx.y + 1) / PARTS) * TILE_K);
    const index_t lead_a = TRANS_A ? p.m : p.k, lead_b = TRANS_B ? p.k : p.n;

    for (int matrix = blockIdx.z; matrix < p.batch; matrix += gridDim.z) {
        const float* pa = a + matrix * p.stride_a + (TRANS_A ? first_row + begin * lead_a : first_row * lead_a + begin);
        const float* pb =
            b + matrix * p.stride_b + (TRANS_B ? first_column * lead_b + begin : first_column + begin * lead_b);
        int remain = end - begin;  // steps that are not fetched yet
        Operand<TILE_M, TILE_K, !TRANS_A, VECTOR_A, THREADS> next_left;
        Operand<TILE_N, TILE_K, TRANS_B, VECTOR_B, THREADS> next_right;
        float sum[THREAD_M][THREAD_N] = {};
        Wholes<THREAD_M * THREAD_N> wholes(given.k);

        auto fetch = [&] {
            next_left.fetch(pa, lead_a, p.m - first_row, remain);
            next_right.fetch(pb, lead_b, p.n - first_column, remain);
            pa += TRANS_A ? TILE_K * lead_a : TILE_K;
            pb += TRANS_B ? TILE_K : TILE_K * lead_b;
            remain -= TILE_K;
        };
        fetch();
        next_left.keep(left[0]);
        next_right.keep(right[0]);
        __syncthreads();  // the first tiles are whole
        int pieces = 0;
        for (int slot = 0; remain > -TILE_K; ++pieces) {
            if (pieces) wholes.take(&sum[0][0], pieces - 1);
            for (const int last = max(remain - wholes.TERMS, -TILE_K); remain > last; slot ^= 1) {
                fetch();
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
                next_left.keep(left[slot ^ 1]);
                next_right.keep(right[slot ^ 1]);
                __syncthreads();  // the next tiles are whole, and nobody needs these any more
            }
        }
        wholes.give(&sum[0][0], max(pieces - 1, 0));
        let_next_begin();
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
                const index_t place = ((index_t)matrix * p.m + r) * p.n + c;
                float v = out[e / TILE_N][e % TILE_N];
                if (PARTS > 1) {
                    workspace[(index_t)blockIdx.y * p.batch * p.m * p.n + place] = v;
                    continue;
                }
                v *= p.alpha;
                if (bias) v += p.beta * bias[r * p.bias_stride_m + c * p.bias_stride_n];
                y[place] = activate(v, p.activation);
            }
            __syncthreads();  // and written out before the next ones take their place
        }
    }
}

extern "C" __global__ void gemm_reduce(const float* __restrict__ a, const float* __restrict__ b,
                                       const float* __restrict__ bias, float* __restrict__ y,
                                       float* __restrict__ workspace, const GemmParams p) {
    let_next_begin();
    wait_for_previous();
    a = written(a);
    workspace = written(workspace);
    const index_t total = (index_t)p.batch * p.m * p.n;
    const index_t i = first_element();
    if (i >= total) return;
    float sum = 0.0f;
#pragma unroll 16
    for (int part = 0; part < PARTS; ++part) sum += workspace[part * total + i];
    float w = p.alpha * sum;
    if (bias) w += p.beta * bias[i / p.n % p.m * p.bias_stride_m + i % p.n * p.bias_stride_n];
    y[i] = activate(w, p.activation);
}
