// The convolution as a matrix product over activations in NHWC (nhwc.cuh), as conv_nhwc.cuh has it, by warpgroups that
// multiply in the background (wgmma.cuh): its rows the pixels of the whole batch, GROUP_ROWS a warpgroup, its columns the
// channels of a group. Both operands go from shared memory to the tensor cores without passing through registers. Where
// tiles would be few, the blocks of a cluster share a tile's sum, and add up out of each other's shared memory.
// Included behind the rung's struct Kind.
#pragma once
#include "cluster.cuh"
#include "common.cuh"
#include "conv_chunks.cuh"
#include "nhwc.cuh"
#include "overlap.cuh"
#include "wgmma.cuh"

#define THREADS (GROUP * (TILE_ROWS / GROUP_ROWS))
#define ROWS_AT_ONCE (THREADS / CHUNKS)                   // whose chunks the threads of a block copy together
#define LOADS (TILE_ROWS / ROWS_AT_ONCE)                  // chunks of patches that a thread copies of a slab
#define COPIES ((TILE_COLUMNS * CHUNKS + THREADS - 1) / THREADS)  // and, at most, of weights
#define SLAB (CHUNKS * (TILE_ROWS + TILE_COLUMNS))        // chunks of both
#define TAPS (CHUNKS / OPERANDS)                          // chunks of the sum in a slab, as often as it has operands
#define AHEAD (STAGES - 1 - Tile::LATE)                   // slabs that are copied ahead
#define WARP_ROWS 16                                      // pixels whose sums a warp has
#ifndef OUT_EACH
#define OUT_EACH EACH  // channels of a chunk of y
#endif
#define AT_ONCE (WRITES && OUT_EACH == 8 && PARTS == 1 ? 8 : 4)  // values in 16 bytes: partial sums are float32
#define OUT_LEAD (TILE_COLUMNS + AT_ONCE)
#if OPERANDS > 1
using Tile = SplitTile<TILE_COLUMNS, TOGETHER>;
#else
using Tile = GroupTile<TILE_COLUMNS>;
#endif
static_assert(TILE_ROWS % ROWS_AT_ONCE == 0, "every thread copies as many chunks of patches");
static_assert(AHEAD > 0, "a slab is copied before it is multiplied");

#if WRITES && PARTS == 1
using Out = Kind::Cell;
__device__ __forceinline__ Out as_written(float v) { return Kind::cell(v); }
#else
using Out = float;
__device__ __forceinline__ Out as_written(float v) { return v; }
#endif
#if PARTS > 1
#define CLUSTER __cluster_dims__(1, 1, PARTS)
#else
#define CLUSTER
#endif
static_assert(SLAB * STAGES * 16 >= TILE_ROWS * OUT_LEAD * (int)sizeof(Out), "what is laid out at once must fit");

extern __shared__ __align__(1024) uint4 slabs[];

#if PARTS > 1
// Adds what the blocks of a cluster have laid out, always in the same order; each for its share of the rows, of which
// lanes take neighbouring ones, or neighbouring columns, as `write(row, column, four sums)` writes them.
template <class Write>
__device__ __forceinline__ void add_parts(const float* out, int part, Write write) {
    constexpr int SHARE = (TILE_ROWS + PARTS - 1) / PARTS, FOURS = TILE_COLUMNS / 4;
    wait_for_cluster();
    for (int e = threadIdx.x; e < SHARE * FOURS; e += THREADS) {
        const int row = part * SHARE + (WRITES ? e / FOURS : e % SHARE);
        const int column = 4 * (WRITES ? e % FOURS : e / SHARE);
        if (row >= TILE_ROWS) continue;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int rank = 0; rank < PARTS; ++rank) {
            const float4 more = four_of_block(out + row * OUT_LEAD + column, rank);
            sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
        }
        write(row, column, sum);
    }
    wait_for_cluster();  // nobody leaves whose sums are still read
}
#endif

