/*
op = "gemm"
rung = 8
name = "sliced_sum"
idea = "Few outputs and a long sum: the threads of a block share not only the tile but also each step of its sum, so that a thread keeps many outputs and there are warps enough all the same; tiles arrive by asynchronous copies, several steps ahead."
launch = "gemm_sliced"
side = true
packs = true
overlaps = true
[defines]
THREAD_M = 8  # outputs a thread; this line and those below: the launch fits them to the product
THREAD_N = 8
SLICES = 4    # groups of ACROSS × ACROSS threads, each with the whole tile and FOUR steps of the sum
STAGES = 4    # tiles in shared memory at once
PARTS = 1     # of the sum, a block each; with one there is no second kernel
[needs]
compute_capability = "8.0"
trans_a = false
batch = 1
multiple_of = {k = 4}
*/
#include "async.cuh"
#include "common.cuh"
#include "overlap.cuh"
#include "sums.cuh"

#define FOUR 4  // steps of the sum that one load from shared memory brings
#define ACROSS 8
#define GROUP (ACROSS * ACROSS)
#define THREADS (SLICES * GROUP)
#define TILE_M (ACROSS * THREAD_M)
#define TILE_N (ACROSS * THREAD_N)
#define TILE_K (FOUR * SLICES)
#define ROWS (TILE_M + TILE_N)
#define PITCH (TILE_K + FOUR)  // so that eight rows one below the other lie in all the banks
#define LANES 32
#define SHARERS 4  // warps that share the parts of 32 outputs
#define LEFT_COPIES (TILE_M * SLICES)
#define RIGHT_COPIES (TILE_N * SLICES)
static_assert(SLICES / 2 * TILE_M * TILE_N <= STAGES * ROWS * PITCH, "half of the slices' sums must fit");
static_assert(TILE_M * TILE_N <= STAGES * ROWS * PITCH, "a tile's sums must fit");
static_assert((SLICES & (SLICES - 1)) == 0, "slices are added in pairs");

// b is packed: (n, k), filled up with zeros to whole tiles.
extern "C" __global__ void __launch_bounds__(THREADS, 512 / THREADS)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, float* __restrict__ workspace, const GemmParams p) {
    // Tiles of a and, behind their rows, of b, STAGES of them in turn; at the end the sums, first of half the slices.
    __shared__ __align__(16) float tiles[STAGES * ROWS * PITCH];

    const int across = (p.n + TILE_N - 1) / TILE_N;
    const int first_row = blockIdx.x / across * TILE_M, first_column = blockIdx.x % across * TILE_N;
    const int slice = threadIdx.x / GROUP, down = threadIdx.x % GROUP / ACROSS, right = threadIdx.x % ACROSS;
    // This block's part of the sum: whole tiles, their number the same for all parts or one less.
    const int all = (p.k + TILE_K - 1) / TILE_K;
    const int first = (int)((index_t)all * blockIdx.y / PARTS);
    const int steps = (int)((index_t)all * (blockIdx.y + 1) / PARTS) - first;
    const index_t lead = (index_t)all * TILE_K;
    const float* pb = b + first_column * lead + first * TILE_K;

    auto copy_right = [&](int step) {
        float* to = tiles + step % STAGES * (ROWS * PITCH) + TILE_M * PITCH;
#pragma unroll
        for (int e = threadIdx.x; e < RIGHT_COPIES; e += THREADS) {
            const int i = e / SLICES, j = e % SLICES * FOUR;
            copy_async_16(to + i * PITCH + j, pb + i * lead + step * TILE_K + j);
        }
    };
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s)
        if (s < steps) copy_right(s);  // weights, which the kernel in front does not write
    wait_for_previous();
    a = written(a);
    workspace = written(workspace);
    const float* pa = a + (index_t)first_row * p.k + first * TILE_K;
    const int rows = p.m - first_row, reach = p.k - first * TILE_K;
    auto copy_left = [&](int step) {
        float* to = tiles + step % STAGES * (ROWS * PITCH);
#pragma unroll
        for (int e = threadIdx.x; e < LEFT_COPIES; e += THREADS) {
            const int i = e / SLICES, j = e % SLICES * FOUR;
            const bool inside = i < rows && step * TILE_K + j < reach;
            copy_async_16(to + i * PITCH + j, inside ? pa + (index_t)i * p.k + step * TILE_K + j : a, inside);
        }
    };
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps) copy_left(s);
        close_group();
    }

    float sum[THREAD_M][THREAD_N] = {};
    Wholes<THREAD_M * THREAD_N> wholes(p.k);
    constexpr int OF_PIECE = wholes.TERMS / FOUR;  // steps
    for (int step = 0; step < steps; ++step) {
        wait_for_all_but<STAGES - 2>();
        __syncthreads();  // this tile has come, and nobody reads the one whose place the next takes
        if (step + STAGES - 1 < steps) {
            copy_left(step + STAGES - 1);
            copy_right(step + STAGES - 1);
        }
        close_group();
        const float* tile = tiles + step % STAGES * (ROWS * PITCH) + slice * FOUR;
        float4 u[THREAD_M];
#pragma unroll
        for (int i = 0; i < THREAD_M; ++i)
            u[i] = *reinterpret_cast<const float4*>(tile + (down + i * ACROSS) * PITCH);
#pragma unroll
        for (int j = 0; j < THREAD_N; ++j) {
            const float4 v = *reinterpret_cast<const float4*>(tile + (TILE_M + right + j * ACROSS) * PITCH);
#pragma unroll
            for (int i = 0; i < THREAD_M; ++i) sum[i][j] += u[i].x * v.x;
#pragma unroll
            for (int i = 0; i < THREAD_M; ++i) sum[i][j] += u[i].y * v.y;
#pragma unroll
            for (int i = 0; i < THREAD_M; ++i) sum[i][j] += u[i].z * v.z;
#pragma unroll
            for (int i = 0; i < THREAD_M; ++i) sum[i][j] += u[i].w * v.w;
        }
        if ((step + 1) % OF_PIECE == 0) wholes.take(&sum[0][0], step / OF_PIECE);
    }
    wholes.give(&sum[0][0], steps / OF_PIECE);
    let_next_begin();

    // The slices' sums together, the upper half's to the lower half's, in the same order each time.
    const int thread = threadIdx.x % GROUP;
