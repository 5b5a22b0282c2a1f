// The convolution as a matrix product on tensor cores, its rows the pixels of the whole batch, its columns the channels
// of a group: the kernels of the rungs on the launch shape conv_tensor, which differ in what they compute in alone.
// Included behind the rung's struct Kind, which says that (mma.cuh).
#pragma once
#include "common.cuh"
#include "mma.cuh"
#include "overlap.cuh"

#define ENTRIES (DEPTH / RUN)        // of the table of taps for a slab
#define TABLE_SLABS (256 / ENTRIES)  // whose taps are located at once
#define GROUP (Kind::CHUNK / RUN < 4 ? Kind::CHUNK / RUN : 4)  // entries read from the table at once
#define OUT_COLUMNS 8
#define OUT_LEAD (WARP_ROWS + 8)
static_assert(THREADS % TILE_ROWS == 0 && TILE_ROWS * CHUNKS % THREADS == 0, "a thread must keep to one pixel");
static_assert(Kind::CHUNK % RUN == 0, "a run must not pass the end of a chunk");
static_assert(WARPS_ACROSS * OUT_COLUMNS * OUT_LEAD <= 2 * WARP_ROWS * 4 * CHUNKS,
              "8 channels of every warp must fit where the slabs of patches were");

struct __align__(4 * GROUP) Group {
    int v[GROUP];
};