// A block a tile of y, or its part of the sum. Taps are numbered down and across the window, then by chunks of channels: the order in which the
// weights were packed.
extern "C" __global__ void CLUSTER __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    auto weights = [&](int stage) { return slabs + stage * SLAB; };
    auto patches = [&](int stage) { return slabs + stage * SLAB + CHUNKS * TILE_COLUMNS; };

    let_next_begin();
    const Source source(p);
    const int outputs = p.m / p.group, area = p.out_h * p.out_w, pixels = p.n * area;
    const int g = blockIdx.z / PARTS, part = blockIdx.z % PARTS;
    // This block's part of the slabs, their number the same for all parts or one less.
    const int count = (source.kh * source.kw * source.chunks + TAPS - 1) / TAPS;
    const int begin = (int)((index_t)count * part / PARTS), end = (int)((index_t)count * (part + 1) / PARTS);
    const int across = (outputs + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const int first_output = blockIdx.x % across * TILE_COLUMNS;
    const int first_pixel = blockIdx.x / across * TILE_ROWS;
    const int thread = threadIdx.x, lane = thread % LANES, group = thread / GROUP;
    // Weights come packed: by group, slab and channel (a whole number of tiles of them), each slab as it is to lie. Behind
    // them all, of those that are scaled, what brings each channel's products back.
    const int wide = across * TILE_COLUMNS;
    const uint4* filters = reinterpret_cast<const uint4*>(weight) + ((index_t)g * count * wide + first_output) * CHUNKS;

    // The same chunk of every slab is this thread's, for LOADS pixels.
    const int mine = thread % CHUNKS, first_row = thread / CHUNKS, tap = mine % TAPS, operand = mine / TAPS;
    int corner[LOADS], top[LOADS], left[LOADS];
#pragma unroll
    for (int l = 0; l < LOADS; ++l) {
        const int pixel = first_pixel + first_row + l * ROWS_AT_ONCE;
        const int image = pixel / area, oy = pixel % area / p.out_w, ox = pixel % area % p.out_w;
        top[l] = oy * source.stride_h - source.top;
        left[l] = ox * source.stride_w - source.left;
        corner[l] = pixel < pixels ? ((image * source.h + top[l]) * source.w + left[l]) * source.pixel +
                                         operand * (source.pixel / OPERANDS) + g * source.chunks
                                   : -0x7fffffff;
    }
    int chunk = (begin * TAPS + tap) % source.chunks;
    int column = (begin * TAPS + tap) / source.chunks % source.kw;
    int row = (begin * TAPS + tap) / source.chunks / source.kw;

    // Start the copies of a slab, of which the one before was the last.
    auto copy_weights = [&](int slab, int stage) {
        if (slab >= end) return;
        const uint4* packed = filters + (index_t)slab * wide * CHUNKS;
#pragma unroll
        for (int l = 0; l < COPIES; ++l)
            if (TILE_COLUMNS * CHUNKS % THREADS == 0 || thread + l * THREADS < TILE_COLUMNS * CHUNKS)
                copy_async_16(&weights(stage)[thread + l * THREADS], packed + thread + l * THREADS);
    };
#pragma unroll
    for (int ahead = 0; ahead < AHEAD; ++ahead) copy_weights(begin + ahead, ahead);
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);

    const uint4* from = reinterpret_cast<const uint4*>(AS_READ ? x : workspace);
    auto copy_patches = [&](int slab, int stage) {
        if (slab < end) {
            const int down = row * p.dilation_h, right = column * p.dilation_w;
            const int step = (down * source.w + right) * source.pixel + chunk;
#pragma unroll
            for (int l = 0; l < LOADS; ++l) {
                // As an unsigned number what lies above or left of the image is beyond its other end.
                bool inside = row < source.kh && corner[l] != -0x7fffffff;
                if (PADDED)
                    inside = inside && (unsigned)(top[l] + down) < (unsigned)source.h &&
                             (unsigned)(left[l] + right) < (unsigned)source.w;
                copy_async_16(&patches(stage)[place_in_slab(first_row + l * ROWS_AT_ONCE, mine)],
                              from + (inside ? corner[l] + step : 0), inside);
            }
            chunk += TAPS;
            while (chunk >= source.chunks) {
                chunk -= source.chunks;
                if (++column == source.kw) {
                    column = 0;
                    ++row;
                }
            }
        }
        close_group();  // even when nothing is left, so that their number tells which have arrived
    };
#pragma unroll
    for (int ahead = 0; ahead < AHEAD; ++ahead) copy_patches(begin + ahead, ahead);

    Tile tile;
    multiply_slabs<STAGES>(
        tile, begin, end, [&](int stage) { return patches(stage) + group * GROUP_ROWS * CHUNKS; }, weights,
        [&](int slab, int stage) {
            copy_weights(slab, stage);
            copy_patches(slab, stage);
        });

    const int begins = first_pixel + thread / LANES * WARP_ROWS;
