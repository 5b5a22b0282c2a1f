/*
op = "conv"
rung = 20
name = "fft"
idea = "Multiplies spectra of overlapping tiles: the cost of an output hardly grows with the size of its window, but each frequency takes a complex product, and the spectra go through memory."
launch = "conv_fft"
side = true
packs = true
[defines]
LENGTH = 16        # of a transform each way: 8, 16 or 32
TILES = 32         # that a block transforms together
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
#include "spectral.cuh"

// Y = F⁻¹(Σ over c of F(x) · conj F(w)), a cross-correlation being a product of spectra. A tile of LENGTH × LENGTH
// elements of the image gives LENGTH − KH + 1 rows of outputs; what wraps round falls on the others. A product of a
// value a + ib and a weight u + iv takes three of real numbers: k₁ = u (a + b), k₂ = (v − u) a, k₃ = (u + v) b give
// k₁ − k₃ + i (k₁ + k₂). So the sums over channels are PLACES matrix products, the factors of each frequency and part
// packed as (3, LENGTH, WIDE, group, M / group, C / group), divided by LENGTH² beforehand.
#define WIDE (LENGTH / 2 + 1)  // of a row's spectrum: the rest is its mirror image
#define FREQUENCIES (LENGTH * WIDE)
#define PLACES (3 * FREQUENCIES)
#define TRANSFORMING (TILES * LENGTH / 2)  // threads of a block that transforms

extern "C" __global__ void __launch_bounds__(TRANSFORMING)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    __shared__ Complex spectra[LENGTH][WIDE][TILES];  // of the rows
    const int span_h = LENGTH - p.kh + 1, span_w = LENGTH - p.kw + 1;
    const int tiles = tiles_of(p, span_h, span_w), channel = blockIdx.y;
    const index_t lead = row_length(tiles);

    {  // Two rows of real numbers are one of complex ones, whose spectrum holds both.
        const int own = threadIdx.x % TILES, row = threadIdx.x / TILES * 2;
        const int tile = blockIdx.x * TILES + own;
        const Place at = place_of(tile, p, span_h, span_w);
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
    for (int e = threadIdx.x; e < TILES * WIDE; e += TRANSFORMING) {
        const int own = e % TILES, k = e / TILES, tile = blockIdx.x * TILES + own;
        if (tile >= tiles) continue;
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
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    conv_products(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                  float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    multiply_places<PLACES>(weight, workspace, p, LENGTH - p.kh + 1, LENGTH - p.kw + 1);
}

extern "C" __global__ void __launch_bounds__(TRANSFORMING)
    conv_outputs(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                 float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    __shared__ Complex spectra[LENGTH][WIDE][TILES];
    const int span_h = LENGTH - p.kh + 1, span_w = LENGTH - p.kw + 1;
    const int tiles = tiles_of(p, span_h, span_w), om = blockIdx.y;
    const index_t lead = row_length(tiles);

    for (int e = threadIdx.x; e < TILES * WIDE; e += TRANSFORMING) {
        const int own = e % TILES, k = e / TILES, tile = blockIdx.x * TILES + own;
        if (tile >= tiles) continue;
        const float* sums = workspace + ((index_t)PLACES * p.c + (index_t)k * p.m + om) * lead + tile;
        const index_t part = FREQUENCIES * (p.m * lead);
        Complex v[LENGTH];
#pragma unroll
        for (int j = 0; j < LENGTH; ++j, sums += WIDE * (p.m * lead))
            v[j] = {sums[0] - sums[2 * part], sums[0] + sums[part]};
        fft<LENGTH, true>(v);
#pragma unroll
        for (int j = 0; j < LENGTH; ++j) spectra[j][k][own] = v[j];
    }
    __syncthreads();
    const int own = threadIdx.x % TILES, row = threadIdx.x / TILES * 2, tile = blockIdx.x * TILES + own;
    if (tile >= tiles || row >= span_h) return;
    Complex v[LENGTH];
#pragma unroll
    for (int k = 0; k < WIDE; ++k) {
        const Complex a = spectra[row][k][own], b = spectra[row + 1][k][own];
        v[k] = {a.re - b.im, a.im + b.re};
        if (k > 0 && k < LENGTH / 2) v[LENGTH - k] = {a.re + b.im, b.re - a.im};
    }
    fft<LENGTH, true>(v);
    const Place at = place_of(tile, p, span_h, span_w);
    float* out = y + (((index_t)at.image * p.m + om) * p.out_h + at.top + row) * p.out_w + at.left;
    const bool second = row + 1 < span_h && at.top + row + 1 < p.out_h;
    const float shift = bias ? bias[om] : 0.0f;
#pragma unroll
    for (int j = 0; j < LENGTH; ++j) {
        if (j >= span_w || at.left + j >= p.out_w || at.top + row >= p.out_h) continue;
        out[j] = activate(v[j].re + shift, p.activation);
        if (second) out[p.out_w + j] = activate(v[j].im + shift, p.activation);
    }
}
