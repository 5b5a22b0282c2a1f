/*
op = "gemm"
rung = 9
name = "cluster_sum"
idea = "Few rows and a long sum: each thread takes four steps of the sum and a tile of outputs, so that all of a and b is on its way at once and nothing waits for a tile; the blocks of a cluster share the sum and add up out of each other's shared memory, with no second kernel."
launch = "gemm_cluster"
side = true
overlaps = true
[defines]
ROWS = 8      # of y a block; this line and those below: the launch fits them to the product
COLUMNS = 8
THREADS = 256
PARTS = 8     # of the sum, a block of the cluster each
LENGTH = 4096 # of the sum
[needs]
compute_capability = "9.0"
trans_a = false
trans_b = true
batch = 1
m_max = 512
multiple_of = {k = 4}
*/
#include "cluster.cuh"
#include "common.cuh"
#include "overlap.cuh"
#include "sums.cuh"
#include "warp.cuh"

#define FOUR 4  // steps of the sum that 16 bytes bring
#define STEPS (LENGTH / FOUR)
#define SUMS (ROWS * COLUMNS)
#define OF_A_LANE ((SUMS + LANES - 1) / LANES)
#define OF_A_BLOCK ((SUMS + PARTS - 1) / PARTS)
#define SHARED (OF_A_LANE * LANES)  // sums, and zeros up to as many for each lane

// Two lanes add what they have, one half each, and so on, until every lane has its own OF_A_LANE sums of the warp.
template <int HALF, int APART>
__device__ __forceinline__ void add_lanes(float (&sum)[SHARED], int lane) {
    const bool upper = lane & APART;
#pragma unroll
    for (int i = 0; i < HALF; ++i) {
        const float given = upper ? sum[i] : sum[i + HALF];
        sum[i] = (upper ? sum[i + HALF] : sum[i]) + __shfl_xor_sync(ALL_LANES, given, APART);
    }
    if constexpr (APART > 1) add_lanes<HALF / 2, APART / 2>(sum, lane);
}

#if PARTS > 1
#define CLUSTER __cluster_dims__(PARTS, 1, 1)
#else
#define CLUSTER
#endif

// b is (n, k), so that a column of the product reads a contiguous row of it. A cluster a ROWS × COLUMNS piece of y:
// grid = (columns · PARTS, rows).
extern "C" __global__ void CLUSTER __launch_bounds__(THREADS)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, const GemmParams p) {
    __shared__ float of_warps[THREADS / LANES][SHARED];
    __shared__ float of_all[SUMS];  // of this block, read by the others of the cluster

    const int part = blockIdx.x % PARTS, lane = threadIdx.x % LANES;
    const int row = blockIdx.y * ROWS, column = blockIdx.x / PARTS * COLUMNS;
    const int rows = p.m - row, columns = p.n - column;  // that there are of the piece
    const float4* pa = reinterpret_cast<const float4*>(a + (index_t)row * LENGTH);
    const float4* pb = reinterpret_cast<const float4*>(b + (index_t)column * LENGTH);
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    int j = part * THREADS + threadIdx.x;
    float4 u[ROWS], v[COLUMNS], later[COLUMNS];
    if (j < STEPS) {  // weights, which the kernel in front does not write
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) v[c] = c < columns ? pb[c * STEPS + j] : zero;
    }
    let_next_begin();
    wait_for_previous();
    a = written(a);

    float sum[SHARED] = {};
    constexpr int TERMS = 512, OF_PIECE = TERMS / FOUR * PARTS * THREADS;  // fours of a round of all threads
    Wholes<SHARED, TERMS> wholes(p.k);
    const int first = j;
    if (j < STEPS) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) u[r] = r < rows ? pa[r * STEPS + j] : zero;
#pragma unroll 2
        for (; j < STEPS; j += PARTS * THREADS) {
            const int next = j + PARTS * THREADS;
            const bool more = next < STEPS;
            if (more) {
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c) later[c] = c < columns ? pb[c * STEPS + next] : zero;
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c) {
                    sum[r * COLUMNS + c] += u[r].x * v[c].x;
                    sum[r * COLUMNS + c] += u[r].y * v[c].y;
                    sum[r * COLUMNS + c] += u[r].z * v[c].z;
                    sum[r * COLUMNS + c] += u[r].w * v[c].w;
                }
                // What comes next is on its way as soon as there is room for it.
                if (more && r < rows) u[r] = pa[r * STEPS + next];
            }
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) v[c] = later[c];
            if (STEPS > OF_PIECE && next % OF_PIECE == first && more) wholes.take(sum, next / OF_PIECE - 1);
        }
        if (STEPS > OF_PIECE) wholes.give(sum, (STEPS - 1 - first) / OF_PIECE);
    }
    add_lanes<SHARED / 2, LANES / 2>(sum, lane);
#pragma unroll
    for (int i = 0; i < OF_A_LANE; ++i) of_warps[threadIdx.x / LANES][lane * OF_A_LANE + i] = sum[i];
    __syncthreads();  // every warp's sums are there
    for (int e = threadIdx.x; e < SUMS; e += THREADS) {
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < THREADS / LANES; ++w) total += of_warps[w][e];  // in the same order each time
        of_all[e] = total;
    }
#if PARTS > 1
    wait_for_cluster();  // the sums of every block are there
#else
    __syncthreads();  // other threads write them out
#endif
    for (int e = part * OF_A_BLOCK + threadIdx.x; e < min(SUMS, (part + 1) * OF_A_BLOCK); e += THREADS) {
        float total = 0.0f;
#if PARTS > 1
#pragma unroll
        for (int rank = 0; rank < PARTS; ++rank) total += of_block(of_all + e, rank);
#else
        total = of_all[e];
#endif
        const int i = row + e / COLUMNS, o = column + e % COLUMNS;
        if (i >= p.m || o >= p.n) continue;
        float w = p.alpha * total;
        if (bias) w += p.beta * bias[i * p.bias_stride_m + o * p.bias_stride_n];
        y[(index_t)i * p.n + o] = activate(w, p.activation);
    }
#if PARTS > 1
    wait_for_cluster();  // nobody leaves whose sums are still read
#endif
}