// A block a tile of y, or of its part of the taps.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    __shared__ uint4 weights[STAGES][TILE_COLUMNS * CHUNKS];
    __shared__ uint4 patches[2][TILE_ROWS * CHUNKS];
    // Of each run of taps: how far from a pixel's corner it lies (-1: it is beyond the last); with padding, too,
    // how far down and right of it, 16 bits each.
    __shared__ __align__(16) int offsets[TABLE_SLABS * ENTRIES];
    __shared__ __align__(16) int windows[PADDED ? TABLE_SLABS * ENTRIES : GROUP];
    __shared__ index_t places[TILE_ROWS];  // of each pixel in y

    const int channels = p.c / p.group, outputs = p.m / p.group;
    const int taps = channels * p.kh * p.kw;
    const int plane = PLANE ? PLANE : p.h * p.w, area = p.out_h * p.out_w;
    const int pixels = p.n * area;
    const int g = blockIdx.z / PARTS, part = blockIdx.z % PARTS;
    // This block's part of the slabs, their number the same for all parts or one less.
    const int slabs = (taps + DEPTH - 1) / DEPTH;
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

    const int patch_row = thread % TILE_ROWS, patch_chunk = thread / TILE_ROWS;
    const int pixel = first_pixel + patch_row;
    const int top = pixel % area / p.out_w * p.stride_h - p.pad_top;
    const int left = pixel % area % p.out_w * p.stride_w - p.pad_left;
    const float* corner = x + ((index_t)(pixel / area) * p.c + g * channels) * plane + (index_t)top * p.w + left;
    if (thread < TILE_ROWS)
        places[thread] =
            pixel < pixels ? ((index_t)(pixel / area) * p.m + g * outputs) * area + pixel % area : -1;

    float held[LOADS][Kind::CHUNK];
    WarpTile<Kind, WARP_ROWS, WARP_COLUMNS> tile;

    auto fill_table = [&](int slab) {
        // Taps are numbered by runs of channels, then down and across the window, then within the run: the order in
        // which the weights were packed.
        for (int e = thread; e < TABLE_SLABS * ENTRIES; e += THREADS) {
            const int entry = slab * ENTRIES + e;
            const int first_channel = entry / (p.kh * p.kw) * RUN, r = entry / p.kw % p.kh, s = entry % p.kw;
            const int down = r * p.dilation_h, right = s * p.dilation_w;
            offsets[e] = entry * RUN < taps ? first_channel * plane + down * p.w + right : -1;
            if (PADDED) windows[e] = down << 16 | right;
        }
        __syncthreads();
    };
    // Starts the copies of a slab of weights; a group is closed even when nothing is left, so that their number tells
    // which have arrived.
    auto copy_weights = [&](int slab) {
        if (slab < end) {
            const uint4* from = filters + (index_t)slab * wide * CHUNKS;
#pragma unroll
            for (int l = 0; l < COPIES; ++l) {
                const int e = thread + l * THREADS;
                if (TILE_COLUMNS * CHUNKS % THREADS != 0 && e >= TILE_COLUMNS * CHUNKS) break;
                copy_async_16(&weights[(slab - begin) % STAGES][e], from + e);
            }
        }
        close_group();
    };
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) copy_weights(begin + ahead);
    fill_table(begin);
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    auto gather = [&](int slab) {
#pragma unroll
        for (int e = 0; e < LOADS * Kind::CHUNK; e += GROUP * RUN) {
            const int chunk = patch_chunk + e / Kind::CHUNK * (THREADS / TILE_ROWS);
            const int entry = (slab - begin) % TABLE_SLABS * ENTRIES + (chunk * Kind::CHUNK + e % Kind::CHUNK) / RUN;
            const Group offset = *reinterpret_cast<const Group*>(offsets + entry);
            const Group window = *reinterpret_cast<const Group*>(windows + (PADDED ? entry : 0));
#pragma unroll
            for (int i = 0; i < GROUP; ++i) {
                // As an unsigned number what lies above or left of the image is beyond its other end, so that one
                // comparison an axis suffices.
                bool inside = pixel < pixels && offset.v[i] >= 0;
                if (PADDED)
                    inside = inside && (unsigned)(top + (window.v[i] >> 16)) < (unsigned)p.h &&
                             (unsigned)(left + (window.v[i] & 0xffff)) < (unsigned)p.w;
#pragma unroll
                for (int r = 0; r < RUN; ++r)
                    held[e / Kind::CHUNK][e % Kind::CHUNK + i * RUN + r] =
                        inside ? corner[offset.v[i] + r * plane] : 0.0f;
            }
        }
    };
    auto keep = [&](int slab) {
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
            patches[(slab - begin) % 2][place_in_slab(patch_row, patch_chunk + i * (THREADS / TILE_ROWS))] =
                Kind::chunk(held[i]);
    };

    gather(begin);
    keep(begin);
    for (int slab = begin; slab < end; ++slab) {
        // Of each thread's copies this slab's have arrived; after the barrier everybody's, and the slab before has been
        // multiplied by all, so that its place is free.
        wait_for_all_but<STAGES - 2>();
        __syncthreads();
        copy_weights(slab + STAGES - 1);
        const bool more = slab + 1 < end;
        if (more) {
            if ((slab + 1 - begin) % TABLE_SLABS == 0) fill_table(slab + 1);
            gather(slab + 1);
        }
        tile.add(patches[(slab - begin) % 2], weights[(slab - begin) % STAGES], warp_row, warp_column);
        if (more) keep(slab + 1);
    }
    __syncthreads();
    let_next_begin();

    // Out through shared memory, 8 channels at a time: neighbouring lanes then write neighbouring pixels.
    float* out = reinterpret_cast<float*>(patches) + warp * OUT_COLUMNS * OUT_LEAD;
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
            const int o = first_output + warp_column + j * OUT_COLUMNS + e / WARP_ROWS;
            const index_t place = places[warp_row + e % WARP_ROWS];
            if (o >= outputs || place < 0) continue;
            const float v = out[e / WARP_ROWS * OUT_LEAD + e % WARP_ROWS];
            if (PARTS > 1)
                workspace[(index_t)part * p.n * p.m * area + place + (index_t)o * area] = v;
            else
                y[place + (index_t)o * area] = activate(bias ? v + bias[g * outputs + o] : v, p.activation);
        }
        __syncwarp();
    }
}

// Adds the parts, always in the same order.
extern "C" __global__ void conv_reduce(const float* __restrict__ x, const float* __restrict__ weight,
                                       const float* __restrict__ bias, float* __restrict__ y,
                                       float* __restrict__ workspace, const ConvParams p) {
    let_next_begin();
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    const index_t total = (index_t)p.n * p.m * p.out_h * p.out_w;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        float sum = 0.0f;
#pragma unroll 16
        for (int part = 0; part < PARTS; ++part) sum += workspace[part * total + i];
        y[i] = activate(bias ? sum + bias[i / (p.out_h * p.out_w) % p.m] : sum, p.activation);
    }
}
