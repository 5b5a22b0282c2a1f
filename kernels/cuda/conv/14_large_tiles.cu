/*
op = "conv"
rung = 14
name = "large_tiles"
idea = "Up to 8 × 8 outputs a thread out of tiles up to 128 × 128, weights and fragments 16 bytes at a time, and the places of the taps looked up in a table that is filled once for many steps."
launch = "conv_large"
[defines]
TILE_M = 128
TILE_N = 128
THREAD_M = 8
THREAD_N = 8
TILE_K = 8
VECTOR_W = 4  # weights at once: 4 where every filter begins on 16 bytes, else 1
*/
#include "sums.cuh"
#include "taps.cuh"

static_assert(BANDS <= 2 * TILE_K, "a row of every band must fit where a tile of patches was");

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    // Two of each, so that a step needs one barrier; rows of weights longer than the tile, so that a warp's writes
    // fall into many banks and 16-byte reads stay aligned.
    __shared__ __align__(16) float weights[2][TILE_K][TILE_M + 4];
    __shared__ __align__(16) float patches[2][TILE_K][TILE_N];
    __shared__ Tap located[TABLE];  // of many steps, worked out once for all threads
    __shared__ index_t places[TILE_N];  // of each pixel in y, kept here rather than in registers through the sum

    const int channels = p.c / p.group, outputs = p.m / p.group;
    const int taps = channels * p.kh * p.kw;
    const int area = p.out_h * p.out_w;
    const int pixels = p.n * area;
    const int g = blockIdx.z;
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

    Operand<TILE_M, TILE_K, true, VECTOR_W, THREADS> next_weights;
    float next_patches[PATCH_LOADS];
    float sum[THREAD_M][THREAD_N] = {};
    Wholes<THREAD_M * THREAD_N> wholes(p.c);

    auto fill_table = [&](int k0) {
        for (int e = thread; e < TABLE; e += THREADS)
            located[e] = locate(k0 + e, taps, p);
        __syncthreads();  // whole before anybody looks a tap up in it
    };
    auto fetch = [&](int k0) {
        next_weights.fetch(filters + k0, taps, outputs - first_output, taps - k0);
#pragma unroll
        for (int i = 0; i < PATCH_LOADS; ++i) {
            const Tap t = located[k0 % TABLE + patch_k + i * (THREADS / TILE_N)];
            const bool inside = (unsigned)(top + t.down) < (unsigned)p.h && (unsigned)(left + t.right) < (unsigned)p.w;
            next_patches[i] = inside ? corner[t.offset] : 0.0f;
        }
    };
    auto keep = [&](int slot) {
        next_weights.keep(weights[slot]);
#pragma unroll
        for (int i = 0; i < PATCH_LOADS; ++i)
            patches[slot][patch_k + i * (THREADS / TILE_N)][patch_column] = next_patches[i];
    };

    fill_table(0);
    fetch(0);
    keep(0);
    __syncthreads();  // the first tiles are whole
    for (int k0 = 0, slot = 0; k0 < taps; k0 += TILE_K, slot ^= 1) {
        const int next = k0 + TILE_K;
        if (next % TABLE == 0) fill_table(next);  // everybody read the old one before the last barrier
        fetch(next);
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
        keep(slot ^ 1);
        __syncthreads();  // the next tiles are whole, and nobody needs these any more
        if (next % wholes.TERMS == 0) wholes.take(&sum[0][0], next / wholes.TERMS - 1);
    }
    wholes.give(&sum[0][0], (taps + TILE_K - 1) / wholes.TERMS);

    // Out through shared memory, a row of every band at a time: neighbouring threads then write neighbouring pixels,
    // and each thread the one pixel whose place it knows.
    const index_t place = places[patch_column];
    float(*out)[TILE_N] = patches[0];
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
        for (int j = 0; j < THREAD_N; ++j)
            out[band][column + j / COLUMNS * (ACROSS * COLUMNS) + j % COLUMNS] = sum[i][j];
        __syncthreads();  // the rows are whole before other threads write them out
#pragma unroll 1
        for (int b = patch_k; b < BANDS; b += THREADS / TILE_N) {
            const int o = first_output + b * ROWS + i / ROWS * (BANDS * ROWS) + i % ROWS;
            if (o >= outputs || place < 0) break;
            const float v = out[b][patch_column];
            y[place + (index_t)o * area] = activate(bias ? v + bias[g * outputs + o] : v, p.activation);
        }
        __syncthreads();  // and written out before the next ones take their place
    }
}
