// The convolution as a matrix product on tensor cores over activations in NHWC (nhwc.cuh): its rows the pixels
// of the whole batch, its columns the channels of a group. Included behind the rung's struct Kind (mma.cuh).
//
// x and y may also be NCHW float32; such an x is first laid out anew (conv_chunks.cuh).
#pragma once
#include "common.cuh"
#include "conv_chunks.cuh"
#include "conv_out.cuh"
#include "mma.cuh"
#include "nhwc.cuh"
#include "overlap.cuh"

#define ROWS_AT_ONCE (THREADS / CHUNKS)  // whose chunks the threads of a block copy together
#define SLAB (STAGES * CHUNKS * (TILE_ROWS + TILE_COLUMNS))  // chunks of shared memory
static_assert(TILE_ROWS * CHUNKS % THREADS == 0, "every thread copies as many chunks of patches");
static_assert(SLAB >= LAID_OUT, "what the warps lay out at once must fit");

// A block a tile of y, or of its part of the taps. Taps are numbered down and across the window, then by chunks of
// channels: the order in which the weights were packed.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    __shared__ uint4 shared[SLAB];
    uint4(*weights)[TILE_COLUMNS * CHUNKS] = reinterpret_cast<uint4(*)[TILE_COLUMNS * CHUNKS]>(shared);
    uint4(*patches)[TILE_ROWS * CHUNKS] =
        reinterpret_cast<uint4(*)[TILE_ROWS * CHUNKS]>(shared + STAGES * CHUNKS * TILE_COLUMNS);

    let_next_begin();
    const Source source(p);
    const int outputs = p.m / p.group, area = p.out_h * p.out_w, pixels = p.n * area;
    const int g = blockIdx.z / PARTS, part = blockIdx.z % PARTS;
    // This block's part of the slabs, their number the same for all parts or one less.
    const int slabs = (source.kh * source.kw * source.chunks + CHUNKS - 1) / CHUNKS;
    const int begin = (int)((index_t)slabs * part / PARTS);
    const int end = (int)((index_t)slabs * (part + 1) / PARTS);
    const int across = (outputs + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const int first_output = blockIdx.x % across * TILE_COLUMNS;
    const int first_pixel = blockIdx.x / across * TILE_ROWS;
    const int thread = threadIdx.x, warp = thread / LANES, lane = thread % LANES;
    const int warp_row = warp / WARPS_ACROSS * WARP_ROWS, warp_column = warp % WARPS_ACROSS * WARP_COLUMNS;
    // Weights come packed: by group, slab and channel (a whole number of tiles of them).
    const int wide = across * TILE_COLUMNS;
    const uint4* filters = reinterpret_cast<const uint4*>(weight) + ((index_t)g * slabs * wide + first_output) * CHUNKS;

    // The same chunk of every slab is this thread's, for LOADS pixels.
    const int mine = thread % CHUNKS, first_row = thread / CHUNKS;
    int corner[LOADS], top[LOADS], left[LOADS];
#pragma unroll
    for (int l = 0; l < LOADS; ++l) {
        const int pixel = first_pixel + first_row + l * ROWS_AT_ONCE;
        const int image = pixel / area, oy = pixel % area / p.out_w, ox = pixel % area % p.out_w;
        top[l] = oy * source.stride_h - source.top;
        left[l] = ox * source.stride_w - source.left;
        corner[l] = pixel < pixels ? ((image * source.h + top[l]) * source.w + left[l]) * source.pixel + g * source.chunks
                                   : -0x7fffffff;
    }
    int chunk = (begin * CHUNKS + mine) % source.chunks;
    int column = (begin * CHUNKS + mine) / source.chunks % source.kw;
    int row = (begin * CHUNKS + mine) / source.chunks / source.kw;

    // Start the copies of a slab, of which the one before was the last. A group is closed even when nothing is left, so
    // that their number tells which have arrived.
    auto copy_weights = [&](int slab, int stage) {
        if (slab < end) {
            const uint4* packed = filters + (index_t)slab * wide * CHUNKS;
#pragma unroll
            for (int l = 0; l < COPIES; ++l) {
                const int e = thread + l * THREADS;
                if (TILE_COLUMNS * CHUNKS % THREADS != 0 && e >= TILE_COLUMNS * CHUNKS) break;
                copy_async_16(&weights[stage][e], packed + e);
            }
        }
    };
    WarpTile<Kind, WARP_ROWS, WARP_COLUMNS> tile;
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) copy_weights(begin + ahead, ahead);
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);

    const uint4* from = reinterpret_cast<const uint4*>(READS ? x : workspace);
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
                copy_async_16(&patches[stage][place_in_slab(first_row + l * ROWS_AT_ONCE, mine)],
                              from + (inside ? corner[l] + step : 0), inside);
            }
            chunk += CHUNKS;
            while (chunk >= source.chunks) {
                chunk -= source.chunks;
                if (++column == source.kw) {
                    column = 0;
                    ++row;
                }
            }
        }
        close_group();
    };
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) copy_patches(begin + ahead, ahead);
    int stage = 0, vacant = STAGES - 1;
    for (int slab = begin; slab < end; ++slab) {
        // Of each thread's copies this slab's have arrived; after the barrier everybody's, and the slab before has been
        // multiplied by all, so that its place is free.
        wait_for_all_but<STAGES - 2>();
        __syncthreads();
        copy_weights(slab + STAGES - 1, vacant);
        copy_patches(slab + STAGES - 1, vacant);
        tile.add(patches[stage], weights[stage], warp_row, warp_column);
        vacant = stage;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    wait_for_all_but<0>();
    __syncthreads();

    write_tile(tile, shared, first_pixel + warp_row, pixels, first_output + warp_column, outputs, g, part, bias, y,
               workspace + 4 * source.size(p.n), p);
}

