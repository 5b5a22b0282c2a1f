/*
op = "gemm"
rung = 31
name = "async_tiles"
idea = "Many outputs: tiles arrive by asynchronous copies as they lie, several steps ahead, and a thread reads four steps of a row of a at once, so that nothing is turned on its way."
launch = "gemm_async"
overlaps = true
[defines]
WARPS_M = 4  # of a block, each with 32 × 64 outputs; the launch fits these two to the product
WARPS_N = 2
STAGES = 3   # tiles in shared memory at once
[needs]
compute_capability = "8.0"
trans_a = false
trans_b = false
batch = 1
multiple_of = {k = 4, n = 4}
[prefers]
outputs_min = 1000000
*/
// The steps of the sum lie side by side in the rows of a, and the columns in the rows of b: a lane with 8 × 8 outputs
// takes 8 times four steps of a, and for each of them twice four columns of b. Four lanes of a warp lie one below the
// other, in neighbouring rows, and eight side by side, in neighbouring fours of columns; they are woven as in tiles.cuh, so
// that shared memory answers each read of a warp in two turns.
#include "async.cuh"
#include "common.cuh"
#include "overlap.cuh"
#include "sums.cuh"

#define DOWN 4     // lanes
#define ACROSS 8
#define OWN 8      // rows and columns of a lane
#define WARP_M (DOWN * OWN)
#define WARP_N (ACROSS * OWN)
#define TILE_M (WARPS_M * WARP_M)
#define TILE_N (WARPS_N * WARP_N)
#define TILE_K 16
#define PITCH (TILE_K + 4)  // so that eight rows one below the other lie in all the banks
#define THREADS (32 * WARPS_M * WARPS_N)
#define SLOT (TILE_M * PITCH + TILE_K * TILE_N)  // floats of a stage
#define OUT_ROWS (WARP_M / 2)                    // of a warp's outputs at a time, on their way out
#define OUT_PITCH (WARP_N + 4)
static_assert(WARPS_M * WARPS_N * OUT_ROWS * OUT_PITCH <= STAGES * SLOT, "outputs go out where tiles were");

extern __shared__ float4 dynamic[];

