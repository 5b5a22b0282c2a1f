/*
op = "conv"
rung = 16
name = "async_stages"
idea = "Tiles are copied to shared memory without passing through registers, several steps ahead of the one that is multiplied, so that memory has the time of several steps to bring them."
launch = "conv_split"
side = true
[defines]
TILE_M = 128
TILE_N = 128
THREAD_M = 8
THREAD_N = 8
TILE_K = 8
PARTS = 1     # of the taps; with one there is no second kernel
STAGES = 4    # tiles in shared memory at once
[needs]
compute_capability = "8.0"
*/
#include "async.cuh"
#include "sums.cuh"
#include "taps.cuh"

#define WEIGHT_LOADS ((TILE_M * TILE_K + THREADS - 1) / THREADS)
static_assert(BANDS <= STAGES * TILE_K, "a row of every band must fit where a tile of patches was");

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    __shared__ __align__(16) float weights[STAGES][TILE_K][TILE_M + 4];
    __shared__ __align__(16) float patches[STAGES][TILE_K][TILE_N];
    __shared__ Tap located[TABLE];
    __shared__ index_t places[TILE_N];  // of each pixel in y, kept here rather than in registers through the sum

    const int channels = p.c / p.group, outputs = p.m / p.group;
    const int taps = channels * p.kh * p.kw;
    const int area = p.out_h * p.out_w;
    const int pixels = p.n * area;
    const int g = blockIdx.z / PARTS, part = blockIdx.z % PARTS;
    // This block's part of the taps: whole steps, their number the same for all parts or one less.
    const int steps = (taps + TILE_K - 1) / TILE_K;
    const int begin = (int)((index_t)steps * part / PARTS) * TILE_K;
    const int end = min(taps, (int)((index_t)steps * (part + 1) / PARTS) * TILE_K);
    const int first_output = blockIdx.y * TILE_M;
    const int first_pixel = blockIdx.x * TILE_N;
    const int thread = threadIdx.x;

    const int patch_column = thread % TILE_N, patch_k = thread / TILE_N;
    const int pixel = first_pixel + patch_column;
    // A pixel beyond the last lies, like a tap beyond the last, where every read is a zero; as an unsigned number
    // what lies above or left of the image is beyond its other end, so that one comparison an axis suffices.
    const int top = pixel < pixels ? pixel % area / p.out_w * p.stride_h - p.pad_top : -0x40000000;
    const int left = pixel % area % p.out_w * p.stride_w - p.pad_left;
    const float* corner = x + ((index_t)(pixel / area) * p.c + g * channels) * p.h * p.w + (index_t)top * p.w + left;
    const float* filters = weight + (index_t)(g * outputs + first_output) * taps;
    if (thread < TILE_N)
        places[thread] =
            pixel < pixels ? ((index_t)(pixel / area) * p.m + g * outputs) * area + pixel % area : -1;
    const int band = band_of(thread), row = band * ROWS;
    const int column = strip_of(thread) * COLUMNS;

    float sum[THREAD_M][THREAD_N] = {};
    Wholes<THREAD_M * THREAD_N> wholes(p.c);

    auto fill_table = [&](int k0) {
#pragma unroll 1  // unrolled, its addresses push sums out of the registers
        for (int e = thread; e < TABLE; e += THREADS)
            located[e] = locate(k0 + e, taps, p);
        __syncthreads();
    };
    // Starts the copies of the tile at k0; a group is closed even when nothing is left, so that their number tells
    // which have arrived.
    auto fetch = [&](int k0, int slot) {
        if (k0 < end) {
            if (k0 > begin && (k0 - begin) % TABLE == 0) fill_table(k0);
#pragma unroll
            for (int l = 0; l < WEIGHT_LOADS; ++l) {
                const int e = thread + l * THREADS, o = e / TILE_K, k = e % TILE_K;
                if (TILE_M * TILE_K % THREADS != 0 && e >= TILE_M * TILE_K) break;
                const bool inside = first_output + o < outputs && k0 + k < end;
                copy_async(&weights[slot][k][o], inside ? filters + (index_t)o * taps + k0 + k : weight, inside);
            }
#pragma unroll
            for (int i = 0; i < PATCH_LOADS; ++i) {
                const int k = patch_k + i * (THREADS / TILE_N);
                const Tap t = located[(k0 - begin) % TABLE + k];
                const bool inside =
                    (unsigned)(top + t.down) < (unsigned)p.h && (unsigned)(left + t.right) < (unsigned)p.w;
                copy_async(&patches[slot][k][patch_column], inside ? corner + t.offset : x, inside);
            }
        }
        close_group();
    };

    fill_table(begin);
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) fetch(begin + ahead * TILE_K, ahead);
    for (int k0 = begin, slot = 0; k0 < end; k0 += TILE_K, slot = slot + 1 == STAGES ? 0 : slot + 1) {
        if (k0 > begin && (k0 - begin) % wholes.TERMS == 0) wholes.take(&sum[0][0], (k0 - begin) / wholes.TERMS - 1);
        // Of each thread's copies this step's have arrived; after the barrier everybody's, and the tile of the step
        // before has been multiplied by all, so that its place is free.
        wait_for_all_but<STAGES - 2>();
        __syncthreads();
        fetch(k0 + (STAGES - 1) * TILE_K, slot == 0 ? STAGES - 1 : slot - 1);
#pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            Pack<ROWS> u[THREAD_M / ROWS];
            Pack<COLUMNS> v[THREAD_N / COLUMNS];
#pragma unroll
            for (int i = 0; i < THREAD_M / ROWS; ++i)
                u[i] = pack_at<ROWS>(&weights[slot][k][row + i * (BANDS * ROWS)]);
#pragma unroll
            for (int j = 0; j < THREAD_N / COLUMNS; ++j)
                v[j] = pack_at<COLUMNS>(&patches[slot][k][column + j * (ACROSS * COLUMNS)]);
#pragma unroll
            for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
                for (int j = 0; j < THREAD_N; ++j)
                    sum[i][j] += u[i / ROWS].v[i % ROWS] * v[j / COLUMNS].v[j % COLUMNS];
        }
    }
    wholes.give(&sum[0][0], (end - begin - 1) / wholes.TERMS);
    __syncthreads();

    // Out through shared memory, a row of every band at a time: neighbouring threads then write neighbouring pixels,
    // and each thread the one pixel whose place it knows.
    const index_t place = places[patch_column];
    float(*out)[TILE_N] = patches[0];
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
        for (int j = 0; j < THREAD_N; ++j)
            out[band][column + j / COLUMNS * (ACROSS * COLUMNS) + j % COLUMNS] = sum[i][j];
        __syncthreads();
#pragma unroll 1
        for (int b = patch_k; b < BANDS; b += THREADS / TILE_N) {
            const int o = first_output + b * ROWS + i / ROWS * (BANDS * ROWS) + i % ROWS;
            if (o >= outputs || place < 0) break;
            const float v = out[b][patch_column];
            if (PARTS > 1)
                workspace[(index_t)part * p.n * p.m * area + place + (index_t)o * area] = v;
            else
                y[place + (index_t)o * area] = activate(bias ? v + bias[g * outputs + o] : v, p.activation);
        }
        __syncthreads();
    }
}

extern "C" __global__ void conv_reduce(const float* __restrict__ x, const float* __restrict__ weight,
                                       const float* __restrict__ bias, float* __restrict__ y,
                                       float* __restrict__ workspace, const ConvParams p) {
    const index_t total = (index_t)p.n * p.m * p.out_h * p.out_w;
    const index_t i = first_element();
    if (i >= total) return;
    float sum = 0.0f;
#pragma unroll 16
    for (int part = 0; part < PARTS; ++part) sum += workspace[part * total + i];
    y[i] = activate(bias ? sum + bias[i / (p.out_h * p.out_w) % p.m] : sum, p.activation);
}
