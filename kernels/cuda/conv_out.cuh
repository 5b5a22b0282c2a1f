// How a warp's sums of a convolution over tiles of pixels × channels (mma.cuh) become y: as NCHW float32 or, with
// WRITES, as NHWC chunks of EACH channels (nhwc.cuh), with bias and activation, or as they are where they are one of
// several PARTS. Through shared memory, so that neighbouring lanes write neighbouring elements.
#pragma once
#include "common.cuh"
#include "mma.cuh"
#include "nhwc.cuh"

#define OUT_COLUMNS 8
#define OUT_LEAD (WARP_ROWS + 8)
#define AT_ONCE (EACH == 8 && PARTS == 1 ? 8 : 4)  // values in 16 bytes: partial sums are float32
#define PIECE (AT_ONCE == 8 ? WARP_COLUMNS : 16)   // channels of a warp that are laid out at once
#define PIECE_LEAD (PIECE + AT_ONCE)
// Chunks of 16 bytes of shared memory that the warps of a block lay out at once.
#define LAID_OUT ((THREADS / LANES) * max_of(OUT_COLUMNS * OUT_LEAD / 4, WARP_ROWS * PIECE_LEAD / AT_ONCE))
static_assert(Kind::CHUNK == EACH, "chunks of the product are those of the tensors");

constexpr int max_of(int a, int b) { return a < b ? b : a; }

#if PARTS > 1
using Out = float;
__device__ __forceinline__ void put(Out* to, float sum, float, bool) { *to = sum; }
#else
using Out = Kind::Cell;
__device__ __forceinline__ void put(Out* to, float sum, float more, bool real) {
    *to = Kind::cell(real ? activate(sum + more, AFTER) : 0.0f);
}
#endif

// A warp's tile: first_pixel, of all pixels of the batch and first_output, of the `outputs` channels of group g, are
// its own first. Pixels from `pixels` on are left alone. `parts`: where part `part` of the sum goes. `shared`: memory of
// the block that nobody reads any more.
template <class TILE>
__device__ __forceinline__ void write_tile(const TILE& tile, uint4* shared, int first_pixel, int pixels,
                                           int first_output, int outputs, int g, int part, const float* bias,
                                           float* y, float* parts, const ConvParams& p) {
    const int lane = threadIdx.x % LANES, area = p.out_h * p.out_w;
    if (WRITES) {
        // Each warp's tile through shared memory, a piece at a time, its channels side by side.
        Out* out = reinterpret_cast<Out*>(shared) + threadIdx.x / LANES * WARP_ROWS * PIECE_LEAD;
        // The last group's channels are filled up with zeros; those of others are a whole number of chunks.
        const int every = chunks_of(p.m) * EACH, begins = g * outputs;
        const int filled = (g == p.group - 1 ? every : begins + outputs) - begins;
        Out* to_all = PARTS > 1 ? reinterpret_cast<Out*>(parts) + (index_t)part * pixels * every
                                : reinterpret_cast<Out*>(y);
#pragma unroll
        for (int piece = 0; piece < WARP_COLUMNS; piece += PIECE) {
#pragma unroll
            for (int j = piece / OUT_COLUMNS; j < (piece + PIECE) / OUT_COLUMNS; ++j) {
                const int o = first_output + j * OUT_COLUMNS + lane / 4;
                const float more = PARTS == 1 && bias && o < outputs ? bias[g * outputs + o] : 0.0f;
                Out* to = out + lane % 4 * 2 * PIECE_LEAD + j * OUT_COLUMNS - piece + lane / 4;
#pragma unroll
                for (int i = 0; i < WARP_ROWS / MMA_ROWS; ++i)
#pragma unroll
                    for (int s = 0; s < 2; ++s) {
                        const float sum = tile.sum[j / 2][i][j % 2 * 2 + s];
                        put(to + (i * MMA_ROWS + s) * PIECE_LEAD, o < outputs ? sum : 0.0f, more, o < outputs);
                    }
            }
            __syncwarp();
            for (int e = lane; e < WARP_ROWS * (PIECE / AT_ONCE); e += LANES) {
                const int r = e / (PIECE / AT_ONCE), c = e % (PIECE / AT_ONCE) * AT_ONCE;
                const int pixel = first_pixel + r, o = first_output + piece + c;
                if (pixel < pixels && o < filled)
                    *reinterpret_cast<uint4*>(to_all + (index_t)pixel * every + begins + o) =
                        *reinterpret_cast<const uint4*>(out + r * PIECE_LEAD + c);
            }
            __syncwarp();
        }
        return;
    }

    // Out through shared memory, 8 channels at a time: neighbouring lanes then write neighbouring pixels.
    float* out = reinterpret_cast<float*>(shared) + threadIdx.x / LANES * OUT_COLUMNS * OUT_LEAD;
#pragma unroll
    for (int j = 0; j < WARP_COLUMNS / OUT_COLUMNS; ++j) {
#pragma unroll
        for (int i = 0; i < WARP_ROWS / MMA_ROWS; ++i)
#pragma unroll
            for (int s = 0; s < 2; ++s)
                out[lane / 4 * OUT_LEAD + i * MMA_ROWS + lane % 4 * 2 + s] = tile.sum[j / 2][i][j % 2 * 2 + s];
        __syncwarp();
#pragma unroll 1
        for (int e = lane; e < OUT_COLUMNS * WARP_ROWS; e += LANES) {
            const int o = first_output + j * OUT_COLUMNS + e / WARP_ROWS;
            const int pixel = first_pixel + e % WARP_ROWS;
            if (o >= outputs || pixel >= pixels) continue;
            const float v = out[e / WARP_ROWS * OUT_LEAD + e % WARP_ROWS];
            const index_t place = ((index_t)(pixel / area) * p.m + g * outputs + o) * area + pixel % area;
            if (PARTS > 1)
                parts[(index_t)part * p.n * p.m * area + place] = v;
            else
                y[place] = activate(bias ? v + bias[g * outputs + o] : v, AFTER);
        }
        __syncwarp();
    }
}