extern "C" __global__ void __launch_bounds__(THREADS, 512 / THREADS)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, const __grid_constant__ GemmParams given) {
    wait_for_previous();
    float* memory = reinterpret_cast<float*>(dynamic);
    const GemmParams p = given;  // costs fewer registers than a parameter that is no constant of the grid
    const int across = (p.n + TILE_N - 1) / TILE_N;
    const int first_row = blockIdx.x / across * TILE_M, first_column = blockIdx.x % across * TILE_N;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / WARPS_N * WARP_M, warp_column = warp % WARPS_N * WARP_N;
    const int band = lane / 16 * 2 + lane / 2 % 2, strip = (lane / 4 % 4 * 2 + lane % 2) * 4;
    const float* from_a = written(a) + (index_t)first_row * p.k;
    const float* from_b = written(b) + first_column;
    const int rows = p.m - first_row, columns = p.n - first_column, steps = (p.k + TILE_K - 1) / TILE_K;

    auto fetch = [&](int step) {
        float* left = memory + step % STAGES * SLOT;
        float* right = left + TILE_M * PITCH;
        const int k0 = step * TILE_K;
#pragma unroll
        for (int i = threadIdx.x; i < TILE_M * TILE_K / 4; i += THREADS) {
            const int r = i / (TILE_K / 4), e = k0 + i % (TILE_K / 4) * 4;
            const bool inside = r < rows && e < p.k;
            copy_async_16(left + r * PITCH + e - k0, inside ? from_a + (index_t)r * p.k + e : a, inside);
        }
#pragma unroll
        for (int i = threadIdx.x; i < TILE_K * TILE_N / 4; i += THREADS) {
            const int e = k0 + i / (TILE_N / 4), c = i % (TILE_N / 4) * 4;
            const bool inside = e < p.k && c < columns;
            copy_async_16(right + (e - k0) * TILE_N + c, inside ? from_b + (index_t)e * p.n + c : b, inside);
        }
    };
    float sum[OWN][OWN] = {};
    Wholes<OWN * OWN> wholes(given.k);
#pragma unroll
    for (int step = 0; step < STAGES - 1; ++step) {
        if (step < steps) fetch(step);
        close_group();
    }
    for (int step = 0, pieces = 0; step < steps; ++step) {
        if (step && step % (wholes.TERMS / TILE_K) == 0) wholes.take(&sum[0][0], pieces++);
        wait_for_all_but<STAGES - 2>();
        __syncthreads();  // this tile is whole, and nobody needs the one before any more
        if (step + STAGES - 1 < steps) fetch(step + STAGES - 1);
        close_group();
        const float* left = memory + step % STAGES * SLOT + (warp_row + band) * PITCH;
        const float* right = memory + step % STAGES * SLOT + TILE_M * PITCH + warp_column + strip;
#pragma unroll
        for (int e = 0; e < TILE_K; e += 4) {
            float u[OWN][4];
#pragma unroll
            for (int i = 0; i < OWN; ++i) {
                const float4 four = *reinterpret_cast<const float4*>(left + i * DOWN * PITCH + e);
                u[i][0] = four.x, u[i][1] = four.y, u[i][2] = four.z, u[i][3] = four.w;
            }
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                const float4 near = *reinterpret_cast<const float4*>(right + (e + s) * TILE_N);
                const float4 far = *reinterpret_cast<const float4*>(right + (e + s) * TILE_N + WARP_N / 2);
                const float v[OWN] = {near.x, near.y, near.z, near.w, far.x, far.y, far.z, far.w};
#pragma unroll
                for (int i = 0; i < OWN; ++i)
#pragma unroll
                    for (int j = 0; j < OWN; ++j) sum[i][j] += u[i][s] * v[j];
            }
        }
    }
    wholes.give(&sum[0][0], (steps - 1) / (wholes.TERMS / TILE_K));
    let_next_begin();
    __syncthreads();  // the last tile has been read

    // Out through shared memory of the warp's own: then neighbouring lanes write neighbouring elements.
    float* out = memory + warp * OUT_ROWS * OUT_PITCH;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < OWN / 2; ++i) {
            const float(&of)[OWN] = sum[half * (OWN / 2) + i];
            float* row = out + (band + DOWN * i) * OUT_PITCH + strip;
            *reinterpret_cast<float4*>(row) = make_float4(of[0], of[1], of[2], of[3]);
            *reinterpret_cast<float4*>(row + WARP_N / 2) = make_float4(of[4], of[5], of[6], of[7]);
        }
        __syncwarp();  // the rows are whole before other lanes write them out
#pragma unroll 1
        for (int i = lane; i < OUT_ROWS * WARP_N / 4; i += 32) {
            const int down = i / (WARP_N / 4), right = i % (WARP_N / 4) * 4;
            const int r = first_row + warp_row + half * OUT_ROWS + down, c = first_column + warp_column + right;
            if (r >= p.m || c >= p.n) continue;
            const float4 four = *reinterpret_cast<const float4*>(out + down * OUT_PITCH + right);
            float4 shift = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (bias && p.bias_stride_m == 0 && p.bias_stride_n == 1) {
                shift = *reinterpret_cast<const float4*>(bias + c);
            } else if (bias) {
                const float* own = bias + r * p.bias_stride_m + c * p.bias_stride_n;
                shift = make_float4(own[0], own[p.bias_stride_n], own[2 * p.bias_stride_n], own[3 * p.bias_stride_n]);
            }
            const float v[4] = {activate(p.alpha * four.x + p.beta * shift.x, p.activation),
                                activate(p.alpha * four.y + p.beta * shift.y, p.activation),
                                activate(p.alpha * four.z + p.beta * shift.z, p.activation),
                                activate(p.alpha * four.w + p.beta * shift.w, p.activation)};
            *reinterpret_cast<float4*>(y + (index_t)r * p.n + c) = make_float4(v[0], v[1], v[2], v[3]);
        }
        __syncwarp();  // and written out before the next ones take their place
    }
}
