/*
op = "gemm"
rung = 10
priority = 20
name = "warp_rows"
idea = "Small weights stay in the caches, so that reading them once for every eight rows costs little: a warp takes eight rows and two columns, so that even a small layer of many images fills the device at once, with no tile to wait for."
launch = "gemm_warp_a_few"
overlaps = true
[defines]
BLOCK = 128
ROWS = 8     # at most; the launch fits this line and the next to the product
COLUMNS = 2
[needs]
m_min = 9
weights_max = 262144
trans_a = false
trans_b = true
batch = 1
*/
#include "common.cuh"
#include "overlap.cuh"
#include "sums.cuh"
#include "warp.cuh"

#define AT_ONCE 2  // reads of a lane from each row and column on their way

// b is (n, k), so that a column of the product reads a contiguous row of it. A warp a ROWS × COLUMNS piece of y:
// grid = (columns, rows).
extern "C" __global__ void __launch_bounds__(BLOCK)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, const GemmParams p) {
    const int lane = threadIdx.x % LANES;
    const int column = first_element() / LANES * COLUMNS, row = blockIdx.y * ROWS;
    let_next_begin();
    if (column >= p.n) return;
    wait_for_previous();
    a = written(a);
    const float *rows[ROWS], *columns[COLUMNS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) rows[r] = a + (index_t)min(row + r, p.m - 1) * p.k;  // beyond the last: not written
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) columns[c] = b + (index_t)min(column + c, p.n - 1) * p.k;

    float sum[ROWS][COLUMNS] = {};
    Wholes<ROWS * COLUMNS> wholes(p.k);
    int rounds = 0, j = lane;
    if (p.k % 4 == 0) {  // every row of a and b then begins on 16 bytes, as the tensors do
        constexpr int OF_PIECE = wholes.TERMS / 4 / AT_ONCE;  // rounds
        auto multiply = [&](int at) {
            float4 v[COLUMNS];
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) v[c] = reinterpret_cast<const float4*>(columns[c])[at];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const float4 u = reinterpret_cast<const float4*>(rows[r])[at];
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c) {
                    sum[r][c] += u.x * v[c].x;
                    sum[r][c] += u.y * v[c].y;
                    sum[r][c] += u.z * v[c].z;
                    sum[r][c] += u.w * v[c].w;
                }
            }
        };
#pragma unroll 1
        for (; j + (AT_ONCE - 1) * LANES < p.k / 4; j += AT_ONCE * LANES) {
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) multiply(j + i * LANES);
            if (++rounds % OF_PIECE == 0) wholes.take(&sum[0][0], rounds / OF_PIECE - 1);
        }
#pragma unroll 1
        for (; j < p.k / 4; j += LANES) multiply(j);
        wholes.give(&sum[0][0], rounds / OF_PIECE);
    } else {
        constexpr int OF_PIECE = wholes.TERMS / AT_ONCE;
        auto multiply = [&](int at) {
            float v[COLUMNS];
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) v[c] = columns[c][at];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const float u = rows[r][at];
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c) sum[r][c] += u * v[c];
            }
        };
#pragma unroll 1
        for (; j + (AT_ONCE - 1) * LANES < p.k; j += AT_ONCE * LANES) {
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) multiply(j + i * LANES);
            if (++rounds % OF_PIECE == 0) wholes.take(&sum[0][0], rounds / OF_PIECE - 1);
        }
#pragma unroll 1
        for (; j < p.k; j += LANES) multiply(j);
        wholes.give(&sum[0][0], rounds / OF_PIECE);
    }
    // Every lane ends with the same sums; lane i keeps and writes the i-th.
    float mine = 0.0f;
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const float total = sum_of_lanes(sum[r][c]);
            if (lane == r * COLUMNS + c) mine = total;
        }
    const int i = row + lane / COLUMNS, o = column + lane % COLUMNS;
    if (lane >= ROWS * COLUMNS || i >= p.m || o >= p.n) return;
    float v = p.alpha * mine;
    if (bias) v += p.beta * bias[i * p.bias_stride_m + o * p.bias_stride_n];
    y[(index_t)i * p.n + o] = activate(v, p.activation);
}
