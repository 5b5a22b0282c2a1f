/*
op = "conv"
rung = 13
name = "register_tiles"
idea = "Each thread keeps a small square of outputs in registers, so that a value from shared memory serves several multiplications; the next tile is fetched while this one is multiplied, and the tile fits the problem."
launch = "conv_fitted"
[defines]
TILE_M = 64   # channels a block: this line and the three below are what the largest problems get
TILE_N = 64   # pixels a block
THREAD_M = 4  # channels a thread
THREAD_N = 4  # pixels a thread
TILE_K = 16   # taps a step
*/
#include "common.cuh"
#include "sums.cuh"

#define THREADS ((TILE_M / THREAD_M) * (TILE_N / THREAD_N))
#define WEIGHT_LOADS (TILE_M * TILE_K / THREADS)
#define PATCH_LOADS (TILE_N * TILE_K / THREADS)
static_assert(THREADS % TILE_N == 0 && THREADS % TILE_K == 0, "a thread must keep to one pixel and one tap");
static_assert(TILE_M * TILE_K % THREADS == 0 && TILE_N * TILE_K % THREADS == 0 && THREADS >= TILE_K,
              "the threads of a block must share both tiles evenly");

// Where a tap lies: elements from the first channel of the group, and rows and columns from the window's corner.
struct Tap {
    int offset, down, right;
};

// The two divisions that find a tap cost as much as a whole step of a small tile, so one thread a tap does them
// ahead for all. A tap beyond the last lies far above the image, where every read is a zero.
__device__ __forceinline__ Tap locate(int tap, int taps, const ConvParams& p) {
    const int ci = tap / (p.kh * p.kw), r = tap / p.kw % p.kh, s = tap % p.kw;
    Tap t;
    t.offset = tap < taps ? (ci * p.h + r * p.dilation_h) * p.w + s * p.dilation_w : 0;
    t.down = tap < taps ? r * p.dilation_h : -0x40000000;
    t.right = s * p.dilation_w;
    return t;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    // Two of each: one is multiplied while the next is written, so a step needs one barrier. Rows of weights are
    // four longer than the tile: without that, the writes of a warp (down a column) would fall into few banks.
    __shared__ __align__(16) float weights[2][TILE_K][TILE_M + 4];
    __shared__ __align__(16) float patches[2][TILE_K][TILE_N];
    __shared__ Tap located[2][TILE_K];

    const int channels = p.c / p.group, outputs = p.m / p.group;
    const int taps = channels * p.kh * p.kw;
    const int area = p.out_h * p.out_w;
    const int pixels = p.n * area;
    const int g = blockIdx.z;
    const int first_output = blockIdx.y * TILE_M;
    const int first_pixel = blockIdx.x * TILE_N;
    const int thread = threadIdx.x;

    // What this thread gathers: the taps patch_k, patch_k + THREADS / TILE_N, … of one pixel, and one tap of the
    // channels weight_o, weight_o + THREADS / TILE_K, …
    const int patch_column = thread % TILE_N, patch_k = thread / TILE_N;
    const int weight_k = thread % TILE_K, weight_o = thread / TILE_K;
    const int pixel = first_pixel + patch_column;
    const int top = pixel % area / p.out_w * p.stride_h - p.pad_top;
    const int left = pixel % area % p.out_w * p.stride_w - p.pad_left;
    const float* corner = x + ((index_t)(pixel / area) * p.c + g * channels) * p.h * p.w + (index_t)top * p.w + left;
    const float* filters = weight + (index_t)(g * outputs + first_output) * taps;
    // What it computes: THREAD_M channels × THREAD_N pixels.
    const int row = thread / (TILE_N / THREAD_N) * THREAD_M;
    const int column = thread % (TILE_N / THREAD_N) * THREAD_N;

    float next_weights[WEIGHT_LOADS], next_patches[PATCH_LOADS];
    float sum[THREAD_M][THREAD_N] = {};
    Wholes<THREAD_M * THREAD_N> wholes(p.c);

    auto fetch = [&](int k0, int slot) {
#pragma unroll
        for (int i = 0; i < WEIGHT_LOADS; ++i) {
            const int o = weight_o + i * (THREADS / TILE_K), k = k0 + weight_k;
            const bool inside = k < taps && first_output + o < outputs;
            next_weights[i] = inside ? filters[(index_t)o * taps + k] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < PATCH_LOADS; ++i) {
            const Tap t = located[slot][patch_k + i * (THREADS / TILE_N)];
            const int iy = top + t.down, ix = left + t.right;
            const bool inside = pixel < pixels && iy >= 0 && iy < p.h && ix >= 0 && ix < p.w;
            next_patches[i] = inside ? corner[t.offset] : 0.0f;
        }
    };
    auto keep = [&](int slot) {
#pragma unroll
        for (int i = 0; i < WEIGHT_LOADS; ++i)
            weights[slot][weight_k][weight_o + i * (THREADS / TILE_K)] = next_weights[i];
#pragma unroll
        for (int i = 0; i < PATCH_LOADS; ++i)
            patches[slot][patch_k + i * (THREADS / TILE_N)][patch_column] = next_patches[i];
    };

    const int steps = (taps + TILE_K - 1) / TILE_K;
    for (int k = thread; k < 2 * TILE_K; k += THREADS)
        located[k / TILE_K][k % TILE_K] = locate(k, taps, p);
    __syncthreads();  // whole before anybody looks a tap up in it
    fetch(0, 0);
    keep(0);
    __syncthreads();  // the first tiles are whole
    for (int step = 0; step < steps; ++step) {
        const int slot = step & 1;
        if (step + 1 < steps) fetch((step + 1) * TILE_K, slot ^ 1);
        // The taps of step + 2 take the place of this step's, which everybody fetched before the last barrier.
        if (step + 2 < steps && thread < TILE_K)
            located[slot][thread] = locate((step + 2) * TILE_K + thread, taps, p);
#pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            float a[THREAD_M], b[THREAD_N];
#pragma unroll
            for (int i = 0; i < THREAD_M; ++i) a[i] = weights[slot][k][row + i];
#pragma unroll
            for (int j = 0; j < THREAD_N; ++j) b[j] = patches[slot][k][column + j];
#pragma unroll
            for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
                for (int j = 0; j < THREAD_N; ++j) sum[i][j] += a[i] * b[j];
        }
        if (step + 1 < steps) keep(slot ^ 1);
        __syncthreads();  // the next tiles are whole, and nobody needs these any more
        const int terms = (step + 1) * TILE_K;
        if (terms % wholes.TERMS == 0) wholes.take(&sum[0][0], terms / wholes.TERMS - 1);
    }
    wholes.give(&sum[0][0], steps * TILE_K / wholes.TERMS);

#pragma unroll
    for (int j = 0; j < THREAD_N; ++j) {
        const int pixel = first_pixel + column + j;
        if (pixel >= pixels) break;
        float* out = y + ((index_t)(pixel / area) * p.m + g * outputs) * area + pixel % area;
#pragma unroll
        for (int i = 0; i < THREAD_M; ++i) {
            const int o = first_output + row + i;
            if (o >= outputs) break;
            const float v = bias ? sum[i][j] + bias[g * outputs + o] : sum[i][j];
            out[(index_t)o * area] = activate(v, p.activation);
        }
    }
}
