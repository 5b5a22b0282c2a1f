/*
op = "conv"
rung = 20
name = "fft"
method = "fft"
idea = "Multiplies spectra of overlapping tiles: the cost of an output hardly grows with the size of its window, but each frequency takes a complex product, and the spectra go through memory."
launch = "conv_fft"
side = true
packs = true
overlaps = true
[defines]
LENGTH = 16        # of a transform each way: 8, 16 or 32
TILES = 32         # that a block transforms together
SPAN_H = 14        # outputs of a tile each way, LENGTH - KH + 1
SPAN_W = 14
TILE_M = 128
TILE_N = 128
THREAD_M = 8
THREAD_N = 8
TILE_K = 8
VECTOR_W = 4       # weights at once: 4 where every row of them begins on 16 bytes, else 1
SCRATCH_MIB = 256  # of spectra at a time; the images of a larger batch take turns
[needs]
kernel_max = 16
stride = 1
dilation = 1
*/
#include "fft.cuh"
#include "overlap.cuh"
#include "spectral.cuh"

// Y = F⁻¹(Σ over c of F(x) · conj F(w)), a cross-correlation being a product of spectra. A tile of LENGTH × LENGTH
// elements of the image gives LENGTH − KH + 1 rows of outputs; what wraps round falls on the others. A product of a
// value a + ib and a weight u + iv takes three of real numbers: k₁ = u (a + b), k₂ = (v − u) a, k₃ = (u + v) b give
// k₁ − k₃ + i (k₁ + k₂). So the sums over channels are PLACES matrix products, the factors of each frequency and part
// packed as (3, LENGTH, WIDE, group, M / group, C / group), divided by LENGTH² beforehand.
#define WIDE (LENGTH / 2 + 1)  // of a row's spectrum: the rest is its mirror image
#define FREQUENCIES (LENGTH * WIDE)
#define PLACES (3 * FREQUENCIES)
#define TRANSFORMING (TILES * WIDE)  // threads of a block that transforms: one a column of a spectrum
#define ON_ROWS (TILES * LENGTH / 2)  // of them one a pair of rows
#define OUTPUTS (SPAN_H * SPAN_W | 1)  // elements from one tile to the next in shared memory: an odd number meets all banks
static_assert(OUTPUTS * sizeof(float) <= LENGTH * WIDE * 2 * sizeof(float), "outputs must fit where spectra were");

extern "C" __global__ void __launch_bounds__(TRANSFORMING, LENGTH == 32 ? 4 : 3)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    __shared__ Complex spectra[LENGTH][WIDE][TILES];  // of the rows
    const int tiles = tiles_of(p, SPAN_H, SPAN_W), channel = blockIdx.y;
    const index_t lead = row_length(tiles);
    const int own = threadIdx.x % TILES, tile = blockIdx.x * TILES + own;

    if (threadIdx.x < ON_ROWS) {  // Two rows of real numbers are one of complex ones, whose spectrum holds both.
        const int row = threadIdx.x / TILES * 2;
        const Place at = place_of(tile, p, SPAN_H, SPAN_W);
        const float* in = x + ((index_t)at.image * p.c + channel) * p.h * p.w;
        const int iy = at.top + row - p.pad_top;
        const bool first = tile < tiles && iy >= 0 && iy < p.h, second = tile < tiles && iy + 1 >= 0 && iy + 1 < p.h;
        Complex v[LENGTH];
#pragma unroll
        for (int j = 0; j < LENGTH; ++j) {
            const int ix = at.left + j - p.pad_left;
            const bool inside = ix >= 0 && ix < p.w;
            v[j].re = first && inside ? in[(index_t)iy * p.w + ix] : 0.0f;
            v[j].im = second && inside ? in[(index_t)(iy + 1) * p.w + ix] : 0.0f;
        }
        fft<LENGTH, false>(v);
#pragma unroll
        for (int k = 0; k < WIDE; ++k) {
            const Complex a = v[k], b = v[(LENGTH - k) % LENGTH];
            spectra[row][k][own] = {0.5f * (a.re + b.re), 0.5f * (a.im - b.im)};
            spectra[row + 1][k][own] = {0.5f * (a.im + b.im), 0.5f * (b.re - a.re)};
        }
    }
    __syncthreads();
    if (tile >= tiles) return;
    let_next_begin();
    const int k = threadIdx.x / TILES;
    Complex v[LENGTH];
