// Pools over NHWC (nhwc.cuh), of x or (SIZE > 0) of its normalisation across channels, in the order of
// lrn_pool's column bands: a thread walks down one column of OUTS rows of windows with a chunk of channels in registers,
// so that an element is read and normalised once for all its windows in this band; the columns' results meet in shared
// memory. x and y may also be NCHW. The shapes are compiled in by kernels/launch/nhwc.py.
#pragma once
#include "nhwc.cuh"
#include "nhwc_lrn.cuh"
#include "overlap.cuh"
#include "pool.cuh"

#define SPAN ((TILE - 1) * STRIDE_W + KW)  // columns of the image under a band
#define ROWS ((OUTS - 1) * STRIDE_H + KH)  // and rows

// How many of `taps` places from `first` on count in an average, along an axis of `size` with `after` behind it.
__device__ __forceinline__ int counted(int first, int taps, int size, int after) {
    const int last = first + taps;
    return COUNT_PAD ? min(last, size + after) - first : min(last, size) - max(first, 0);
}

// What becomes of a pooled value of a channel and pixel of y.
struct Activated {
    __device__ __forceinline__ float operator()(float v, unsigned, int, int, int) const { return activate(v, AFTER); }
};

#define SPARE (EACH == 16 ? 4 : 0)  // so that 16 bytes of eight lanes lie in eight different banks

// A block a band: OUTS rows of TILE outputs, CHUNKS_AT_ONCE chunks of channels. scale, bias, beta: of the normalisation;
// zero: what comes off each number before that.
template <class Last = Activated>
__device__ __forceinline__ void pool_band(const Given* __restrict__ x, Made* y, float scale, float bias, float beta,
                                          float zero = 0.0f, const Last& last = Last()) {
    __shared__ __align__(16) float columns[OUTS][SPAN][CHUNKS_AT_ONCE][EACH + SPARE];
    constexpr int GROUPS = (ALL_CHUNKS + CHUNKS_AT_ONCE - 1) / CHUNKS_AT_ONCE;
    constexpr int TILES = (OUT_W + TILE - 1) / TILE, BANDS = (OUT_H + OUTS - 1) / OUTS;
    const int first_chunk = blockIdx.x % GROUPS * CHUNKS_AT_ONCE;
    const int first_column = blockIdx.x / GROUPS % TILES * TILE, first_row = blockIdx.x / (GROUPS * TILES) % BANDS * OUTS;
    let_next_begin();
    wait_for_previous();
    x = written(x);
    const unsigned image = blockIdx.x / (GROUPS * TILES * BANDS);
    for (int place = threadIdx.x; place < SPAN * CHUNKS_AT_ONCE; place += blockDim.x) {
        const int column = place / CHUNKS_AT_ONCE, mine = place % CHUNKS_AT_ONCE, chunk = first_chunk + mine;
        const int ix = first_column * STRIDE_W - PAD_LEFT + column, top = first_row * STRIDE_H - PAD_TOP;
        float found[OUTS][EACH];
#pragma unroll
        for (int o = 0; o < OUTS; ++o)
#pragma unroll
            for (int e = 0; e < EACH; ++e) found[o][e] = start();
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            const int iy = top + row;
            if (ix < 0 || ix >= W || iy < 0 || iy >= H || chunk >= ALL_CHUNKS) continue;
            float v[3 * EACH];
            read_chunks(v, x, image, iy * W + ix, H * W, chunk, zero);
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const float value = normalised(v, e, scale, bias, beta);
#pragma unroll
                for (int o = 0; o < OUTS; ++o)
                    if (row >= o * STRIDE_H && row < o * STRIDE_H + KH) found[o][e] = joined(found[o][e], value);
            }
        }
#pragma unroll
        for (int o = 0; o < OUTS; ++o)
#pragma unroll
            for (int e = 0; e < EACH; ++e) columns[o][column][mine][e] = found[o][e];
    }
    __syncthreads();
    for (int place = threadIdx.x; place < OUTS * TILE * CHUNKS_AT_ONCE; place += blockDim.x) {
        const int mine = place % CHUNKS_AT_ONCE, across = place / CHUNKS_AT_ONCE % TILE;
        const int o = place / (CHUNKS_AT_ONCE * TILE), chunk = first_chunk + mine;
        const int ox = first_column + across, oy = first_row + o;
        if (ox >= OUT_W || oy >= OUT_H || chunk >= ALL_CHUNKS) continue;
        float v[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            v[e] = start();
#pragma unroll
            for (int s = 0; s < KW; ++s) v[e] = joined(v[e], columns[o][across * STRIDE_W + s][mine][e]);
            if (KIND != POOL_MAX)
                v[e] /= counted(ox * STRIDE_W - PAD_LEFT, KW, W, PAD_RIGHT) *
                        counted(oy * STRIDE_H - PAD_TOP, KH, H, PAD_BOTTOM);
            v[e] = chunk * EACH + e < C ? last(v[e], image, oy, ox, chunk * EACH + e) : 0.0f;
        }
        const int pixel = oy * OUT_W + ox;
        if (WRITES) {
            reinterpret_cast<uint4*>(y)[((index_t)image * (OUT_H * OUT_W) + pixel) * ALL_CHUNKS + chunk] = to_chunk(v);
        } else {
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const int channel = chunk * EACH + e;
                if (channel < C) y[((index_t)image * C + channel) * (OUT_H * OUT_W) + pixel] = as_made(v[e]);
            }
        }
    }
}