#if SCALED
    const float* back = reinterpret_cast<const float*>(reinterpret_cast<const uint4*>(weight) +
                                                       (index_t)p.group * count * wide * CHUNKS) +
                        g * wide;
    float image_back[2];
#pragma unroll
    for (int s = 0; s < 2; ++s) {
        const int pixel = begins + lane / 4 + s * 8, image = pixel < pixels ? pixel / area : 0;
        image_back[s] = scale_back(largest(shares_of(workspace, source, p.n), image));
    }
#endif
    // Each warp's sums through shared memory, so that neighbouring lanes write neighbouring elements.
    Out* out = reinterpret_cast<Out*>(slabs) + thread / LANES * WARP_ROWS * OUT_LEAD;
#pragma unroll
    for (int j = 0; j < TILE_COLUMNS / 8; ++j)
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            const int o = first_output + j * 8 + lane % 4 * 2 + s % 2;
            const float more = PARTS == 1 && bias && o < outputs ? bias[g * outputs + o] : 0.0f;
#if SCALED
            const float sum = tile.sum[j][s] * back[o] * image_back[s / 2];
#else
            const float sum = tile.sum[j][s];
#endif
            const float v = o >= outputs ? 0.0f : PARTS > 1 ? sum : activate(sum + more, AFTER);
            out[(lane / 4 + s / 2 * 8) * OUT_LEAD + j * 8 + lane % 4 * 2 + s % 2] = as_written(v);
        }
    // The last group's channels are filled up with zeros; those of others are a whole number of chunks.
    const int every = (p.m + OUT_EACH - 1) / OUT_EACH * OUT_EACH;
    const int filled = (g == p.group - 1 ? every : (g + 1) * outputs) - g * outputs;
#if PARTS > 1
    add_parts(reinterpret_cast<const float*>(slabs), part, [&](int row, int column, float4 sum) {
        const int pixel = first_pixel + row, o = first_output + column;
        float v[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
        for (int e = 0; e < 4; ++e)
            v[e] = o + e < outputs ? activate(bias ? v[e] + bias[g * outputs + o + e] : v[e], AFTER) : 0.0f;
        if (pixel >= pixels) return;
        if (!WRITES) {
            float* to = y + ((index_t)(pixel / area) * p.m + g * outputs + o) * area + pixel % area;
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (o + e < outputs) to[(index_t)e * area] = v[e];
        } else if (o < filled) {
            const index_t place = ((index_t)pixel * every + g * outputs + o) / 4;
            if (OUT_EACH == 8)
                reinterpret_cast<uint2*>(y)[place] = make_uint2(to_halves(v[0], v[1]), to_halves(v[2], v[3]));
            else
                reinterpret_cast<uint4*>(y)[place] = to_chunk(v);
        }
    });
#else
    __syncwarp();
    if (WRITES) {
        for (int e = lane; e < WARP_ROWS * (TILE_COLUMNS / AT_ONCE); e += LANES) {
            const int r = e / (TILE_COLUMNS / AT_ONCE), c = e % (TILE_COLUMNS / AT_ONCE) * AT_ONCE;
            if (begins + r < pixels && first_output + c < filled)
                *reinterpret_cast<uint4*>(reinterpret_cast<Out*>(y) + (index_t)(begins + r) * every + g * outputs +
                                          first_output + c) = *reinterpret_cast<const uint4*>(out + r * OUT_LEAD + c);
        }
    } else {
        // A lane has one pixel, and every second channel of the tile.
        static_assert(LANES == 2 * WARP_ROWS, "half a warp has the pixels of one channel");
        const int pixel = begins + lane % WARP_ROWS, half = lane / WARP_ROWS;
        if (pixel >= pixels) return;
        float* to = y + ((index_t)(pixel / area) * p.m + g * outputs + first_output + half) * area + pixel % area;
        const Out* mine_out = out + lane % WARP_ROWS * OUT_LEAD + half;
        const int left = outputs - first_output - half;
#pragma unroll 8
        for (int o = 0; o < TILE_COLUMNS; o += 2)
            if (o < left) to[(index_t)o * area] = mine_out[o];
    }
#endif
}