// Adds the parts, always in the same order.
extern "C" __global__ void conv_reduce(const float* __restrict__ x, const float* __restrict__ weight,
                                       const float* __restrict__ bias, float* __restrict__ y,
                                       float* __restrict__ workspace, const ConvParams p) {
    let_next_begin();
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    const int area = p.out_h * p.out_w;
    const index_t total = (index_t)p.n * p.m * area;
    const float* parts = workspace + 4 * Source(p).size(p.n);
    auto added = [&](index_t i, int channel) {
        float sum = 0.0f;
#pragma unroll 16
        for (int part = 0; part < PARTS; ++part) sum += parts[part * total + i];
        return activate(bias ? sum + bias[channel] : sum, AFTER);
    };
    if (!WRITES) {
        for (index_t i = first_element(); i < total; i += grid_stride()) y[i] = added(i, i / area % p.m);
        return;
    }
    // Four channels of a pixel a thread: partial sums lie as y does.
    const int every = chunks_of(p.m) * EACH;
    const index_t filled = (index_t)p.n * area * every;
    for (index_t i = 4 * first_element(); i < filled; i += 4 * grid_stride()) {
        float v[4] = {};
#pragma unroll 8
        for (int part = 0; part < PARTS; ++part) {
            const float4 more = *reinterpret_cast<const float4*>(parts + part * filled + i);
            v[0] += more.x, v[1] += more.y, v[2] += more.z, v[3] += more.w;
        }
        const int channel = i % every;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const bool real = channel + e < p.m;
            v[e] = real ? activate(bias ? v[e] + bias[channel + e] : v[e], AFTER) : 0.0f;
        }
        if (EACH == 8)
            reinterpret_cast<uint2*>(y)[i / 4] = make_uint2(to_halves(v[0], v[1]), to_halves(v[2], v[3]));
        else
            reinterpret_cast<uint4*>(y)[i / 4] = to_chunk(v);
    }
}