#pragma unroll
    for (int j = 0; j < LENGTH; ++j) v[j] = spectra[j][k][own];
    fft<LENGTH, false>(v);
    float* out = workspace + ((index_t)k * p.c + channel) * lead + tile;
    const index_t part = FREQUENCIES * (p.c * lead);
#pragma unroll
    for (int j = 0; j < LENGTH; ++j, out += WIDE * (p.c * lead)) {
        out[0] = v[j].re + v[j].im;
        out[part] = v[j].re;
        out[2 * part] = v[j].im;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    conv_products(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                  float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    multiply_places<PLACES>(weight, workspace, p, SPAN_H, SPAN_W);
}

extern "C" __global__ void __launch_bounds__(TRANSFORMING, LENGTH == 32 ? 4 : 3)
    conv_outputs(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                 float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    __shared__ Complex spectra[LENGTH][WIDE][TILES];
    __shared__ index_t corners[TILES];  // of each tile in y, and how many of its rows and columns lie in y
    __shared__ int rows[TILES], columns[TILES];
    const int tiles = tiles_of(p, SPAN_H, SPAN_W), om = blockIdx.y;
    const index_t lead = row_length(tiles);
    const int own = threadIdx.x % TILES, tile = blockIdx.x * TILES + own;

    if (threadIdx.x < TILES) {
        const Place at = place_of(tile, p, SPAN_H, SPAN_W);
        corners[own] = (((index_t)at.image * p.m + om) * p.out_h + at.top) * p.out_w + at.left;
        rows[own] = tile < tiles ? min(SPAN_H, p.out_h - at.top) : 0;
        columns[own] = min(SPAN_W, p.out_w - at.left);
    }
    Complex v[LENGTH];
    if (tile < tiles) {
        const int k = threadIdx.x / TILES;
        const float* sums = workspace + ((index_t)PLACES * p.c + (index_t)k * p.m + om) * lead + tile;
        const index_t part = FREQUENCIES * (p.m * lead);
#pragma unroll
        for (int j = 0; j < LENGTH; ++j, sums += WIDE * (p.m * lead))
            v[j] = {sums[0] - sums[2 * part], sums[0] + sums[part]};
        fft<LENGTH, true>(v);
#pragma unroll
        for (int j = 0; j < LENGTH; ++j) spectra[j][k][own] = v[j];
    }
    __syncthreads();
    const int row = threadIdx.x / TILES * 2;
    const bool mine = tile < tiles && threadIdx.x < ON_ROWS && row < SPAN_H;
    if (mine) {
#pragma unroll
        for (int k = 0; k < WIDE; ++k) {
            const Complex a = spectra[row][k][own], b = spectra[row + 1][k][own];
            v[k] = {a.re - b.im, a.im + b.re};
            if (k > 0 && k < LENGTH / 2) v[LENGTH - k] = {a.re + b.im, b.re - a.im};
        }
        fft<LENGTH, true>(v);
    }
    let_next_begin();
    // Out through shared memory: neighbouring threads then write neighbours of a row.
    __syncthreads();
    float(*out)[OUTPUTS] = (float(*)[OUTPUTS])spectra;
    if (mine) {
#pragma unroll
        for (int j = 0; j < SPAN_W; ++j) {
            out[own][row * SPAN_W + j] = v[j].re;
            if (row + 1 < SPAN_H) out[own][(row + 1) * SPAN_W + j] = v[j].im;
        }
    }
    __syncthreads();
    const float shift = bias ? bias[om] : 0.0f;
    for (int e = threadIdx.x; e < TILES * SPAN_H * SPAN_W; e += TRANSFORMING) {
        const int of = e / (SPAN_H * SPAN_W), at = e % (SPAN_H * SPAN_W), r = at / SPAN_W, c = at % SPAN_W;
        if (r < rows[of] && c < columns[of])
            y[corners[of] + (index_t)r * p.out_w + c] = activate(out[of][at] + shift, p.activation);
    }
}