#pragma unroll
    for (int half = SLICES / 2; half > 0; half /= 2) {
        __syncthreads();  // nobody needs the tiles, or the sums of the round before, any more
        float* held = tiles + slice % half * (TILE_M * TILE_N) + thread;
        if (slice >= half && slice < 2 * half) {
#pragma unroll
            for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
                for (int j = 0; j < THREAD_N; ++j) held[(i * THREAD_N + j) * GROUP] = sum[i][j];
        }
        __syncthreads();  // the upper half's sums are there
        if (slice < half) {
#pragma unroll
            for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
                for (int j = 0; j < THREAD_N; ++j) sum[i][j] += held[(i * THREAD_N + j) * GROUP];
        }
    }
    // Out through shared memory, so that all threads write, neighbours beside each other.
    __syncthreads();  // the last of the slices' sums are read
    if (slice == 0) {
#pragma unroll
        for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
            for (int j = 0; j < THREAD_N; ++j)
                tiles[(down + i * ACROSS) * TILE_N + right + j * ACROSS] = sum[i][j];
    }
    __syncthreads();  // the tile's sums are whole before other threads write them out
#pragma unroll 4
    for (int e = threadIdx.x; e < TILE_M * TILE_N; e += THREADS) {
        const int r = first_row + e / TILE_N, c = first_column + e % TILE_N;
        if (r >= p.m || c >= p.n) continue;
        const index_t place = (index_t)r * p.n + c;
        float v = tiles[e];
        if (PARTS > 1) {
            workspace[blockIdx.y * ((index_t)p.m * p.n) + place] = v;
            continue;
        }
        v *= p.alpha;
        if (bias) v += p.beta * bias[r * p.bias_stride_m + c * p.bias_stride_n];
        y[place] = activate(v, p.activation);
    }
}

extern "C" __global__ void __launch_bounds__(SHARERS * LANES)
    gemm_reduce(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
                float* __restrict__ y, float* __restrict__ workspace, const GemmParams p) {
    __shared__ float shares[SHARERS][LANES];  // of an output a column: a warp reads neighbours
    const index_t total = (index_t)p.m * p.n;
    const int share = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const index_t i = (index_t)blockIdx.x * LANES + lane;
    wait_for_previous();
    a = written(a);
    workspace = written(workspace);
    float sum = 0.0f;
#pragma unroll 8
    for (int part = share; part < PARTS && i < total; part += SHARERS) sum += workspace[part * total + i];
    let_next_begin();
    shares[share][lane] = sum;
    __syncthreads();  // all shares are there before the first warp adds them
    if (share > 0 || i >= total) return;
#pragma unroll
    for (int s = 1; s < SHARERS; ++s) sum += shares[s][lane];  // in the same order each time
    float w = p.alpha * sum;
    if (bias) w += p.beta * bias[i / p.n * p.bias_stride_m + i % p.n * p.bias_stride_n];
    y[i] = activate(w, p.activation);
}
